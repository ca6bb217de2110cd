package patterns

import (
	"context"
	"iter"
	"reflect"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Schema says how a Repository keeps entities of type T.
type Schema[T any] struct {
	// Name tells the repository from others whose intents go the same way, the table's name for "". Intents that are
	// under way name it, so it stays the same from one version of a program to the next.
	Name string
	// Key makes the entity's key. It is pure, and an entity keeps its key for life.
	Key func(*T) tables.Key
	// RowPrefix is the prefix that Key gives every row key, as in compoundkey.Join(RowPrefix, ...). With it, queries of
	// a partition's entities are range queries that do not read the partition's index rows; without it they are
	// partition scans that read and skip them.
	RowPrefix string
	// Intents runs changes with effects outside of the partition; required when a pattern has such.
	Intents driver.IntentRunner
	// MaxAttempts bounds how often a change starts over on conflict, 10 for 0.
	MaxAttempts int
}

// Repository keeps entities of one type with all their patterns: every change is planned whole and written in one
// entity group transaction. T is a struct that embeds Meta. A Repository is safe for concurrent use.
type Repository[T any] struct {
	engine   *engine.Engine
	patterns []driver.Implementation[T]
}

// Pattern is something that a Repository keeps in step with its entities, such as an index. Package driver says what an author of
// one implements.
type Pattern[T any] interface {
	// Attach returns what the pattern contributes. NewRepository calls it once. It makes no request, and leaves the pattern as it is.
	Attach(host driver.Host[T]) (driver.Implementation[T], error)
}

// NewRepository attaches the patterns, each to this repository only. It makes no request. What does not fit together
// is ErrInvalid.
func NewRepository[T any](table *tables.Table, s Schema[T], attached ...Pattern[T]) (*Repository[T], error) {
	const op = "NewRepository"
	if table == nil || s.Key == nil {
		return nil, tables.Invalidf(op, "it needs a table and a Schema.Key")
	}
	if table.Account() == nil {
		return nil, tables.Invalid(op, engine.Raw(table).Usable())
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, tables.Relabel(pass, op, table, err)
	}
	r := &Repository[T]{engine: &engine.Engine{Table: table, Codec: tables.CodecOf(pass, codec), Names: codec.PropertyNames(),
		Schema: engine.Schema{Name: s.Name, Key: func(v any) tables.Key { return s.Key(v.(*T)) }, RowPrefix: s.RowPrefix, Intents: s.Intents, MaxAttempts: s.MaxAttempts}}}
	if !r.engine.Codec.HasMeta() {
		return nil, tables.Invalidf(op, "%s does not embed tables.Meta", reflect.TypeFor[T]())
	}
	if err := r.attach(attached); err != nil {
		return nil, tables.Invalid(op, err)
	}
	if err := r.engine.Compose(); err != nil {
		return nil, tables.Invalid(op, err)
	}
	if err := r.bind(); err != nil {
		return nil, tables.Invalid(op, err)
	}
	if err := r.engine.Register(); err != nil { // last: a worker of the queue can call the patterns from here on
		r.release(len(r.patterns))
		return nil, tables.Invalid(op, err)
	}
	return r, nil
}

// untyped is v for the engine, nil for a nil pointer.
func untyped[T any](v *T) any {
	if v == nil {
		return nil
	}
	return v
}

// typed is an entity of the engine.
func typed[T any](v any, err error) (*T, error) {
	if v == nil || err != nil {
		return nil, err
	}
	return v.(*T), nil
}

// Table returns the repository's table.
func (r *Repository[T]) Table() *tables.Table { return r.engine.Table }

// KeyOf returns the key that the schema gives an entity.
func (r *Repository[T]) KeyOf(v *T) tables.Key { return r.engine.Schema.Key(v) }

// Get reads one entity. Requests: 1.
func (r *Repository[T]) Get(ctx context.Context, key tables.Key) (*T, error) {
	return typed[T](r.engine.Get(ctx, "Get", key))
}

// GetMany reads entities by their keys, several at once, and yields those that are there in the order of keys. An
// error comes once, last. Requests: 1 for each key.
func (r *Repository[T]) GetMany(ctx context.Context, keys []tables.Key, options *tables.ParallelOptions[T]) iter.Seq2[*T, error] {
	return tables.GetManyOf(ctx, pass, &r.engine.Primary, keys, options)
}

// Query begins a query of the entities; their index copies and further rows are left out.
func (r *Repository[T]) Query() tables.Query[T] { return tables.QueryOf[T](pass, &r.engine.Primary) }
