// Package storagetest gives tests a table, queue and blob service, and injects faults into it: a simulator in memory; Azurite, the emulator of
// Azure Storage, installed once and started for them; or the account that AZURE_STORAGE_CONNECTION_STRING names.
//
// A test needs only [Simulator] or [Azurite], and no TestMain, set-up or port:
//
//	s := storagetest.Simulator(t, nil)
//	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
//
// A simulator is an account of its own, with a clock that the test sets. All tests of a binary share one Azurite process; unique names keep them
// apart ([Service.TableName]). Both keep everything in memory. [Open] returns one or the other for a whole suite, as STORAGETEST_SERVICE says.
// Programs and Example functions use [NewSimulator] and [StartAzurite].
//
// # Faults
//
// [Service.Faulty] gives a client whose calls meet the faults of an [Injector]: requests that are not sent, responses that are lost, cut off or
// wrong, processes that die. [Sweep] injects every fault into every call of an operation, one at a time, with the test's check after each run.
// [InBubble] is for workers that poll and wait: there, time costs nothing.
//
// # What is needed
//
// For the simulator, nothing. For Azurite, Node.js 20 or newer, with npm: the first use on a machine installs it from a pinned lock file with
// integrity hashes, without install scripts, into os.UserCacheDir()/tablepatterns, in about 15 seconds and 190 MB; later starts take less than a
// second. A test on Azurite without Node and without AZURE_STORAGE_CONNECTION_STRING fails; it is never skipped. Azurite's process ends with the
// one that started it, even after SIGKILL.
//
// # When not to use it
//
// Neither replaces the real service. The simulator implements the documented rules, and says nothing about performance. Azurite does not hold the
// limits on an entity's size and number of properties, accepts values that do not match their type, and does not enforce the key ranges of a shared
// access signature; [Strict], in the ClientOptions of [Azurite], enforces all three. Set AZURE_STORAGE_CONNECTION_STRING to run the same tests on
// an account.
package storagetest
