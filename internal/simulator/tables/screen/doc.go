// Package screen holds the simulator's rules in front of a table service that does not hold them itself, as Azurite does not.
//
// It is given requests, and refuses those that break a rule that needs no state, or that leave the key range of their
// signature. It must not import tables, which holds state.
package screen
