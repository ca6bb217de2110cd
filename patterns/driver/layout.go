package driver

import "github.com/tablepatterns/tablepatterns/tables"

// Layout spreads an entity over several rows of one transaction. It is pure: the repository reads and writes the rows, under keys of
// its own making. All functions are set.
type Layout struct {
	// Split lays properties out over rows. The same properties are always laid out alike.
	Split func(p tables.Properties) (*LaidOut, error)
	// Versions returns the versions of the further rows.
	Versions func(directory string) ([]string, error)
	// Rows returns which of the further rows hold the named properties, all that there are for nil.
	Rows func(directory string, names []string) ([]int, error)
	// Join undoes Split, given the first row and all further rows that Rows has returned, by index. ErrOutdated says that
	// they are not of one version: then all are read again.
	Join func(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error)
	// Filterable reports whether every first row holds a property, if the entity has it. A condition on another is
	// refused: it would miss entities.
	Filterable func(property string) bool
}

// LaidOut is an entity's properties spread over rows.
type LaidOut struct {
	First     tables.Properties // of the row under the entity's own key
	Directory string            // kept in that row, says what Join must know of the further ones; "" when there are none
	Further   []FurtherRow      // at most MaxFurtherRows
}

// FurtherRow is one of the rows beside the first.
type FurtherRow struct {
	Properties tables.Properties
	Version    string // another one whenever the properties are others; a merge leaves out rows that stay the same
}
