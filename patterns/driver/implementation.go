package driver

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Implementation is what a pattern contributes to the changes of one repository. The author sets the functions that the pattern
// needs; nil is a part that it does not have. Patterns do not write: they contribute to the plan of each change, and the
// repository carries the plan out.
//
// On writing the order is: intent, type and version, large values out, encryption, layout, rows; reading undoes it. The order in
// which patterns are given to NewRepository does not matter. The functions are called from several goroutines.
type Implementation[T any] struct {
	// Name is stored in rows and intents, and is in plans, errors and reports. It is unique in its repository, has no comma, and
	// stays the same for as long as the data lives.
	Name string
	// Binding is where the pattern's own methods find the repository; nil for a pattern that has none.
	Binding *Binding[T]
	// Pattern is the pattern itself, for a package that looks for its own among Host.Patterns; nil for one that nobody looks for.
	Pattern any
	// Fits refuses other patterns of the repository; it is called once, when all have attached. It sees itself among them.
	Fits func(all []Implementation[T]) error

	// Copies returns further rows of an entity in its own partition that follow from the entity alone. It is pure. The repository
	// compares what the entity had with what it has: a row key that stays is rewritten, one that comes is inserted and must be
	// free, one that goes is deleted, all in the entity's own transaction. To find and mend drift, nothing else is needed.
	Copies func(entity *T) ([]Copy, error)
	// Outside are further rows of an entity in other partitions or another table.
	Outside *Outside[T]
	// Projects names the properties that Copies and Outside.Copies keep, nil where some keep all.
	Projects []string

	// Prior returns what Change.Prior will be when an entity that is stored like this changes next.
	Prior func(entity *T, stored tables.Properties) ([]string, error)
	// Rows returns the writes of rows in the entity's partition that several entities share, such as a list. It may read, and
	// gives each row the ETag that it was read with; when the service refuses one, the whole change is planned again, so it
	// begins again each time.
	Rows func(ctx context.Context, change *Change[T]) ([]RowOperation, error)
	// Companions stages changes of other repositories' entities in the same partition of the same table, by
	// Repository.StageReplace and the like, for the entity's own transaction. It may read, and begins again like Rows.
	Companions func(ctx context.Context, change *Change[T], x *tables.Transaction) error

	// Complete sets properties of change.Entity that follow from other entities, also where the caller has set others. It may
	// read. It is not called for a delete. What it learns for the other functions about the change, it keeps with change.Note.
	// Each call gets the entity as the caller gave it, in a value of its own; the caller sees what was set once the change is made.
	//
	// What it has set can be outdated when the entity is committed. So a pattern with Complete has one of
	//
	//   - Reconcile, which looks again. It comes after that of all other patterns: what finds the entity by an index finds it then;
	//   - Companions, which writes what Complete has read in the entity's transaction, under the ETag that it was read with.
	//     Then Complete is called again whenever the change is planned again.
	Complete func(ctx context.Context, change *Change[T]) error

	// OutsideKeys names everything outside of the partition that a change can touch, in the pattern's own words: the old keys and
	// the new. The intent stores the names before anything is written. It is asked before Transform.Store, so change.Stored may be
	// nil. A pattern with OutsideKeys has Reconcile.
	OutsideKeys func(ctx context.Context, change *Change[T]) ([]string, error)
	// Reconcile makes each of the named keys agree with the entity as it is. It is called by the writer after the commit, and by a
	// worker if the writer died: again, in other processes and in any order. So it is idempotent, and writes none but the named keys.
	Reconcile func(ctx context.Context, r *Reconciliation[T]) error

	Transform *Transform[T] // properties rewritten on the way to and from storage
	Layout    *Layout       // one entity spread over several rows; a repository has at most one
	Audit     *Audit[T]     // for Verify, Repair and Rebuild of what is held of an entity beside copies

	// Seals names properties that the pattern stores with the entity and that say how the others are read, such as type and
	// version. An encryption signs them.
	Seals []string
}

// Copy is a further row of an entity: its properties under another row key of its partition.
type Copy struct {
	RowKey string
	Keep   []string // the properties to hold; nil for all
}

// Outside are further rows of an entity in other partitions that follow from the entity alone. Each belongs to one entity: a row
// beside it claims it, so that no write that comes late touches a copy which has become another entity's. An intent keeps them in
// step.
type Outside[T any] struct {
	// Table is where the copies are; nil is the repository's own.
	Table *tables.Table
	// Copies returns the entity's copies. It is pure.
	Copies func(entity *T) ([]OutsideCopy, error)
	// Owns reports whether a key of the table is one that the pattern could give a copy; nil is every key. A table in which several
	// repositories keep copies of entities with the same keys needs it: otherwise each takes the others' copies for spurious ones.
	Owns func(key tables.Key) bool
	// ReservationTerm is for how long a new key may be reserved before the entity is written, in whole seconds. With a term, a
	// taken key refuses the write with ErrDuplicate. It costs 1 request for each new key. 0 reserves no keys.
	//
	// A change sends its transaction within 5/6 of the term, or fails. Repair frees a reservation whose intent was lost 7/6 of the
	// term after it was made.
	ReservationTerm time.Duration
}

// OutsideCopy is a further row of an entity in another partition: its properties under another key.
type OutsideCopy struct {
	Key  tables.Key
	Keep []string // the properties to hold; nil for all
}

// RowVerb is what a RowOperation does.
type RowVerb uint8

// The verbs of a RowOperation.
const (
	InsertRow  RowVerb = iota // must not be there
	ReplaceRow                // must have the ETag
	DeleteRow                 // must have the ETag
)

// RowOperation is one row that Implementation.Rows writes in the entity's partition. Row.Key.Row and Row.Properties are used, and
// Row.ETag by ReplaceRow and DeleteRow.
type RowOperation struct {
	Verb RowVerb
	Row  *tables.Entity
}
