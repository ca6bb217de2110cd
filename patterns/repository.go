package patterns

import (
	"context"
	"fmt"
	"iter"

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
	// Prefix is what the row keys begin with, before "_" and further parts, so that the table may hold rows of other types and
	// of indexes: a query of the entities reads only this range. Without Prefix (the default), the entities have the whole
	// partition, and a query reads and skips other rows.
	Prefix string
	// Rows is the range of the row keys if they have no prefix of this form, such as compoundkey.Range("O-", "O.") for keys
	// of another program. It excludes Prefix.
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
	// AllowEmptyPartition allows entities whose partition key is empty (default: false). Without it, such a key is refused before any
	// request, since it usually comes from a field that was not set.
	AllowEmptyPartition bool
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
type Repository[T any] struct{ engine *engine.Engine }

// Pattern stores something that a Repository keeps consistent with its entities, such as the copies of an
// index. Package driver documents how to implement one.
type Pattern[T any] interface {
	// Attach returns the pattern's Implementation. NewRepository calls it once. It makes no request and does not
	// modify the pattern. The second argument is nil: its type lets the compiler check that the pattern fits the
	// repository's entities.
	Attach(host driver.Host, of *T) (driver.Implementation, error)
}

// NewRepository returns a Repository with these patterns, and binds each pattern to it. A pattern belongs to
// one repository. If a pattern has effects outside of the entity's partition, table must be one that
// Store.Table or Store.RunTimeTable has returned: the intents go to the store's queue. It returns ErrWiring for
// an invalid schema, or for patterns that cannot be combined. Requests: 0.
func NewRepository[T any](table *tables.Table, s Schema[T], attached ...Pattern[T]) (*Repository[T], error) {
	schema := engine.Schema{Name: s.Name, Own: ownrows.Rows{Prefix: s.Prefix, Span: s.Rows, EmptyPartition: s.AllowEmptyPartition, Mine: s.Mine, Where: s.Where}, MayName: s.MayName, MaxAttempts: s.MaxAttempts, OtherBuilds: s.OtherBuilds}
	if s.Key != nil {
		schema.Key = func(v any) tables.Key { return s.Key(v.(*T)) }
	}
	r, err := newEngine((*core.Table)(table), core.CodecOf[T], schema, attachments(attached))
	if err != nil {
		return nil, err
	}
	return &Repository[T]{r}, nil
}

// newEngine implements NewRepository, without T.
func newEngine(table *core.Table, codecOf func() (*core.Codec, error), schema engine.Schema, attached []attachment) (*engine.Engine, error) {
	const op = "NewRepository"
	if table == nil {
		return nil, errs.Wiringf(op, "", "the table is nil; open it with Store.Table")
	}
	if table.Account() == nil {
		return nil, errs.Wiringf(op, "", "%w", table.Usable())
	}
	codec, err := codecOf()
	if err != nil {
		return nil, errs.Amend(err, func(e *tables.Error) { e.Op, e.Table = op, table.Name() })
	}
	r := &engine.Engine{Table: table, Codec: codec, Names: codec.Names(), Schema: schema}
	if err := compose(r, attached); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	return r, nil
}

// compose attaches the patterns to an engine, and registers it where workers and the store find it.
func compose(r *engine.Engine, attached []attachment) (err error) {
	if err := r.Schema.Own.Delimit(); err != nil {
		return err
	}
	if r.Schema.Key == nil {
		if _, err := r.Codec.Key(r.Codec.New()); err != nil {
			return fmt.Errorf("Schema.Key is nil, and %w", err)
		}
		r.Schema.Key = func(v any) tables.Key {
			key, _ := r.Codec.Key(v) // the type has the fields
			return key
		}
	}
	if !r.Codec.HasMeta() {
		return fmt.Errorf("%s does not embed tables.Meta", r.Codec.Type())
	}
	if store := storeOf(r.Table); store != nil {
		r.Schema.Rest, r.Schema.ReadOnly = store.rest, store.readOnly
	}
	if err := attach(r, attached); err != nil {
		return err
	}
	if r.Schema.Intents, err = runner(r); err != nil {
		return err
	}
	if err := r.Compose(); err != nil {
		return err
	}
	if err := storeOf(r.Table).refuseOverlap(r); err != nil {
		return err
	}
	if err := bind(r); err != nil {
		return err
	}
	if err := r.Register(); err != nil { // last, since from here on a queue worker can call the patterns
		release(r.Patterns)
		return err
	}
	knowAll(r)
	return nil
}

// of returns the repository's engine, nil for a nil Repository: then each operation returns tables.ErrWiring.
func (r *Repository[T]) of() *engine.Engine {
	if r == nil {
		return nil
	}
	return r.engine
}

// Table returns the repository's table, nil for a nil Repository.
func (r *Repository[T]) Table() *tables.Table { return (*tables.Table)(r.of().OwnTable()) }

// KeyOf returns the key that the schema gives an entity.
func (r *Repository[T]) KeyOf(v *T) tables.Key { return r.engine.Schema.Key(v) }

// Get reads one entity; it returns ErrNotFound if there is none. Requests: 1, and those of patterns that keep a
// part of the entity in further rows or blobs.
func (r *Repository[T]) Get(ctx context.Context, key tables.Key) (*T, error) {
	return driver.Got[T](r.of().Get(ctx, "Get", key))
}

// GetMany reads entities by their keys concurrently. It yields them in the order of keys, and skips keys
// without an entity. For a row that cannot be decoded it yields tables.ErrGarbled with Error.OfRow, and the
// loop may continue. It yields any other error once, as the last element. Requests: 1 for each key.
func (r *Repository[T]) GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error] {
	if options == nil {
		options = &tables.ParallelOptions[T]{}
	}
	return streams.Typed[T](r.of().Entities().GetMany(ctx, keys, options.Concurrency))
}

// Query begins a query of the entities. The query does not yield copies and further rows. Requests: 0 until its
// result is read.
func (r *Repository[T]) Query() tables.Query[T] {
	return tables.Query[T](core.NewQuery(r.of().Entities()))
}
