// Package rows defines what packages tables and patterns share about stored rows: the names of the library's
// own properties, the keys of values that need several rows, and Pass, with which only this module can call
// the raw functions of package tables.
package rows

// Pass is the first argument of the functions of package tables that read and write rows with the library's own properties. No
// program outside of this module can name it.
type Pass uint8

// Open is the only value of type Pass.
const Open Pass = 1

// Prefix is the prefix of the names of the library's own properties. They count among the properties of an
// entity. No field and no property bag may use a name with this prefix.
const Prefix = "_tp"

// The names of the library's own properties.
const (
	WriteID     = Prefix + "Write"       // ID of the write that left the row: resolves an unknown outcome
	Incarnation = Prefix + "Incarnation" // ID of the insert that created the entity; an insert after a delete has another ID
	Primary     = Prefix + "Primary"     // on a copy or a further row: the row key of the entity's own row
	Copies      = Prefix + "Copies"      // names of the patterns whose copies of the entity were written with the row
	Shared      = Prefix + "Shared"      // on a row that belongs to several entities: the name of its pattern
	Partition   = Prefix + "Partition"   // on a copy in another partition: the partition key of the entity's own row
	Version     = Prefix + "Version"     // on such a copy: the ETag that the entity's own row had when the copy was made
	Reserved    = Prefix + "Reserved"    // on such a copy that only reserves its key: the ID of the change that will fill it
	Term        = Prefix + "Term"        // on a reserved key: the seconds after which that change can no longer be committed
	Layout      = Prefix + "Layout"      // on rows of an entity that a Layout spreads over several: on the first row the layout's directory, on the others "further"
	Claim       = Prefix + "Claim"       // on a claim: the row key of the copy that it claims
)

// IsKnown reports whether this version of the library knows one of its own properties. Other names belong to a later version of the
// library; their properties are written back unchanged.
func IsKnown(name string) bool {
	switch name {
	case WriteID, Incarnation, Primary, Copies, Shared, Partition, Version, Reserved, Term, Layout, Claim:
		return true
	}
	return false
}
