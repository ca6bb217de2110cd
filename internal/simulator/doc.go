// Package simulator is the table, queue and blob services of one storage account in memory, behind the transport of the
// Azure SDK.
//
// It keeps the rules that the services document, with their status codes, error codes and messages, and answers in the
// form of their recorded answers. Time is virtual and chance is seeded, so that a run can be run again. What it does not
// know it refuses, rather than guess in the caller's favour. Where the documents leave a choice, it takes the stricter:
// an integer beyond 32 bits must be annotated, an Edm.Int64 must be a string, a PUT's body must not name other keys than
// its address.
//
// Nothing is stored beyond the process. There are no secondary locations, no versions before 2018-11-09 of shared access
// signatures, and none by user delegation.
package simulator
