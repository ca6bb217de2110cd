// Package protocol holds what all services of the simulated account speak: the Call that comes in, the Answer that goes out, the
// Fault that refuses a request, the versions of the protocol, and how headers and queries are read.
//
// A service is given a Call and returns an Answer; which form a Fault takes, JSON or XML, is for the service to say. The package
// knows nothing of any service, of time or of chance: it imports no other package of this project.
package protocol
