package driver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Implementation has the functions that a repository calls for a pattern. Set the functions that the pattern
// needs, and leave the others nil. Patterns do not write rows of the entity's partition themselves: they contribute to the
// plan of each change, and the repository commits the plan.
//
// The order of writing is: intent, type and version, moving out large values, encryption, layout, rows. Reading
// reverses it. The order in which patterns are given to NewRepository does not matter. The functions may be called
// concurrently.
type Implementation[T any] struct {
	// Name is stored in rows and intents, and appears in plans, errors and reports. It is unique in its repository,
	// has no comma, and must not change while stored data uses it.
	Name string
	// Binding gives the pattern's own methods access to the repository; nil for a pattern without such methods.
	Binding *Binding[T]
	// Pattern is the pattern itself. Set it only if its package searches Host.Patterns for its own patterns.
	Pattern any
	// Tables and Containers are further resources of the pattern, beside the repository's table and
	// Outside.Table. Store.Create creates them; nil elements are ignored.
	Tables     []*tables.Table
	Containers []*container.Client
	// Fits returns an error if the pattern cannot be combined with other patterns of the repository. It is called
	// once, after all patterns have attached; others includes this pattern.
	Fits func(all []Implementation[T]) error

	// Copies returns further rows of an entity in its own partition that depend only on the entity. It must
	// be pure. The repository compares the old with the new row keys: it rewrites a row whose key stays,
	// inserts a row with a new key, which must be free, and deletes a row whose key is no longer returned,
	// all in the entity's own transaction. Verify and Repair need no further function.
	Copies func(entity *T) ([]Copy, error)
	// Outside are further rows of an entity in other partitions or another table.
	Outside *Outside[T]
	// Async leaves the effects of Outside and Reconcile to workers. patterns.Async sets it.
	Async bool
	// Projects names the properties that Copies and Outside.Copies store, nil if some copies store all.
	Projects []string

	// Prior returns the value of Change.Prior for the next change of an entity with this stored state.
	Prior func(entity *T, stored tables.Properties) ([]string, error)
	// Rows returns the writes of rows in the entities' partition that several entities share, such as a list.
	// changes are all changes of the repository in one transaction, so that several changes of one list
	// become one write of its row. Rows may read rows, and sets the ETag with which it read each. If the
	// service rejects an operation, the repository plans the whole transaction again and calls Rows again, so
	// Rows must keep no state.
	Rows func(ctx context.Context, changes []*Change[T]) ([]RowOperation, error)
	// Companions stages changes of other entities in the same partition of the same table, by Host.Stage of
	// their repository, for the transaction of the change. It reads these entities by Host.GetIn, which takes
	// the changes of the transaction itself into account. change.Stored is nil. It is called again whenever
	// the transaction is planned again. If it edits another change of the transaction, the Companions of that
	// change are not called again.
	Companions func(ctx context.Context, change *Change[T], x *tables.Transaction) error

	// Complete sets properties of change.Entity that depend on other entities, even if the caller has set them. It may
	// read. It is not called for a delete. To pass what it has read to the other functions, use change.Note. Each call
	// gets its own copy of the entity as the caller gave it; the caller's value is updated when the change is made.
	//
	// The properties that Complete has set may be outdated when the entity is committed. So a pattern with
	// Complete needs one of
	//
	//   - Reconcile, which reads the other entities again. It runs after the Reconcile functions of all other
	//     patterns, so that it finds the entity by their indexes;
	//   - Companions, which writes the entities that Complete has read, in the entity's transaction and under
	//     the ETags with which they were read. Complete is called again whenever the change is planned again.
	Complete func(ctx context.Context, change *Change[T]) error

	// OutsideKeys names everything outside of the partition that a change can touch, old keys and new, in the
	// pattern's own notation. The intent stores the names before anything is written. It is called before
	// Transform.Store, so change.Stored may be nil. A pattern with OutsideKeys needs Reconcile.
	OutsideKeys func(ctx context.Context, change *Change[T]) ([]string, error)
	// Reconcile makes each named key match the current state of its entity. all are the entities of the
	// repository in one transaction or message, so that Reconcile can read and write once what several of
	// them share, such as a list. The writer calls it after the commit; if the writer died, a worker calls
	// it, possibly several times, in other processes and in any order. It must be idempotent, and write only
	// the named keys. It sets Reconciliation.Err of an entity that it cannot reconcile, and continues with
	// the others; an error that it returns concerns all of them. For a pattern whose entities share nothing,
	// use ReconcileEach.
	Reconcile func(ctx context.Context, all []*Reconciliation[T]) error
	// Last makes Reconcile run after the Reconcile functions of all other patterns, and only for entities
	// for which none of these failed. An index key that another entity owns does not count as a failure
	// here. A pattern that calls the program sets Last, so that the program finds the entity by its indexes.
	Last bool

	Transform *Transform[T] // properties rewritten on the way to and from storage
	Layout    *Layout       // spreads an entity over several rows; at most one per repository
	Audit     *Audit[T]     // lets Verify, Repair and Rebuild check the facts that the pattern stores, other than copies

	// Seals names properties of the pattern that determine how the entity's other properties are read, such
	// as type and version. An encryption pattern signs them.
	Seals []string
}

// Copy is a further row of an entity: its properties under another row key of its partition.
type Copy struct {
	RowKey string
	Keep   []string // the properties to store; nil for all
}

// Outside are further rows of an entity in other partitions that depend only on the entity. Each belongs to one
// entity: a claim, a row beside it, names the owner, so a delayed write cannot touch a copy that now belongs to
// another entity. The repository reconciles them under an intent.
type Outside[T any] struct {
	// Table is the table of the copies; nil is the repository's own.
	Table *tables.Table
	// Copies returns the entity's copies. It must be pure.
	Copies func(entity *T) ([]OutsideCopy, error)
	// Owns reports whether a copy of this pattern can have the key; nil means that it can have every key. Set
	// it if several repositories store copies of entities with the same keys in one table: otherwise each
	// reports the others' copies as spurious.
	Owns func(key tables.Key) bool
	// ReservationTerm is how long a new key may stay reserved before the entity is written, in whole seconds; 0 reserves
	// no keys. With a term, a write that needs a taken key fails with ErrDuplicate, and each new key costs 1 more request.
	//
	// A change sends its transaction within 5/6 of the term, or fails. If the intent of a reservation was
	// lost, Repair frees the reservation 7/6 of the term after it was made.
	ReservationTerm time.Duration
}

// OutsideCopy is a further row of an entity in another partition: its properties under another key.
type OutsideCopy struct {
	Key  tables.Key
	Keep []string // the properties to store; nil for all
}

// RowVerb is what a RowOperation does.
type RowVerb uint8

// The verbs of a RowOperation.
const (
	InsertRow  RowVerb = iota // the row must not exist
	ReplaceRow                // the row must have the ETag
	DeleteRow                 // the row must have the ETag
)

// RowOperation is the write of one row in the entity's partition. Row.Key.Row and Row.Properties are used, and
// Row.ETag by ReplaceRow and DeleteRow.
type RowOperation struct {
	Verb RowVerb
	Row  *tables.Entity
}
