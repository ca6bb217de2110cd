package access

import (
	"fmt"
	"strings"
)

// Permission is a set of operations that a token allows, joined with |: Query|Update. The zero Permission permits nothing.
//
// The library's methods need: Get and Query need Query; Insert needs Add; Replace and Merge need Update;
// Upsert, and any other insert-or-update, needs Add and Update; Delete needs Delete. A Repository's Update,
// Upsert and unconditional verbs, and with patterns its Merge, read first, so they also need Query. A
// transaction needs the permissions of all its operations. If the response to a write is lost, the library
// reads the row to find out the outcome; without Query the write returns tables.ErrUnknownOutcome.
type Permission uint8

// The permissions of a table's signature.
const (
	Query Permission = 1 << iota
	Add
	Update
	Delete

	// Everything is the set of all permissions.
	Everything = Query | Add | Update | Delete
)

// letters are the permissions in the order in which a signature must have them.
const letters = "raud"

// String returns the permissions in the form of a token; Everything is "raud".
func (p Permission) String() string {
	var b strings.Builder
	for i := range len(letters) {
		if p&(1<<i) != 0 {
			b.WriteByte(letters[i])
		}
	}
	if p > Everything {
		fmt.Fprintf(&b, "?%#x", uint8(p&^Everything))
	}
	return b.String()
}

// Has reports whether p holds all of q.
func (p Permission) Has(q Permission) bool { return p&q == q }

// parsePermission is the inverse of String, for texts that the service would accept.
func parsePermission(text string) (Permission, bool) {
	var p Permission
	for _, r := range text {
		i := strings.IndexRune(letters, r)
		if i < 0 {
			return 0, false
		}
		p |= 1 << i
	}
	return p, true
}
