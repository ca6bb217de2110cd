// Package storagetest gives tests a table, queue and blob service to run against, and injects faults into it: a
// simulator in memory; Azurite, the emulator of Azure Storage, installed once and started for them; or the account
// that AZURE_STORAGE_CONNECTION_STRING names.
//
// # In a test
//
// A test needs only a call of [Simulator] or [Azurite], and no TestMain, set-up step or port number. Both
// return a [Service], from which all clients are made in the same way:
//
//	s := storagetest.Simulator(t, nil)
//	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
//
// A simulator is an account of its own, with a clock that the test sets. All tests of one test binary share
// one Azurite process; unique names keep the tests apart ([Service.TableName]). Both hold everything in
// memory. [Open] returns one or the other for a whole suite, as the environment variable STORAGETEST_SERVICE
// says.
//
// # Faults
//
// [Service.Faulty] gives a client whose calls meet the faults of an [Injector]: requests that are not sent,
// responses that are lost, cut off or wrong, processes that die. [Sweep] injects every fault into every call
// of an operation, one at a time, and calls the test's check after each run. It prints how to repeat a single
// failed run. [InBubble] is for workers that poll and wait: there, time costs nothing.
//
// # In a program
//
// [NewSimulator] needs no test. [StartAzurite] starts an Azurite of the program's own and returns an [AzuriteServer]
// with a Stop method. Example functions, which have no testing.TB, use them too.
//
// # What is needed
//
// For the simulator, nothing. For Azurite, Node.js 20 or newer, with npm. The first use on a machine installs Azurite
// from a pinned lock file whose integrity hashes are part of this package, without running install scripts, into the
// user's cache directory (os.UserCacheDir()/tablepatterns); that takes about 15 seconds and 190 MB, and every later
// start less than a second. A test on Azurite without Node and without AZURE_STORAGE_CONNECTION_STRING fails; it is
// never skipped.
//
// # Crashes
//
// A crash leaves no process behind. Azurite's process holds the reading end of a pipe whose only writing end
// is in the process that started it, and exits when that end closes: after a return, os.Exit, a panic or
// SIGKILL. An interrupted installation leaves a folder beside the finished ones, which a later installation
// removes. If a process dies while it holds the lock, the lock is released at once.
//
// # When not to use it
//
// Neither the simulator nor Azurite replaces the real service. The simulator implements the documented rules
// of the services, but says nothing about performance. Azurite does not hold the limits on an entity's size
// and number of properties, accepts values that do not match their type, and does not enforce the key ranges
// of a shared access signature; [Strict], which the ClientOptions of [Azurite] contain, enforces all three in
// front of it. Set AZURE_STORAGE_CONNECTION_STRING to run the same tests on an account.
package storagetest
