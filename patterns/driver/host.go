package driver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Host is what a pattern sees of its repository. Only package patterns implements it.
type Host[T any] interface {
	// Table is the repository's table.
	Table() *tables.Table
	// PropertyNames lists the properties that entities store, nil when they take any.
	PropertyNames() []string
	// RowPrefix is the prefix of the entities' own row keys, "" when the schema does not say.
	RowPrefix() string
	// Patterns are those of the repository. In Attach, those that attached before.
	Patterns() []Implementation[T]
	// KeyOf is the key that the schema gives an entity; MetaOf is its Meta.
	KeyOf(v *T) tables.Key
	MetaOf(v *T) *tables.Meta

	// Get reads one entity. Requests: 1.
	Get(ctx context.Context, key tables.Key) (*T, error)
	// GetMany reads entities by their keys, several at once, and yields those that are there in the order of keys. An error comes
	// once, last. Requests: 1 for each key.
	GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error]
	// Query begins a query of the entities.
	Query() tables.Query[T]
	// Copies reads the rows of Implementation.Copies as entities. span is where their row keys lie; keep are the properties that
	// they hold, nil for all.
	Copies(span compoundkey.Span, keep []string) tables.Query[T]
	// GetCopy reads one of these rows. Requests: 1.
	GetCopy(ctx context.Context, key tables.Key, keep []string) (*T, error)
	// GetPrimary reads the entity that one of these rows belongs to, given the row's key. Where a Transform authenticates copies, it
	// is ErrNotFound if the entity does not have a copy there. Requests: 2.
	GetPrimary(ctx context.Context, copied tables.Key) (*T, error)
	// OutsideCopies reads the rows of Implementation.Outside in a table, nil for the repository's own, as entities.
	OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) tables.Query[T]
	// GetOutsideCopy reads one of these rows. Requests: 1.
	GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (*T, error)

	// Update and Merge are those of the Repository.
	Merge(ctx context.Context, v *T, properties ...string) error
	Update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error)
	// Apply is Insert, Replace or Delete with options: for what builds on a repository. Meta.WriteID of v is the id of this write
	// afterwards, which the rows beside it hold too. Requests: as the verb.
	Apply(ctx context.Context, kind ChangeKind, v *T, options *ApplyOptions) error
	// Stage adds an insert, a replacement or a delete to a transaction on the same table and partition: see Repository.StageInsert.
	Stage(ctx context.Context, kind ChangeKind, x *tables.Transaction, v *T) error
	// CheckStage is ErrInvalid, naming the pattern, where changes cannot be staged since they have effects outside of the
	// partition. Requests: 0.
	CheckStage() error
	// CheckUnder is Repository.Check for an entity whose key the schema cannot tell yet, such as one that depends on what is still
	// to be read. The given key stands for it, and is as long. Requests: 0.
	CheckUnder(ctx context.Context, key tables.Key, v *T) error
}

// ApplyOptions are what Host.Apply adds to a change; nil is the same as the zero value.
type ApplyOptions struct {
	// Incarnation is the id of the entity's life from this change on. With it a repeated insert of the same thing is known. "" is a
	// new one for an insert, and the entity's own for a replace.
	Incarnation string
	// Beside are rows that are written in the entity's transaction. If one of them has changed, nothing is written, and the error is
	// that of an entity that has changed: ErrConflict, ErrExists or ErrNotFound.
	Beside Beside
}

// Binding is where a pattern finds its repository once NewRepository has succeeded. Keep one in an unexported field of the
// pattern's type, and name it in Implementation.Binding: a pattern belongs to one repository. The zero value is ready to use.
type Binding[T any] struct{ host atomic.Pointer[Host[T]] }

// Host is ErrInvalid before NewRepository has succeeded. op and pattern are the operation and the pattern that ask, for the error.
func (b *Binding[T]) Host(op, pattern string) (Host[T], error) {
	host := b.host.Load()
	if host == nil {
		return nil, &tables.Error{Op: op, Pattern: pattern, Kind: tables.ErrInvalid, Err: errors.New("the pattern was not given to a repository; give it to NewRepository")}
	}
	return *host, nil
}

// Bind is for package patterns: it binds the pattern to its repository, or only checks that it is free where host is nil.
func (b *Binding[T]) Bind(_ rows.Pass, host Host[T]) error {
	var next *Host[T]
	if host != nil {
		next = &host
	}
	if !b.host.CompareAndSwap(nil, next) {
		return fmt.Errorf("it belongs to a repository on table %s already; make another for this one", (*b.host.Load()).Table().Name())
	}
	return nil
}

// Release is for package patterns: it makes the pattern free again where its repository did not come to be.
func (b *Binding[T]) Release(rows.Pass) { b.host.Store(nil) }
