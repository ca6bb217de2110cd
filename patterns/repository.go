package patterns

import (
	"context"
	"iter"
	"reflect"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/ownrows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Schema describes how a Repository stores entities of type T.
type Schema[T any] struct {
	// Name identifies the repository in intents (default: the table's name); it is unique in its Store. Stored intents
	// contain it, so do not change it between versions of a program.
	Name string
	// Key returns the entity's key. It must be pure, and an entity's key must never change. Nil means the fields PartitionKey and RowKey
	// of T.
	Key func(*T) tables.Key
	// Rows is a range that contains all row keys that Key returns, such as compoundkey.Starting("order") or,
	// for keys of another program, compoundkey.Range("O-", "O."). With Rows, a query of a partition's entities
	// is a range query that does not read the partition's index rows. Without Rows (the default: all keys), the
	// query reads and skips these.
	Rows compoundkey.Span
	// Mine reports whether a key in the range Rows can be that of an entity of this repository (default:
	// always). Set it if Rows also contains keys of other rows, which queries then read and skip. Mine must be
	// pure.
	Mine func(tables.Key) bool
	// Where is the condition that the entities' stored properties meet, such as tables.Eq("Kind", "order") in a
	// table of several types (default: none). Queries send it to the service; if a row is read by its key, the
	// library compares its properties. The write of an entity that does not meet the condition returns
	// ErrInvalid. It has at most 5 comparisons, of properties for which T has fields. No program may change
	// these properties of an entity: the entity's copies would stay, and Verify could not tell them from those
	// of another type.
	Where tables.Condition
	// MayName reports whether an entity may name the key of another one: a holder or source of package denormalization, a
	// parent of relationships.Members, or the copy that an archive.Mover makes (default: every key). A change that names
	// another key returns ErrInvalid, and for a stored row that does, the library writes and copies nothing elsewhere. Set it
	// if somebody who may write only some partitions must not reach the others. It must be pure.
	//
	// It does not concern indexes: a row of an index belongs to its entity, wherever the row is stored.
	MayName func(entity, other tables.Key) bool
	// MaxAttempts is the maximum number of attempts of one change after conflicts (default 10).
	MaxAttempts int
	// OtherBuilds says that programs which do not know an index over partitions of this build, or of which this build does not know
	// one, may write the entities. Set it in the build before the deployment that adds the index, and in the one that adds it. Remove it
	// once no earlier build runs and a Rebuild has given nothing to Found; a second Rebuild then settles the rows of indexes over
	// partitions, which stay marked while it is set, so that reads follow them to the entity. Without it, a write of an entity whose row names an index that this build does not
	// know returns ErrWiring.
	OtherBuilds bool
}

// Repository stores entities of one type with all their patterns. It plans every change with all its rows and writes
// it in one entity group transaction. T is a struct that embeds Meta. A Repository is safe for concurrent use.
type Repository[T any] struct {
	engine   *engine.Engine
	patterns []driver.Implementation[T]
}

// Pattern stores something that a Repository keeps consistent with its entities, such as the copies of an
// index. Package driver documents how to implement one.
type Pattern[T any] interface {
	// Attach returns the pattern's Implementation. NewRepository calls it once. It makes no request and does not
	// modify the pattern.
	Attach(host driver.Host[T]) (driver.Implementation[T], error)
}

// NewRepository returns a Repository with these patterns, and binds each pattern to it. A pattern belongs to
// one repository. If a pattern has effects outside of the entity's partition, table must be one that
// Store.Table or Store.RunTimeTable has returned: the intents go to the store's queue. It returns ErrWiring for
// an invalid schema, or for patterns that cannot be combined. Requests: 0.
func NewRepository[T any](table *tables.Table, s Schema[T], attached ...Pattern[T]) (*Repository[T], error) {
	const op = "NewRepository"
	if table == nil {
		return nil, errs.Wiringf(op, "", "the table is nil; open it with Store.Table")
	}
	if table.Account() == nil {
		return nil, errs.Wiringf(op, "", "%w", (*core.Table)(table).Usable())
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, errs.Amend(err, func(e *tables.Error) { e.Op, e.Table = op, table.Name() })
	}
	key, err := s.keyOf((*core.Codec)(codec))
	if err != nil {
		return nil, errs.Wiringf(op, "", "Schema.Key is nil, and %w", err)
	}
	r := &Repository[T]{engine: &engine.Engine{Table: (*core.Table)(table), Codec: (*core.Codec)(codec), Names: codec.PropertyNames(),
		Schema: engine.Schema{Name: s.Name, Key: key, Own: ownrows.Rows{Span: s.Rows, Mine: s.Mine, Where: s.Where}, MayName: s.MayName, MaxAttempts: s.MaxAttempts, OtherBuilds: s.OtherBuilds}}}
	if !r.engine.Codec.HasMeta() {
		return nil, errs.Wiringf(op, "", "%s does not embed tables.Meta", reflect.TypeFor[T]())
	}
	if store := storeOf((*core.Table)(table)); store != nil {
		r.engine.Schema.Rest, r.engine.Schema.ReadOnly = store.rest, store.readOnly
	}
	if err := r.attach(attached); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if r.engine.Schema.Intents, err = r.runner(); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if err := r.engine.Compose(); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if err := storeOf((*core.Table)(table)).refuseOverlap(r.engine); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if err := r.bind(); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if err := r.engine.Register(); err != nil { // last, since from here on a queue worker can call the patterns
		r.release(len(r.patterns))
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	r.knowAll()
	return r, nil
}

// keyOf returns Schema.Key or, without one, a function that reads the key from an entity's fields.
func (s *Schema[T]) keyOf(codec *core.Codec) (func(any) tables.Key, error) {
	if s.Key != nil {
		return func(v any) tables.Key { return s.Key(v.(*T)) }, nil
	}
	if _, err := codec.Key(new(T)); err != nil {
		return nil, err
	}
	return func(v any) tables.Key {
		key, _ := codec.Key(v) // T has the fields
		return key
	}, nil
}

// untyped converts v for the engine, with a nil pointer as nil.
func untyped[T any](v *T) any {
	if v == nil {
		return nil
	}
	return v
}

// typed converts an entity of the engine to *T.
func typed[T any](v any, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return as[T](v), nil
}

// Table returns the repository's table.
func (r *Repository[T]) Table() *tables.Table { return (*tables.Table)(r.engine.Table) }

// KeyOf returns the key that the schema gives an entity.
func (r *Repository[T]) KeyOf(v *T) tables.Key { return r.engine.Schema.Key(v) }

// Get reads one entity; it returns ErrNotFound if there is none. Requests: 1, and those of patterns that keep a
// part of the entity in further rows or blobs.
func (r *Repository[T]) Get(ctx context.Context, key tables.Key) (*T, error) {
	return typed[T](r.engine.Get(ctx, "Get", key))
}

// GetMany reads entities by their keys concurrently. It yields them in the order of keys, and skips keys
// without an entity. For a row that cannot be decoded it yields tables.ErrGarbled with Error.OfRow, and the
// loop may continue. It yields any other error once, as the last element. Requests: 1 for each key.
func (r *Repository[T]) GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error] {
	if options == nil {
		options = &tables.ParallelOptions[T]{}
	}
	return streams.Typed[T](r.engine.Primary.GetMany(ctx, keys, options.Concurrency))
}

// Query begins a query of the entities. The query does not yield copies and further rows. Requests: 0 until its
// result is read.
func (r *Repository[T]) Query() tables.Query[T] {
	return tables.Query[T](core.NewQuery(&r.engine.Primary))
}
