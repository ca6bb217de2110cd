package driver

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Host gives a pattern access to its repository. Only package patterns implements it. The entities that it takes and returns are
// pointers to the repository's type: use As, Got and tables.Query[T](host.Query()). Host is not generic, since the compiler would
// compile all its methods again for each type of entity.
type Host interface {
	// Table is the repository's table.
	Table() *tables.Table
	// PropertyNames lists the properties that entities store, nil if they can store any.
	PropertyNames() []string
	// Rows is the range of the entities' own row keys, the zero Span if the schema sets none.
	Rows() compoundkey.Span
	// Owns reports whether a row with this key and these properties is an entity according to the schema. The
	// row must not be one that a pattern has added.
	Owns(key tables.Key, stored tables.Properties) bool
	// Patterns returns the repository's patterns. During Attach, it returns those attached earlier.
	Patterns() []*Implementation
	// MayName returns an error if Schema.MayName does not let an entity name another key. A pattern that takes the key of
	// another entity from a stored row calls it before it writes there, or copies from there.
	MayName(entity, other tables.Key) error
	// KeyOf returns the key that the schema gives an entity; MetaOf returns its Meta.
	KeyOf(v any) tables.Key
	MetaOf(v any) *tables.Meta

	// Get reads one entity. Requests: 1, and those of patterns that keep a part of the entity in further rows
	// or blobs.
	Get(ctx context.Context, key tables.Key) (any, error)
	// GetMany reads entities by their keys concurrently. It yields them in the order of keys, and skips keys
	// without an entity. For a row that cannot be decoded it yields tables.ErrGarbled with Error.OfRow, and the
	// loop may continue. It yields any other error once, as the last element. concurrency is the maximum number of
	// requests in flight; 0 or less means 8. Requests: 1 for each key.
	GetMany(ctx context.Context, keys []tables.Key, concurrency int) iter.Seq2[any, error]
	// GetEach reads entities by their keys. It returns one element for each key, in the order of keys, nil for
	// an entity that does not exist. Keys of a partition that lie close together are read by one query of their
	// range. Requests: 1 for each partition whose keys lie close together; at most 1 for each key, and 1 more
	// for each partition.
	GetEach(ctx context.Context, keys []tables.Key) ([]any, error)
	// Query begins a query of the entities.
	Query() Query
	// Copies returns a query of the copies that Implementation.Copies plans; it yields each copy as an entity.
	// span is the range of the copies' row keys; keep names the properties that the copies store, nil for all.
	Copies(span compoundkey.Span, keep []string) Query
	// GetCopy reads one of the rows that Copies queries. Requests: 1.
	GetCopy(ctx context.Context, key tables.Key, keep []string) (any, error)
	// GetPrimary reads the entity to which a copy belongs, given the copy's key. If a Transform authenticates
	// copies, it returns ErrNotFound for an entity that has no copy under this key. Requests: 2.
	GetPrimary(ctx context.Context, copied tables.Key) (any, error)
	// OutsideCopies returns a query of the copies that Implementation.Outside plans in a table; it yields each copy as an
	// entity. A nil table means the repository's own.
	OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) Query
	// GetOutsideCopy reads one of the rows that OutsideCopies queries. Requests: 1, and for a marked copy those that follow it to the entity.
	GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (any, error)

	// Merge and Update do what the Repository's methods do.
	Merge(ctx context.Context, v any, properties ...string) error
	Update(ctx context.Context, key tables.Key, change func(any) error) (any, error)
	// Apply does what Insert, Replace or Delete does, with options, for packages built on a repository.
	// Afterwards Meta.WriteID of v is the ID of this write; the rows of ApplyOptions.Beside get the same ID.
	// Requests: as many as Insert, Replace or Delete makes.
	Apply(ctx context.Context, kind ChangeKind, v any, options *ApplyOptions) error
	// Along returns a change for ApplyOptions.Along. incarnation is as in ApplyOptions.
	Along(kind ChangeKind, v any, incarnation string) Along
	// Stage adds an insert, a replacement or a delete to a transaction on the same table and partition: see
	// Repository.StageInsert. Within Companions, ctx is passed to the companions of the staged change. If the
	// transaction already changes the entity, a ChangeReplace of the value that GetIn has returned edits that
	// change. If a staged change is invalid or fails, Error.Change is the number of the change whose Companions
	// staged it.
	Stage(ctx context.Context, kind ChangeKind, x *tables.Transaction, v any)
	// StageUnchanged makes the transaction fail if the entity has changed since v was read. If the transaction
	// already writes the entity, StageUnchanged adds nothing; the transaction then fails with ErrConflict if it
	// writes another version than that of v.
	StageUnchanged(ctx context.Context, x *tables.Transaction, v any)
	// GetIn returns an entity as it will be after the transaction that Companions got: the staged entity, or
	// else the stored one. It returns ErrNotFound if the transaction deletes the entity. Requests: 1 for an
	// entity that the transaction does not change.
	GetIn(ctx context.Context, x *tables.Transaction, key tables.Key) (any, error)
	// CheckUnder does what Repository.Check does, for an entity whose key is still unknown because it depends
	// on data that was not read yet. key is a substitute of the same length. Requests: 0.
	CheckUnder(ctx context.Context, key tables.Key, v any) error
}

// ApplyOptions are the options of Host.Apply; nil is the same as the zero value.
type ApplyOptions struct {
	// Incarnation is the entity's incarnation ID from this change on, for example to recognize a repeated
	// insert of the same entity. "" means a new ID for an insert, and the entity's present ID for a replace.
	Incarnation string
	// Beside are rows that are written in the entity's transaction. If one of them has changed, appeared or
	// disappeared, nothing is written, and the error is the same as for an entity: ErrConflict, ErrExists or
	// ErrNotFound.
	Beside Beside
	// Along are changes of further entities of the same partition and table, of any repositories, which are
	// made in the same transaction. All these changes and the rows of Beside get one write ID. Error.Change
	// of an error is 1 for v, 2 for the first change of Along, and so on.
	Along []Along
}

// Along is a change that Host.Apply makes in the transaction of another one; Host.Along returns it.
type Along handle.Any

// Query is a query of a repository's entities, of type T. Convert it to tables.Query[T].
type Query core.Query

// As returns an entity as a *T, nil for nil. T must be the type of the repository's entities.
func As[T any](entity any) *T {
	if entity == nil {
		return nil
	}
	return entity.(*T)
}

// Got returns the results of a method of Host as a *T and an error, as As does.
func Got[T any](entity any, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return As[T](entity), nil
}

// Of makes a function of an Implementation out of one that gets the entity as a *T.
func Of[T, R any](f func(entity *T) (R, error)) func(entity any) (R, error) {
	return func(entity any) (R, error) { return f(As[T](entity)) }
}

// Binding gives a pattern access to its repository after NewRepository has succeeded. Keep a Binding in an
// unexported field of the pattern's type, and set Implementation.Binding to its address. A pattern belongs to
// one repository. The zero value is ready to use.
type Binding handle.Slot[Host]

// Host returns the repository. It returns ErrWiring before NewRepository has succeeded. op and pattern name the
// operation and the pattern in the error.
func (b *Binding) Host(op, pattern string) (Host, error) {
	host := (*handle.Slot[Host])(b).Get()
	if host == nil {
		return nil, &tables.Error{Op: op, Pattern: pattern, Kind: tables.ErrWiring, Err: errors.New("the pattern was not given to a repository; give it to NewRepository")}
	}
	return *host, nil
}

// CheckApart returns an error if row keys that begin with the name and "_" would lie in own, the range of the
// entities' row keys. what describes the rows in the error, such as "the index". If own is zero, CheckApart
// accepts every name.
func CheckApart(what, name string, own compoundkey.Span) error {
	if own != (compoundkey.Span{}) && own.Overlaps(compoundkey.Starting(name)) {
		return fmt.Errorf("the row keys of %s, %s_..., are in the range of the entities' own (Schema.Prefix, Schema.Rows); give it another name", what, name)
	}
	return nil
}

// FailedQuery returns a query of which Plan, and every method that would send it, returns err. A method that
// returns a query returns a FailedQuery if its pattern was not given to a repository, so that callers can
// chain methods without a nil check.
func FailedQuery[T any](err error) tables.Query[T] {
	return tables.Query[T](core.FailedQuery(err))
}

// Errors that patterns, repositories and queues exchange internally.
var (
	// ErrOutdated reports that the data that was read has been replaced meanwhile. A Transform or a Layout
	// returns it; the repository then reads the entity again. A caller never sees it.
	ErrOutdated = errors.New("replaced meanwhile")
	// ErrSkipped is what Transform.Load returns for a row that is not an entity of its type; the query skips
	// the row. A caller never sees it.
	ErrSkipped = errors.New("skipped")
	// ErrUnknownPattern reports that an intent names a pattern that this program's repository does not have.
	// The queue of intents keeps the intent for a newer build. The caller of a change never sees it.
	ErrUnknownPattern = errors.New("unknown pattern")
)
