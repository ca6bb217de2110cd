// Package snapshot holds what services need to copy their state and to compare states: a Writer that makes equal states into
// equal sums, and Cloned, which copies a map with what it points to.
//
// It is given values of Go's own types alone, and imports no other package of this project: each service says itself what makes
// its state.
package snapshot
