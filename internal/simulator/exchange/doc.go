// Package exchange holds what the queue and the blob service have in common: how a Call is read, with its metadata and its
// numbers, how a listing is cut into pages, how a Fault is answered in XML, and the lock under which a service serves one request
// at a time.
//
// It is given a protocol.Call and a function that serves it. It keeps no state but a counter, and must not import a service.
package exchange
