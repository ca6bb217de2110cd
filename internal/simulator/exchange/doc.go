// Package exchange has the common parts of the queue and blob services: a Call with its metadata and numbers, the division of
// a listing into pages, a Fault as XML, and the lock under which a service serves one request at a time.
//
// It gets a protocol.Call and a function that serves it. Its only state is a counter, and it must not import a service.
package exchange
