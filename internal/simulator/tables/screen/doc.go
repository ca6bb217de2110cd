// Package screen checks the simulator's rules in front of a table service that does not check them itself, such as Azurite.
//
// It gets requests, and refuses those that break a stateless rule or leave the key range of their signature. It must not
// import tables, which has state.
package screen
