package patterns

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/lease"
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

// Reconciliation is what an IntentContributor has to bring into agreement.
type Reconciliation struct {
	Key    tables.Key
	Entity any               // *T, nil when there is no such entity
	Stored tables.Properties // of the entity, as stored
	Keys   []string
	// Received says that Keys were read from a message, which whoever may put messages can have written. What a key names is
	// checked to be the entity's then, before it is changed or deleted. A writer's own keys are not received.
	Received bool

	pattern string
}

// NewReconciliation is for patterns that mend rows of their own outside of any change: it names what may be written.
func NewReconciliation(p Pattern, entity tables.Key, keys ...string) *Reconciliation {
	return &Reconciliation{Key: entity, Keys: keys, pattern: p.PatternName()}
}

// Owns reports whether the message names a key: nothing else may be written for it.
func (r *Reconciliation) Owns(ctx context.Context, key string) bool {
	return slices.Contains(r.Keys, key) || !lease.Holds(ctx, lease.OwnKeys)
}

// Write writes rows that belong to no one entity, such as a list that many share, for one of the named keys: rows of one
// partition of a table, in one transaction. Row.Key and Row.Properties are used, and Row.ETag by ReplaceRow and DeleteRow,
// which have one, so that what comes late is refused: ErrConflict, ErrExists and ErrNotFound say that the rows have changed.
func (r *Reconciliation) Write(ctx context.Context, key string, table *tables.Table, rows ...RowOperation) error {
	const op = "Reconcile"
	if !r.Owns(ctx, key) {
		return tables.Invalidf(op, "the message does not name %q", key)
	}
	operations := make([]operation, len(rows))
	for i := range rows {
		var err error
		if operations[i], err = contributed(r.pattern, &rows[i]); err != nil {
			return tables.Invalid(op, err)
		}
	}
	_, err := commit(ctx, table, op, operations...)
	return err
}

// Stage orders the PropertyTransformers of a repository.
type Stage uint8

// The stages, in the order of writing; reading goes through them backwards.
const (
	StageType    Stage = iota // the entity says what it is, and what is read becomes that
	StageSpill                // large values leave the entity
	StageEncrypt              // what stays is encrypted
)

// PropertyTransformer rewrites properties between T and storage.
type PropertyTransformer interface {
	Pattern
	Stage() Stage
	// Store turns the entity's properties into those to store: all of them, or those that a merge sends. It may write
	// outside what OutsideKeys has named, unless change.DryRun. Each copy of the entity is made of the result.
	Store(ctx context.Context, change *Change, p tables.Properties) (tables.Properties, error)
	// Load undoes Store. ErrOutdated says that what the properties name outside has gone, as it does when the entity is
	// replaced: then the row is read again, and the error is ErrGarbled only when the row is the same as before. ErrNotFound
	// becomes ErrGarbled as well: it would say that there is no entity. ErrLeftOut says that no entity is to be made of the
	// row.
	Load(ctx context.Context, of Reading, p tables.Properties) (tables.Properties, error)
	// RefusesMerge says why some properties cannot be stored without the others, nil where they can.
	RefusesMerge() error
	// Filterable reports whether rows hold a property as it is. A condition on another is refused.
	Filterable(property string) bool
}

// CopyAuthenticator is implemented by a PropertyTransformer whose Load refuses an entity that is not as Store has left it. With
// one, a read through a copy also checks that the entity belongs under the copy's key: otherwise whoever can write rows could put
// an entity's copy, as it is, under another entity's key. The key is computed again from what was read, where the copy holds
// the whole entity. Of a copy that was read in part, ProvesCopy is asked; where it cannot tell, the entity itself is read, for 1
// request more.
type CopyAuthenticator interface {
	PropertyTransformer
	// SealProperties names stored properties that every copy holds and every projection reads, asked for or not.
	SealProperties() []string
	// ProvesCopy reports whether the stored properties of a copy, which Load has accepted, show that the entity had a copy in
	// this row of the table when it was written.
	ProvesCopy(ctx context.Context, of Reading, table *tables.Table, row tables.Key, stored tables.Properties) (bool, error)
	// NotAuthentic is the error of a copy under a key that its entity does not have.
	NotAuthentic() error
}

// SealedContributor is implemented by a pattern that stores properties of its own with the entity, which say how the others are
// read, such as type and version. An encryption signs them.
type SealedContributor interface {
	Pattern
	// SealedProperties names them.
	SealedProperties() []string
}

// Protection says how a property is protected in storage. A higher one holds all that a lower one does.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	Signed                 // whoever changes it is found out
	Encrypted              // and nobody reads it who does not have the key
)

// PropertyProtector is implemented by a PropertyTransformer that encrypts or signs.
type PropertyProtector interface {
	PropertyTransformer
	// Protects returns how a property of an entity with this key is protected. It is pure.
	Protects(entity tables.Key, property string) Protection
}

// Reading says what properties were read of.
type Reading struct {
	Key tables.Key // of the entity, also when they come from a copy of it
	// Partial says that properties may be missing that the entity has: the caller asked for some, or the copy keeps no
	// more. What was read so is never written back whole.
	Partial bool
}

// Streamer is implemented by a PropertyTransformer whose entities, as they are read, hold references to what is outside,
// to be read later, in place of the content.
type Streamer interface {
	PropertyTransformer
	Streams() bool
}

// Layout spreads an entity over several rows of one transaction. A repository has at most one. It is pure: the
// repository reads and writes the rows, under keys of its own making.
type Layout interface {
	Pattern
	// Split lays properties out over rows. The same properties are always laid out alike.
	Split(p tables.Properties) (*LaidOut, error)
	// Versions returns the versions of the further rows.
	Versions(directory string) ([]string, error)
	// Rows returns which of the further rows hold the named properties, all that there are for nil.
	Rows(directory string, names []string) ([]int, error)
	// Join undoes Split, given the first row and all further rows that Rows has returned, by index. ErrOutdated says that
	// they are not of one version: then all are read again.
	Join(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error)
	// Filterable reports whether every first row holds a property, if the entity has it. A condition on another is
	// refused: it would miss entities.
	Filterable(property string) bool
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

// ChangeKind is what happens to an entity.
type ChangeKind uint8

// The kinds of change. What a caller does not know (Upsert, the unconditional forms) is read first and becomes one of
// these.
const (
	ChangeInsert ChangeKind = iota
	ChangeReplace
	ChangeMerge
	ChangeDelete
)

// String returns the verb.
func (k ChangeKind) String() string {
	return [...]string{"Insert", "Replace", "Merge", "Delete"}[k]
}

// Change is one logical change of an entity, as patterns see it.
type Change struct {
	Kind   ChangeKind
	Key    tables.Key
	ID     string            // unlike that of any other change; names new things outside
	Entity any               // *T as it will be, or as it was read for a delete
	Given  any               // *T of the caller, whose properties are merged; nil for the other kinds
	Stored tables.Properties // as it will be stored, once the transformers have run; nil for a delete
	DryRun bool              // for Explain and Check: nothing may be written

	standIn     bool              // Key stands for one that is not known yet
	incarnation string            // given by the caller, else ""
	beside      *Beside           // rows of Apply's caller, nil for none
	given       tables.Properties // what a merge sends
	base        tables.Properties // of a merge: the properties as they are stored
	whole       bool              // a merge that writes the row whole

	old     *tables.State
	notes   map[string]any         // by pattern
	gone    map[string]azcore.ETag // rows that turned out not to be there when they were to be deleted, with the ETag of the entity that had them
	adopted map[string]azcore.ETag // copies that turned out to be left behind, by row key
}

// Remembered returns what the pattern remembered of the entity's old state; nil for an insert.
func (c *Change) Remembered(pattern string) []string {
	return priorOf(c.old).patterns[pattern]
}

// MergeWhole is for a PropertyTransformer's Store that cannot merge into what is stored, since some of it has to go: what Store
// returns is all of the entity then, and takes the place of the row under the ETag of the merge. stored are the properties as
// they are.
func (c *Change) MergeWhole() (stored tables.Properties) {
	c.whole = true
	return slices.Clone(c.base)
}

// Writes reports whether the change writes a property: an insert or a replace writes all, a merge those that it was given.
func (c *Change) Writes(property string) bool {
	return c.Kind != ChangeDelete && (c.Kind != ChangeMerge || c.given.Has(property))
}

// Intent names what a change may have left undone outside of the entity's partition.
type Intent struct {
	ID         string // of the change
	Repository string // Schema.Name
	Key        tables.Key
	// Outside are the keys by pattern, in the words of each pattern.
	Outside map[string][]string

	received bool // see Reconciliation.Received
}

// IntentRunner makes changes with outside effects safe against crashes. eventual.Queue is the one for production.
type IntentRunner interface {
	// Register names the repository whose intents Run will get, and the function that carries on with one whose writer
	// died. NewRepository calls it once. A name that is taken is an error.
	Register(repository string, reconcile func(ctx context.Context, intent Intent) error) error
	// Run makes the intent durable, calls commit, then reconcile, also when commit failed and it is known that nothing
	// was committed, and forgets the intent once reconcile has returned nil. If the process dies on the way, or a call fails
	// so that nobody knows, somebody calls the registered function with the intent later. Both calls may only send while the
	// contexts they get are alive. An error of commit is returned as it is, or wrapped in one that errors.Is finds it in.
	// Once commit has returned nil the change is made: Run returns nil then, also when reconcile failed, since the intent
	// is still there.
	Run(ctx context.Context, intent Intent, commit, reconcile func(context.Context) error) error
}
