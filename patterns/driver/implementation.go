package driver

import (
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Implementation has the functions that a repository calls for a pattern. Set the functions that the pattern
// needs, and leave the others nil. Patterns do not write rows of the entity's partition themselves: they contribute to the
// plan of each change, and the repository commits the plan.
//
// The order of writing is: intent, type and version, moving out large values, encryption, layout, rows. Reading
// reverses it. The order in which patterns are given to NewRepository does not matter. The functions may be called
// concurrently. They get an entity as a pointer to the repository's type T: see Of and As.
type Implementation struct {
	// Name is stored in rows and intents, and appears in plans, errors and reports. It is unique in its repository,
	// has no comma, and must not change while stored data uses it.
	Name string
	// Binding gives the pattern's own methods access to the repository; nil for a pattern without such methods.
	Binding *Binding
	// Pattern is the pattern itself. Set it only if its package searches Host.Patterns for its own patterns.
	Pattern any
	// Tables and Containers are resources of the pattern other than the repository's table and Outside.Table.
	// Store.Create creates them; nil elements are ignored. blobstorage.Resource makes a Container of the SDK's client.
	Tables     []*tables.Table
	Containers []Container
	// Intents is the queue of a pattern with OutsideKeys, unless StoreOptions.Intents names it: set it to
	// eventual.IntentQueue(nil, nil). Without it, a program links no client of queues.
	Intents IntentQueue
	// Fits returns an error if the pattern cannot be combined with other patterns of the repository. It is
	// called once, after all patterns have attached; all includes this pattern.
	Fits func(all []*Implementation) error

	// Copies returns further rows of an entity in its own partition that depend only on the entity. It must be
	// pure. The repository compares the new row keys with the old ones, and in the entity's own transaction
	// rewrites a row whose key is in both, inserts a row with a new key, which must be free, and deletes a row
	// whose key is only in the old ones. Verify and Repair need no further function.
	Copies func(entity any) ([]Copy, error)
	// Outside are further rows of an entity in other partitions or another table.
	Outside *Outside
	// Projects names the properties that Copies and Outside.Copies store, nil if some copies store all.
	Projects []string

	// Prior returns the value of Change.Prior for the next change of an entity with this stored state.
	Prior func(entity any, stored tables.Properties) ([]string, error)
	// Rows returns the writes of rows in the entities' partition that several entities share, such as a list.
	// changes are all changes of the repository in one transaction, so that several changes of one list become
	// one write of its row. Rows may read rows; it sets Row.ETag of each operation to the ETag with which it
	// read the row. If the service rejects an operation, the repository plans the whole transaction again and
	// calls Rows again, so Rows must keep no state.
	Rows func(ctx context.Context, changes []*Change) ([]RowOperation, error)
	// Companions stages changes of other entities in the same partition of the same table, by Host.Stage of
	// their repository, for the transaction of the change. It reads these entities by Host.GetIn, which also
	// sees the changes of the transaction itself. change.Stored is nil. Companions is called again whenever the
	// transaction is planned again. If it edits another change of the transaction, the Companions function of
	// that other change is not called again.
	Companions func(ctx context.Context, change *Change, x *tables.Transaction) error

	// Complete sets properties of change.Entity that depend on other entities; it overwrites what the caller
	// has set in them. It may read. It is not called for a delete. To pass what it has read to the pattern's
	// other functions, use change.Note. Each call gets a new copy of the entity as the caller gave it; the
	// caller's value is updated after the commit.
	//
	// The properties that Complete has set may be outdated when the entity is committed. So a pattern with
	// Complete needs one of
	//
	//   - Reconcile, which reads the other entities again. It runs after the Reconcile functions of all other
	//     patterns, so that it finds the entity by their indexes;
	//   - Companions, which writes the entities that Complete has read, in the entity's transaction and under
	//     the ETags with which they were read. Complete is called again whenever the change is planned again.
	Complete func(ctx context.Context, change *Change) error

	Effect Effect // what the pattern stores beside copies; the zero value is nothing

	Transform *Transform // properties rewritten on the way to and from storage
	Layout    *Layout    // spreads an entity over several rows; at most one per repository
	Totals    *Totals    // lets Verify, Repair and Rebuild check the numbers that the pattern adds up from several entities

	// Seals names properties that the pattern stores and that determine how the entity's other properties are
	// decoded, such as type and version. An encryption pattern signs them.
	Seals []string
}

// Container is a blob container of a pattern; the zero value is none.
type Container handle.Any

// IntentQueue says how a Store opens its queue of intents; the zero value opens none. eventual.IntentQueue makes one.
type IntentQueue stores.Opener

// Copy is a further row of an entity: its properties under another row key of its partition.
type Copy struct {
	RowKey string
	Keep   []string // the properties to store; nil for all
}

// Outside are copies of an entity in other partitions that depend only on the entity. The repository keeps them current: it marks
// those that a change makes wrong before the change commits, and settles them afterwards; its reads follow marked copies to the entity. A
// key belongs to one entity at a time: a write that needs a key of another entity fails with ErrDuplicate.
type Outside struct {
	// Table is the table of the copies; nil is the repository's own.
	Table *tables.Table
	// Copies returns the entity's copies. It must be pure.
	Copies func(entity any) ([]OutsideCopy, error)
	// Owns reports whether a copy of this pattern can have the key; nil means that it can have every key. Set
	// it if several repositories store copies of entities with the same keys in one table: otherwise Verify of
	// each repository reports the copies of the others as spurious.
	Owns func(key tables.Key) bool
}

// OutsideCopy is a further row of an entity in another partition: its properties under another key.
type OutsideCopy struct {
	Key tables.Key
	// Keep names the properties to store; nil for all. Without any (an empty slice), reads always follow the copy to the entity, and a change that
	// keeps the key does not touch it.
	Keep []string
}

// RowVerb is what a RowOperation does.
type RowVerb core.SharedVerb

// The verbs of a RowOperation.
const (
	InsertRow  = RowVerb(core.InsertShared)  // the row must not exist
	ReplaceRow = RowVerb(core.ReplaceShared) // the row must have the ETag
	DeleteRow  = RowVerb(core.DeleteShared)  // the row must have the ETag
)

// RowOperation is the write of one row in the entity's partition. InsertRow uses Row.Key.Row and
// Row.Properties, ReplaceRow also Row.ETag, and DeleteRow only Row.Key.Row and Row.ETag.
type RowOperation struct {
	Verb RowVerb
	Row  *tables.Entity
}

// Stage orders the transforms of a repository.
type Stage uint8

// The stages, in the order of writing; reading runs them in reverse.
const (
	StageType    Stage = iota // stores type and version; reading selects and upgrades entities by them
	StageSpill                // moves large values out of the entity
	StageEncrypt              // encrypts the remaining properties
)

// Transform rewrites properties between T and storage.
type Transform struct {
	Stage Stage
	// Store converts properties of the entity into the properties to store: all of them, or those that a merge
	// sends. Unless change.DryRun is set, Store of StageSpill may store something new outside of the partition, such as a
	// blob. Every copy of the entity is made from the result.
	Store func(ctx context.Context, change *Change, p tables.Properties) (tables.Properties, error)
	// After is called with the change once it is known whether its transaction was committed, and, with committed false, once the result of
	// Store is not used. It returns what is left to do, nil for nothing: to remove what no row refers to now. The repository does that in the
	// background, and does not if the process dies.
	After func(ctx context.Context, change *Change, committed bool) func(ctx context.Context)
	// Load reverses Store. It returns ErrOutdated if the properties refer to something that no longer exists,
	// because the entity may have been replaced. Then the repository reads the row again, and returns
	// ErrGarbled if the row has not changed. An ErrNotFound of Load also becomes ErrGarbled, since
	// ErrNotFound would tell the caller that the entity does not exist. ErrSkipped makes the query skip the
	// row.
	Load func(ctx context.Context, of Reading, p tables.Properties) (tables.Properties, error)
	// Filterable reports whether rows store a property unchanged; nil means every property. A query with a condition
	// on any other property returns ErrInvalid.
	Filterable func(property string) bool
	// Adds reports whether rows can have a property for which T has no field; nil means none. A query may name these properties
	// and those of T's fields, and no others.
	Adds func(property string) bool
	// RefusesMerge is the error of Merge, if some properties cannot be stored without the others; nil if they
	// can.
	RefusesMerge error
	// Protects returns how a property of an entity with this key is protected; nil for a transform that does not
	// encrypt or sign. It must be pure.
	Protects func(entity tables.Key, property string) Protection
	// Streams reports that entities do not hold the content of their blobs but references, through which the
	// program reads the content later.
	Streams bool
	// Authentication is for a transform whose Load rejects any entity that Store did not produce.
	Authentication *Authentication
}

// Authentication checks that a copy belongs to its entity. With it, a read through a copy also checks that the
// entity belongs under the copy's key: otherwise anyone who can write rows could store an entity's copy under
// another entity's key. If the copy contains all properties, the repository computes from them which copies the
// entity has. Otherwise ProvesCopy is called; if ProvesCopy returns false, the repository reads the entity
// itself, with 1 more request.
type Authentication struct {
	// Properties names the stored properties that every copy contains and every projection reads, even if they
	// are not requested.
	Properties []string
	// ProvesCopy reports whether the stored properties of a copy, which Load has accepted, prove that the entity had a
	// copy in this row of the table when it was written.
	ProvesCopy func(ctx context.Context, of Reading, table *tables.Table, row tables.Key, stored tables.Properties) (bool, error)
	// NotAuthentic is the error for a copy under a key that its entity does not have.
	NotAuthentic error
}

// Protection says how a property is protected in storage. A level includes those before it.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	Signed                 // changes are detected
	Encrypted              // also unreadable without the key
)

// Reading describes the row from which properties were read.
type Reading struct {
	Key tables.Key // key of the entity, even if the properties were read from one of its copies
	// Partial reports that properties of the entity may be missing, because the caller has selected some, or
	// the copy stores only some. Replace refuses such an entity.
	Partial bool
}

// EncryptTag is the struct tag of fields that must be stored encrypted: `encrypt:"true"`.
const EncryptTag = "encrypt"

// Layout spreads an entity over several rows of one transaction. Its functions must be pure, and all must be set: the
// repository chooses the keys, and reads and writes the rows.
type Layout struct {
	// Split divides properties into rows. Equal properties must give equal rows.
	Split func(p tables.Properties) (*LaidOut, error)
	// Versions returns the versions of the further rows, in order. directory, here and below, is
	// LaidOut.Directory.
	Versions func(directory string) ([]string, error)
	// Rows returns the indexes, from 0, of the further rows that hold the named properties, or of all further
	// rows if names is nil.
	Rows func(directory string, names []string) ([]int, error)
	// Join reverses Split, given the first row and, by index, the further rows whose indexes Rows has returned.
	// It returns ErrOutdated if they belong to different versions; the repository then reads all rows again.
	Join func(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error)
	// Filterable reports whether the first row always contains a property that the entity has. A query with a
	// condition on any other property returns ErrInvalid, since it would miss entities.
	Filterable func(property string) bool
}

// LaidOut is an entity's properties, divided into rows.
type LaidOut struct {
	First     tables.Properties // the properties of the row under the entity's own key
	Directory string            // describes the further rows for Join; stored in the first row; "" if there are none
	Further   []FurtherRow      // at most MaxFurtherRows
}

// FurtherRow is one of the rows beside the first.
type FurtherRow struct {
	Properties tables.Properties
	Version    string // changes whenever the properties change; a merge does not rewrite rows of the same version
}

// Reconciliation is one entity in the input of Effect.Reconcile.
type Reconciliation struct {
	Key    tables.Key
	Entity any               // nil if the entity does not exist
	Stored tables.Properties // all properties of the entity, as stored
	// Keys come, in a worker, from a queue message, which anyone who can write to the queue may have forged: check that a key can be the
	// entity's before you change or delete what it names.
	Keys []string
	// ChangeID identifies the change set whose message names the keys. The writer and every delivery of the
	// message have the same ChangeID. Another attempt to make the change has another message and another
	// ChangeID.
	ChangeID string
	// Err is set by Reconcile if it cannot reconcile the entity.
	Err error

	pattern string
}

// ReconcileEach returns an Effect.Reconcile for a pattern whose entities share nothing outside of the
// partition. It calls reconcile for each entity, and continues with the next one after an error.
func ReconcileEach(reconcile func(ctx context.Context, r *Reconciliation) error) func(context.Context, []*Reconciliation) error {
	return func(ctx context.Context, all []*Reconciliation) error {
		for _, r := range all {
			r.Err = reconcile(ctx, r)
		}
		return nil
	}
}

// NewReconciliation is for patterns that repair their own rows outside of any change. r.Keys are the keys that
// may be written, and pattern is the name of the pattern that owns the rows.
func NewReconciliation(pattern string, r Reconciliation) *Reconciliation {
	r.pattern = pattern
	return &r
}

// Owns reports whether the message names a key. Reconcile may write only named keys.
func (r *Reconciliation) Owns(ctx context.Context, key string) bool {
	return slices.Contains(r.Keys, key) || !lease.Holds(ctx, lease.OwnKeys)
}

// Write writes rows that belong to no single entity, such as a shared list, for one of the named keys. It
// writes them in one transaction, so all must be in one partition of the table. If the rows concern several
// keys or entities, check each of these keys with Owns first. Write uses Row.Key and Row.Properties. ReplaceRow
// and DeleteRow require Row.ETag, so that the service rejects a delayed write. Write returns ErrConflict if a
// row has changed, appeared or disappeared: then read the rows again and repeat.
func (r *Reconciliation) Write(ctx context.Context, key string, table *tables.Table, operations ...RowOperation) error {
	const op = "Reconcile"
	if !r.Owns(ctx, key) {
		return errs.Invalidf(op, "the message does not name %q, so it cannot be written for this message; name it in Outside or OutsideKeys", key)
	}
	writes := make([]tablerow.Row, len(operations))
	for i := range operations {
		var err error
		if writes[i], err = core.SharedWrite(core.SharedVerb(operations[i].Verb), operations[i].Row, r.pattern); err != nil {
			return errs.Invalid(op, err)
		}
		writes[i].Pattern = r.pattern
	}
	_, _, err := (*core.Table)(table).Commit(ctx, op, writes...)
	return errs.Amend(err, func(e *tables.Error) {
		switch tables.KindOf(e) {
		case tables.ErrExists, tables.ErrNotFound: // a concurrent writer has inserted or deleted the row
			e.Kind = tables.ErrConflict
		}
	})
}

// edits limits how often Edit plans and writes.
const edits = 10

// Edit calls plan, which reads rows and returns their writes, and writes them as Write does. If plan or Write returns ErrConflict,
// Edit waits and does both again, up to 10 times. It writes nothing if plan returns no operations.
func (r *Reconciliation) Edit(ctx context.Context, key string, table *tables.Table, plan func() ([]RowOperation, error)) error {
	return backoff.Retry(ctx, edits, func() (again bool, err error) {
		operations, err := plan()
		if err == nil && len(operations) > 0 {
			err = r.Write(ctx, key, table, operations...)
		}
		return errors.Is(err, tables.ErrConflict), err
	})
}

// Effect is what a pattern stores beside copies, outside of the entity's partition or in rows that entities share. With
// OutsideKeys and Reconcile, the repository keeps what is outside of the partition consistent under an intent. With Expected,
// List and Read, Verify, Repair and Rebuild compare the facts that the pattern stores for entities with those that the entities
// require. A fact is something that a pattern stores for an entity and that is not a copy.
type Effect struct {
	// OutsideKeys returns a key, in the pattern's own notation, for everything outside of the partition that a
	// change can touch: the old keys and the new ones. The repository stores the keys in the intent before it
	// writes anything else. OutsideKeys is called before Transform.Store, so change.Stored may be nil. A
	// pattern with OutsideKeys needs Reconcile.
	OutsideKeys func(ctx context.Context, change *Change) ([]string, error)
	// Reconcile makes what is stored under each named key match the current state of its entity. all are the
	// entities of the repository in one transaction or message: Reconcile can read and write once what several
	// of them share, such as a list. The writer calls it after the commit; if the writer died, a worker calls
	// it, possibly several times, in other processes and in any order. It must be idempotent, and write only
	// the named keys. It sets Reconciliation.Err of an entity that it cannot reconcile, and continues with the
	// others; an error that it returns concerns all of them. For a pattern whose entities share nothing, use
	// ReconcileEach.
	Reconcile func(ctx context.Context, all []*Reconciliation) error
	// Last makes Reconcile run after the Reconcile functions of all other patterns, and only for entities for
	// which none of these failed. An index key that another entity owns does not count as such a failure. A
	// pattern that calls the program sets Last, so that the program finds the entity by its indexes.
	Last bool
	// Async leaves the effects of Reconcile to workers. patterns.Async sets this field.
	Async bool

	// Expected returns the facts that the pattern must store for an entity. It must be pure.
	Expected func(entity any) ([]Fact, error)
	// List yields the facts that are stored for the entities in the scope, in any order. For a fact that cannot
	// be read, it yields a Fact with an Err.
	List func(ctx context.Context, scope Scope) iter.Seq2[Fact, error]
	// Read reads some of the facts that are stored. Each element of asked has Place and Entity set. For each
	// element, in the same order, Read returns the fact that is stored for this entity at this place, or nil.
	// It should read facts that are stored together, such as the entries of one list, with one request. If
	// every fact needs its own request, use ReadEach.
	Read func(ctx context.Context, asked []Fact) ([]*Fact, error)
	// Remove is for a pattern that contributes to the entity's own transaction. Repair writes an entity again
	// to restore a missing fact, and calls Remove for a fact that no entity requires. Remove reads the place,
	// calls wanted, and unless that returns true removes the fact under the ETag that it read. After a conflict
	// it starts again. Each write that makes an entity require the fact must change the ETag at the place, so
	// that Remove detects the write.
	Remove func(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error
}

// Totals lets Verify, Repair and Rebuild compare the numbers that a pattern adds up from several entities of a partition, such as a
// count, with the entities. A pattern that stores such numbers needs both functions.
type Totals struct {
	// Wrong yields the keys of stored rows whose numbers seem to differ from what the entities add up to. It reads the entities once for
	// many rows, and need not be exact while writers go on.
	Wrong func(ctx context.Context, scope Scope) iter.Seq2[tables.Key, error]
	// Agree adds up the entities of one of these rows again, while the row does not change. It returns what is wrong, nil for nothing or if
	// that cannot be known. If write is set, it corrects the row under its ETag. err is why it could not; without wrong, it ends the job.
	Agree func(ctx context.Context, row tables.Key, write bool) (wrong, err error)
}

// Fact is one thing that a pattern stores for one entity.
type Fact struct {
	Place  string // in the pattern's notation; if the pattern has OutsideKeys, one of these keys
	Entity tables.Key
	Digest [16]byte // of the content; zero if the fact has no content
	Err    error    // why the fact cannot be read
}

// readsAtOnce is how many facts ReadEach reads at the same time.
const readsAtOnce = 8

// ReadEach returns an Effect.Read that calls read for each fact, several concurrently. read returns false as its
// second result, held, if nothing is stored.
func ReadEach(read func(ctx context.Context, place string, entity tables.Key) (fact Fact, held bool, err error)) func(context.Context, []Fact) ([]*Fact, error) {
	return func(ctx context.Context, asked []Fact) ([]*Fact, error) {
		found := make([]*Fact, len(asked))
		one := func(ctx context.Context, i int) error {
			fact, held, err := read(ctx, asked[i].Place, asked[i].Entity)
			if err == nil && held {
				found[i] = &fact
			}
			return err
		}
		if len(asked) == 1 {
			return found, one(ctx, 0)
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(readsAtOnce)
		for i := range asked {
			group.Go(func() error { return one(ctx, i) })
		}
		return found, group.Wait()
	}
}

// Scope says which entities of a table are verified.
type Scope struct {
	Partitions []string // the entities' partitions; nil for all
}

// Contains reports whether an entity is in the scope.
func (s Scope) Contains(entity tables.Key) bool {
	return s.Partitions == nil || slices.Contains(s.Partitions, entity.Partition)
}
