// Package protocol has what all services of the simulated account have in common: the Call (request), the Answer (response),
// the Fault (error response), the versions of the protocol, and functions that read headers and queries.
//
// A service gets a Call and returns an Answer, and decides whether a Fault is written as JSON or XML. The package depends on
// no service, clock or random choice, and imports no other package of this project.
package protocol
