package driver

import "github.com/tablepatterns/tablepatterns/tables"

// Layout spreads an entity over several rows of one transaction. Its functions must be pure, and all must be set: the
// repository chooses the keys, and reads and writes the rows.
type Layout struct {
	// Split divides properties into rows. Equal properties must give equal rows.
	Split func(p tables.Properties) (*LaidOut, error)
	// Versions returns the versions of the further rows.
	Versions func(directory string) ([]string, error)
	// Rows returns the indexes of the further rows that hold the named properties; if names is nil, of all
	// further rows.
	Rows func(directory string, names []string) ([]int, error)
	// Join reverses Split, given the first row and all further rows that Rows has returned, by index. It returns
	// ErrOutdated if they belong to different versions; the repository then reads all rows again.
	Join func(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error)
	// Filterable reports whether the first row always contains a property that the entity has. A query with a
	// condition on any other property returns ErrInvalid, since it would miss entities.
	Filterable func(property string) bool
}

// LaidOut is an entity's properties, divided into rows.
type LaidOut struct {
	First     tables.Properties // of the row under the entity's own key
	Directory string            // describes the further rows for Join; stored in the first row; "" if there are none
	Further   []FurtherRow      // at most MaxFurtherRows
}

// FurtherRow is one of the rows beside the first.
type FurtherRow struct {
	Properties tables.Properties
	Version    string // changes whenever the properties change; a merge does not rewrite rows of the same version
}
