package driver

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Stage orders the transforms of a repository.
type Stage uint8

// The stages, in the order of writing; reading runs them in reverse.
const (
	StageType    Stage = iota // stores type and version; reading selects and upgrades entities by them
	StageSpill                // moves large values out of the entity
	StageEncrypt              // encrypts the remaining properties
)

// Transform rewrites properties between T and storage.
type Transform[T any] struct {
	Stage Stage
	// Store converts properties of the entity into the properties to store: all of them, or those that a
	// merge sends. Unless change.DryRun is set, it may write outside of the partition the things that
	// OutsideKeys has named. Every copy of the entity is made of the result.
	Store func(ctx context.Context, change *Change[T], p tables.Properties) (tables.Properties, error)
	// Load reverses Store. It returns ErrOutdated if the properties refer to something that no longer exists,
	// because the entity may have been replaced. Then the repository reads the row again, and returns
	// ErrGarbled if the row has not changed. An ErrNotFound of Load also becomes ErrGarbled, since
	// ErrNotFound would tell the caller that the entity does not exist. ErrSkipped makes the query skip the
	// row.
	Load func(ctx context.Context, of Reading, p tables.Properties) (tables.Properties, error)
	// Filterable reports whether rows store a property unchanged; nil means every property. A query with a condition
	// on any other property returns ErrInvalid.
	Filterable func(property string) bool
	// RefusesMerge returns why some properties cannot be stored without the others, nil if they can.
	RefusesMerge error
	// Protects returns how a property of an entity with this key is protected; nil for a transform that does not
	// encrypt or sign. It must be pure.
	Protects func(entity tables.Key, property string) Protection
	// Streams reports that entities hold references to content in blobs, which the program reads later, in
	// place of the content.
	Streams bool
	// Authentication is for a transform whose Load rejects any entity that Store did not produce.
	Authentication *Authentication
}

// Authentication checks that a copy belongs to its entity. With it, a read through a copy also checks that
// the entity belongs under the copy's key: otherwise anyone who can write rows could store an entity's copy
// under another entity's key. If the copy contains the whole entity, the key is computed from it. Otherwise
// ProvesCopy is called; if ProvesCopy returns false, the repository reads the entity itself, with 1 more
// request.
type Authentication struct {
	// Properties are stored properties that every copy contains and every projection reads, requested or not.
	Properties []string
	// ProvesCopy reports whether the stored properties of a copy, which Load has accepted, prove that the entity had a
	// copy in this row of the table when it was written.
	ProvesCopy func(ctx context.Context, of Reading, table *tables.Table, row tables.Key, stored tables.Properties) (bool, error)
	// NotAuthentic is the error for a copy under a key that its entity does not have.
	NotAuthentic error
}

// Protection says how a property is protected in storage. Each level includes the lower ones.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	Signed                 // changes are detected
	Encrypted              // also unreadable without the key
)

// Reading describes the row from which properties were read.
type Reading struct {
	Key tables.Key // key of the entity, also if they come from a copy of it
	// Partial reports that properties of the entity may be missing, because the caller selected some, or the copy
	// stores only some. Such an entity is never written back whole.
	Partial bool
}

// EncryptTag is the struct tag of fields that must be stored encrypted: `encrypt:"true"`.
const EncryptTag = "encrypt"
