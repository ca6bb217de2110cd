// Package storagetest gives tests a table, queue and blob service to run against: Azurite, the emulator of Azure
// Storage, installed once and started for them, or the account that AZURE_STORAGE_CONNECTION_STRING names.
//
// # In a test
//
// [Azurite] is all that a test needs; no TestMain, no set-up step, no ports to agree on:
//
//	svc := storagetest.Azurite(t)
//	client, err := aztables.NewServiceClientFromConnectionString(svc.ConnectionString, nil)
//	table := svc.TableName(t) // unique, so tests can run in parallel
//
// All tests of one test binary share one Azurite process; names keep them apart. Azurite holds everything in memory.
//
// # In a program
//
// [StartAzurite] starts an Azurite of the program's own and hands back an [AzuriteServer] to stop. Example functions,
// which have no testing.TB, use it too.
//
// # What is needed
//
// Node.js 20 or newer, with npm. The first use on a machine installs Azurite from a pinned lock file whose integrity
// hashes are part of this package, without running install scripts, into the user's cache directory
// (os.UserCacheDir()/tablepatterns); that takes about 15 seconds and 190 MB, and every later start less than a second.
// A test without Node and without AZURE_STORAGE_CONNECTION_STRING fails; it is never skipped.
//
// # What a crash leaves behind
//
// Nothing that runs. Azurite's process holds the reading end of a pipe whose only writing end is in the process that
// started it, and exits when that closes: on return, on os.Exit, on panic and on SIGKILL alike. An installation that
// was cut off leaves a folder beside the finished ones, which a later installation removes; a lock held by a process
// that died is free at once.
//
// # When not to use it
//
// Azurite is not the service: it does not hold the limits on an entity's size and number of properties, accepts values that
// do not match their type, and does not enforce the key ranges of a shared access signature. Set
// AZURE_STORAGE_CONNECTION_STRING to run the same tests on an account.
package storagetest
