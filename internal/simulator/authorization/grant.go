package authorization

import (
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Grant is what the sender of a request may do.
type Grant struct {
	Owner bool // everything

	permissions string // letters
	// resources are the letters of the resource types that an account signature covers; "" is a service signature's.
	resources string
	table     string // of a service signature for a table
	Range
}

// Need is what a request asks of a signature: the letter of a type of resources, then sets of permissions, one of which is
// enough. So "c c|w" asks for c or for w on a table, queue or container; s is the service, and o an entity, message or blob.
// An upper-case letter says that a service signature can allow it as well as an account's. An empty Need is for the account's
// key alone.
type Need string

// Allows tells whether the grant covers a need.
func (g *Grant) Allows(n Need) bool {
	resource, sets, _ := strings.Cut(string(n), " ")
	lower := strings.ToLower(resource)
	switch {
	case g.Owner:
		return true
	case resource == "" || g.resources == "" && resource == lower || g.resources != "" && !strings.Contains(g.resources, lower):
		return false
	}
	return slices.ContainsFunc(strings.Split(sets, "|"), g.Holds)
}

// Holds tells whether the grant has all permissions of a set.
func (g *Grant) Holds(set string) bool {
	for i := range len(set) {
		if strings.IndexByte(g.permissions, set[i]) < 0 {
			return false
		}
	}
	return true
}

// Entities checks access to entities of a table.
func (g *Grant) Entities(table, letters string) *protocol.Fault {
	switch {
	case g.Owner:
		return nil
	case g.resources == "" && !protocol.SameName(g.table, table):
		return Failure()
	case !g.Allows(Need("O " + letters)):
		return PermissionMismatch()
	}
	return nil
}
