// Package simulator implements the table, queue and blob services of one storage account in memory. It is a transport for the
// Azure SDK.
//
// Do is the entry point: it finds the service by the request's host, makes the request fail if the Chaos
// decides so, and authenticates its sender. The packages below it do the rest:
//
//	tables, queues, blobs      the services, each with its state
//	tables/screen              the stateless rules of the table service, for use in front of another table service
//	tables/request             requests to the table service, and its stateless rules
//	tables/entity              entities in memory and in JSON
//	exchange                   the common parts of the queue and blob services
//	authorization              keys, signatures and stored access policies
//	document                   XML
//	environment, snapshot      time, random choices and failures; copies of states
//	protocol                   requests, responses and errors
//	probe, probe/accounts      for tests
//
// A package imports only packages below it in this list, except probe. No service imports another, and none imports simulator.
//
// The simulator follows the documented rules of the services, with their status codes, error codes and messages, and its
// responses have the form of recorded ones. Time is virtual and random choices follow a seed, so a run can be repeated.
//
// If sources contradict each other, the simulator follows, in this order: responses recorded from an account,
// the expectations of the SDKs' tests, reports of other people, the documentation. If no source covers a
// case, the simulator refuses it: an integer beyond 32 bits must be annotated, an Edm.Int64 must be a string,
// a PUT's body must not name other keys than its address. docs/explanation/azurite.md lists the source of
// each rule, and the guesses.
//
// The simulator stores nothing beyond the process. It has no secondary locations, and it does not support shared access
// signatures of versions before 2018-11-09 or by user delegation.
package simulator
