package driver

import (
	"context"
	"reflect"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Pattern is something that a Repository keeps in step with its entities. Patterns do not write: they contribute to
// the plan of each change, and the repository carries the plan out. A pattern implements Pattern and one or more of
//
//   - CopyContributor: further rows of the entity in its own partition that follow from the entity alone,
//   - RowContributor: rows in the entity's partition that other entities change as well,
//   - CompanionContributor: other repositories' entities in the same partition,
//   - OutsideCopyContributor: further rows of the entity in other partitions or tables,
//   - IntentContributor: other effects outside of the partition,
//   - Completer: properties of the entity that follow from other entities,
//   - PropertyTransformer: properties rewritten on the way to and from storage,
//   - Layout: one entity spread over several rows.
//
// On writing the order is: intent, type and version, large values out, encryption, layout, rows; reading undoes it. In which
// order patterns are given to NewRepository does not matter. Entities are passed
// as any, since patterns of several packages meet in one repository; they are always a *T of the repository's T.
type Pattern interface {
	// PatternName names the pattern in plans, errors and reports. It is unique in its repository.
	PatternName() string
	// Attach binds the pattern to its one repository; NewRepository calls it once. It makes no request. A nil host
	// releases it, when another pattern did not fit.
	Attach(host Host) error
}

// Host is what a pattern sees of its repository. A *engine is the only Host; a pattern that knows its T
// asserts it.
type Host interface {
	Table() *tables.Table
	EntityType() reflect.Type
	// PropertyNames lists the properties that entities store, nil when they take any.
	PropertyNames() []string
	// RowPrefix is the prefix of the entities' own row keys, "" when the schema does not say.
	RowPrefix() string
}

// Copy is a further row of an entity: its properties under another row key of its partition.
type Copy struct {
	RowKey string
	Keep   []string // the properties to hold; nil for all
}

// CopyContributor contributes rows that follow from the entity alone. The repository compares what the entity had
// with what it has: a row key that stays is rewritten, one that comes is inserted and must be free, one that goes is
// deleted, all in the entity's own transaction. Every write touches every one of them and leaves the same write
// id in them, so that a copy that was left behind is told from one that is in step. To find and mend drift, nothing
// else is needed from such a pattern.
type CopyContributor interface {
	Pattern
	// Copies returns the entity's rows. It is pure: the same entity always has the same rows.
	Copies(entity any) ([]Copy, error)
}

// Rememberer is implemented by patterns that must know of an entity's old state when it changes.
type Rememberer interface {
	Pattern
	// Remember returns what Change.Remembered gives back at the next change. stored are the properties as stored.
	Remember(entity any, stored tables.Properties) ([]string, error)
}

// RowContributor contributes rows that depend on more than the entity, such as a list that many entities share.
type RowContributor interface {
	Rememberer
	// ContributeRows returns the operations that keep the pattern's rows in step. It may read, and gives each row the
	// ETag it read it with, which a replacement and a delete must have; when the service refuses one of them, the whole change
	// is planned again, so it must start from the beginning each time.
	ContributeRows(ctx context.Context, change *Change) ([]RowOperation, error)
}

// RowVerb is what a RowOperation does.
type RowVerb uint8

// The verbs of a RowOperation.
const (
	InsertRow  RowVerb = iota // must not be there
	ReplaceRow                // must have the ETag
	DeleteRow                 // must have the ETag
)

// RowOperation is one row that a RowContributor writes in the entity's partition. Row.Key.Row and Row.Properties are
// used, and Row.ETag by ReplaceRow and DeleteRow.
type RowOperation struct {
	Verb RowVerb
	Row  *tables.Entity
}

// OutsideCopy is a further row of an entity in another partition: its properties under another key.
type OutsideCopy struct {
	Key  tables.Key
	Keep []string // the properties to hold; nil for all
}

// OutsideCopyContributor contributes rows in other partitions that follow from the entity alone. Each belongs to one
// entity: a row beside it claims it, so that no write that comes late touches a copy which has become another entity's.
// They are kept in step by an intent.
type OutsideCopyContributor interface {
	Pattern
	// OutsideTable is where the copies are. It is asked once, after Attach.
	OutsideTable() *tables.Table
	// OutsideCopies returns the entity's copies. It is pure: the same entity always has the same copies.
	OutsideCopies(entity any) ([]OutsideCopy, error)
	// ReservationTerm returns for how long a new key may be reserved before the entity is written, in whole seconds. With a
	// term, a taken key refuses the write with ErrDuplicate. It costs 1 request for each new key. 0 reserves no keys.
	//
	// A change sends its transaction within 5/6 of the term, or fails. Repair frees a reservation whose intent was lost 7/6
	// of the term after it was made.
	ReservationTerm() time.Duration
}

// IntentContributor contributes effects outside of the entity's partition. Before anything is written they are named
// in an Intent that survives a crash; afterwards each is made to agree with the entity as it is then.
type IntentContributor interface {
	Rememberer
	// OutsideKeys names everything outside that the change can touch: the old keys and the new. It is asked before the
	// transformers run, so change.Stored may be nil.
	OutsideKeys(ctx context.Context, change *Change) ([]string, error)
	// Reconcile makes each of the named keys agree with the entity as it is. It is called again after crashes, by other
	// processes and in any order, so it must be idempotent, and it writes none but the named keys.
	Reconcile(ctx context.Context, r *Reconciliation) error
}

// CompanionContributor contributes changes of other repositories' entities in the same partition of the same table, to be
// written in the entity's own transaction.
type CompanionContributor interface {
	Rememberer
	// Companions stages them in x, by Repository.StageReplace and the like. It may read; when the service refuses one of
	// them, the whole change is planned again, so it must start from the beginning each time.
	Companions(ctx context.Context, change *Change, x *tables.Transaction) error
}

// Completer sets properties of an entity that follow from other entities, such as a copy of another one's properties, before the
// entity is stored. What it has set can be outdated by the time the entity is committed, so a Completer is an
// IntentContributor or a CompanionContributor as well:
//
//   - as an IntentContributor it looks again in Reconcile, which comes after that of all other patterns: what finds the
//     entity by an index finds it from then on,
//   - as a CompanionContributor it writes what it has read in the entity's own transaction, under the ETag that it was read
//     with; it completes the entity again whenever the change is planned again.
type Completer interface {
	Rememberer
	// Complete sets properties of change.Entity, also where the caller has set others. It may read. It is not called for a
	// delete. What it learns for the other calls about the change, it keeps with change.Note. Each call gets the entity as the
	// caller gave it, in a value of its own; the caller sees what was set once the change is made.
	Complete(ctx context.Context, change *Change) error
}

// OutsideOwner is implemented by OutsideCopyContributors that know their rows by the keys. A table in which several
// repositories keep copies of entities with the same keys needs it, so that none takes another's copies for spurious ones.
type OutsideOwner interface {
	OutsideCopyContributor
	// OwnsOutside reports whether a key of OutsideTable is one that the pattern could have given a copy.
	OwnsOutside(key tables.Key) bool
}
