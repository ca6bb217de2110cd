package driver

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Stage orders the transforms of a repository.
type Stage uint8

// The stages, in the order of writing; reading goes through them backwards.
const (
	StageType    Stage = iota // the entity says what it is, and what is read becomes that
	StageSpill                // large values leave the entity
	StageEncrypt              // what stays is encrypted
)

// Transform rewrites properties between T and storage.
type Transform[T any] struct {
	Stage Stage
	// Store turns the entity's properties into those to store: all of them, or those that a merge sends. It may write
	// outside what OutsideKeys has named, unless change.DryRun. Each copy of the entity is made of the result.
	Store func(ctx context.Context, change *Change[T], p tables.Properties) (tables.Properties, error)
	// Load undoes Store. ErrOutdated says that what the properties name outside has gone, as it does when the entity is
	// replaced: then the row is read again, and the error is ErrGarbled only when the row is the same as before. ErrNotFound
	// becomes ErrGarbled as well: it would say that there is no entity. ErrSkipped says that no entity is to be made of the row.
	Load func(ctx context.Context, of Reading, p tables.Properties) (tables.Properties, error)
	// Filterable reports whether rows hold a property as it is; nil is every property. A condition on another is refused.
	Filterable func(property string) bool
	// RefusesMerge says why some properties cannot be stored without the others, nil where they can.
	RefusesMerge error
	// Protects returns how a property of an entity with this key is protected; nil for a transform that does not encrypt or sign. It
	// is pure.
	Protects func(entity tables.Key, property string) Protection
	// Streams says that entities, as they are read, hold references to what is outside, to be read later, in place of the content.
	Streams bool
	// Authentication is set by a transform whose Load refuses an entity that is not as Store has left it.
	Authentication *Authentication
}

// Authentication is how copies are held to the entity that they are of. With it, a read through a copy also checks that the entity
// belongs under the copy's key: otherwise whoever can write rows could put an entity's copy, as it is, under another entity's key.
// The key is computed again from what was read, where the copy holds the whole entity. Of a copy that was read in part, ProvesCopy
// is asked; where it cannot tell, the entity itself is read, for 1 request more.
type Authentication struct {
	// Properties are stored properties that every copy holds and every projection reads, asked for or not.
	Properties []string
	// ProvesCopy reports whether the stored properties of a copy, which Load has accepted, show that the entity had a copy in
	// this row of the table when it was written.
	ProvesCopy func(ctx context.Context, of Reading, table *tables.Table, row tables.Key, stored tables.Properties) (bool, error)
	// NotAuthentic is the error of a copy under a key that its entity does not have.
	NotAuthentic error
}

// Protection says how a property is protected in storage. A higher one holds all that a lower one does.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	Signed                 // whoever changes it is found out
	Encrypted              // and nobody reads it who does not have the key
)

// Reading says what properties were read of.
type Reading struct {
	Key tables.Key // of the entity, also when they come from a copy of it
	// Partial says that properties may be missing that the entity has: the caller asked for some, or the copy keeps no
	// more. What was read so is never written back whole.
	Partial bool
}

// EncryptTag is the struct tag of fields that are stored encrypted only: `encrypt:"true"`.
const EncryptTag = "encrypt"
