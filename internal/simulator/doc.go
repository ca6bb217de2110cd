// Package simulator is the table, queue and blob services of one storage account in memory, behind the transport of the
// Azure SDK.
//
// It keeps the rules that the services document, with their status codes, error codes and messages, and answers in the
// form of their recorded answers. Time is virtual and chance is seeded, so that a run can be run again.
//
// Where sources contradict each other, recorded answers of an account hold before what the SDKs' own tests assert of one, that
// before what others report of one, and all three before the documents. Where no source says anything, the simulator refuses:
// an integer beyond 32 bits must be annotated, an Edm.Int64 must be a string, a PUT's body must not name other keys than
// its address. docs/reference/azurite.md lists the source of each rule, and the guesses.
//
// Nothing is stored beyond the process. There are no secondary locations, no versions before 2018-11-09 of shared access
// signatures, and none by user delegation.
package simulator
