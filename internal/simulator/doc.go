// Package simulator is the table, queue and blob services of one storage account in memory, behind the transport of the
// Azure SDK.
//
// It is the front door: Do finds the service that a host stands for, lets chance fail the request, and has authorization check its
// sender. All else is below:
//
//	tables, queues, blobs      the services, each with its state
//	tables/screen              the rules of tables that need no state, in front of another table service
//	tables/request             requests to the table service, and these rules
//	tables/entity              entities in memory and in JSON
//	exchange                   what queues and blobs share
//	authorization              keys, signatures and stored access policies
//	document                   XML
//	environment, snapshot      time, chance and chaos; copies of states
//	protocol                   calls, answers and refusals
//	probe, probe/accounts      for tests
//
// Imports point down this list, those of probe apart. No service imports another, and none imports simulator.
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
