package patterns

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
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
type Repository[T any] struct{ engine *engine.Engine }

// NewRepository attaches the patterns, each to this repository only. It makes no request. What does not fit together
// is ErrInvalid.
func NewRepository[T any](table *tables.Table, s Schema[T], attached ...driver.Pattern) (*Repository[T], error) {
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
	r := &Repository[T]{&engine.Engine{Table: table, Codec: tables.CodecOf(pass, codec), Names: codec.PropertyNames(), Patterns: slices.Clone(attached),
		Schema: engine.Schema{Name: s.Name, Key: func(v any) tables.Key { return s.Key(v.(*T)) }, RowPrefix: s.RowPrefix, Intents: s.Intents, MaxAttempts: s.MaxAttempts}}}
	if !r.engine.Codec.HasMeta() {
		return nil, tables.Invalidf(op, "%s does not embed tables.Meta", reflect.TypeFor[T]())
	}
	r.engine.Host = r
	if err := r.engine.Attach(); err != nil {
		return nil, err
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

// EntityType returns the type of T.
func (r *Repository[T]) EntityType() reflect.Type { return reflect.TypeFor[T]() }

// RowPrefix returns Schema.RowPrefix.
func (r *Repository[T]) RowPrefix() string { return r.engine.Schema.RowPrefix }

// PropertyNames lists the properties that T stores, nil when it takes any.
func (r *Repository[T]) PropertyNames() []string { return r.engine.Names }

// KeyOf returns the key that the schema gives an entity.
func (r *Repository[T]) KeyOf(v *T) tables.Key { return r.engine.Schema.Key(v) }

// MetaOf returns the entity's Meta.
func (r *Repository[T]) MetaOf(v *T) *tables.Meta { return r.engine.Codec.Meta(v) }

// Patterns returns the attached patterns.
func (r *Repository[T]) Patterns() []driver.Pattern { return slices.Clone(r.engine.Patterns) }

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

// Copies reads the rows that a CopyContributor made, as entities. span is where their row keys lie; keep are the
// properties that they hold, nil for all. Index packages build their reads on it.
func (r *Repository[T]) Copies(span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.QueryOf[T](pass, r.engine.CopiesSource(span, keep))
}

// GetCopy reads one row that a CopyContributor made, as an entity. Requests: 1.
func (r *Repository[T]) GetCopy(ctx context.Context, key tables.Key, keep []string) (*T, error) {
	return tables.GetOf[T](ctx, pass, r.engine.CopiesSource(compoundkey.All(), keep), "Get", key)
}

// OutsideCopies reads the rows of an OutsideCopyContributor, as entities. span is where their row keys lie; keep are
// the properties that they hold, nil for all. Index packages build their reads on it.
func (r *Repository[T]) OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.QueryOf[T](pass, r.engine.OutsideSource(table, span, keep))
}

// GetOutsideCopy reads one row of an OutsideCopyContributor, as an entity. Requests: 1.
func (r *Repository[T]) GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (*T, error) {
	return tables.GetOf[T](ctx, pass, r.engine.OutsideSource(table, compoundkey.All(), keep), "Get", key)
}

// GetPrimary reads the entity that a copy belongs to, given the copy's key. With a CopyAuthenticator it is ErrNotFound where the
// entity does not have a copy there. Requests: 2.
func (r *Repository[T]) GetPrimary(ctx context.Context, copied tables.Key) (*T, error) {
	return typed[T](r.engine.GetPrimary(ctx, copied))
}
