// Package probe is for tests of the simulator's packages: it sends requests that are written out by hand to one service, as its
// owner, and checks the answers.
//
// It is given a service's Serve. It must not import a service, whose own tests use it.
package probe
