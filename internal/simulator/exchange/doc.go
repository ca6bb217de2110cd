// Package exchange has the common parts of the queue and blob services: reading the metadata and integer parameters of a
// request, dividing a listing into pages, writing a Fault as XML, and the lock under which a service serves one request
// at a time.
//
// The service passes the protocol.Call and the function that serves it. The package's only state is a counter, and it
// must not import a service.
package exchange
