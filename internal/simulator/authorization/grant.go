package authorization

import (
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Grant holds the permissions of the sender of a request.
type Grant struct {
	Owner bool // the sender may do everything

	permissions string // the letters of a signature's permissions
	// resources are the letters of the resource types of an account signature; "" for a service signature.
	resources string
	table     string // the table of a service signature
	Range
}

// Need is the permission that a request needs from a signature: the letter of a resource type, a space, and alternative sets
// of permissions, separated by |. The resource types are s for the service, c for a table, queue or container, and o for an
// entity, message or blob. So "c c|w" needs c or w on a table, queue or container. With an upper-case resource type, a
// service signature is sufficient, too. An empty Need requires the account's key.
type Need string

// Allows reports whether the grant meets a need.
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

// Holds reports whether the grant has all permissions in set.
func (g *Grant) Holds(set string) bool {
	for i := range len(set) {
		if strings.IndexByte(g.permissions, set[i]) < 0 {
			return false
		}
	}
	return true
}

// Entities returns a fault unless the grant has these permissions for entities of a table.
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
