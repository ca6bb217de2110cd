// Package probe helps to test the simulator's packages: it sends hand-written requests to one service, as the account's
// owner, and checks the responses.
//
// It calls the service's Serve function. It must not import a service, because the services' own tests import it.
package probe
