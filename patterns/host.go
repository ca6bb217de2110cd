package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// HostOf returns the driver.Host of a repository, for a pattern that uses a second repository and for packages
// that are built on repositories. For a nil repository it returns nil.
func HostOf[T any](r *Repository[T]) driver.Host {
	if r == nil {
		return nil
	}
	return host{r.engine}
}

// host is an Engine as driver.Host.
type host struct{ engine *engine.Engine }

func (h host) Table() *tables.Table { return (*tables.Table)(h.engine.Table) }

func (h host) PropertyNames() []string { return h.engine.Names }

func (h host) Rows() compoundkey.Span { return h.engine.Schema.Own.Span }

func (h host) Owns(key tables.Key, stored tables.Properties) bool {
	own := &h.engine.Schema.Own
	return own.Keeps(key) && own.Meets(key, stored)
}

func (h host) MayName(entity, other tables.Key) error {
	if may := h.engine.Schema.MayName; may != nil && !may(entity, other) {
		return fmt.Errorf("Schema.MayName does not let (%q, %q) name (%q, %q); store a key that it allows, or change MayName", entity.Partition, entity.Row, other.Partition, other.Row)
	}
	return nil
}

func (h host) Patterns() []*driver.Implementation { return slices.Clone(h.engine.Patterns) }

func (h host) KeyOf(v any) tables.Key { return h.engine.Schema.Key(v) }

func (h host) MetaOf(v any) *tables.Meta { return h.engine.Codec.Meta(v) }

func (h host) Get(ctx context.Context, key tables.Key) (any, error) {
	return h.engine.Get(ctx, "Get", key)
}

func (h host) GetMany(ctx context.Context, keys []tables.Key, concurrency int) iter.Seq2[any, error] {
	return h.engine.Primary.GetMany(ctx, keys, concurrency)
}

func (h host) GetEach(ctx context.Context, keys []tables.Key) ([]any, error) {
	rows, err := h.engine.FetchOwnAll(ctx, "Get", keys)
	if err != nil {
		return nil, err
	}
	all := make([]any, len(keys))
	for i, row := range rows {
		if all[i], _, err = h.engine.LoadOwn(ctx, "Get", keys[i], row); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (h host) Query() driver.Query { return driver.Query(core.NewQuery(&h.engine.Primary)) }

func (h host) Copies(span compoundkey.Span, keep []string) driver.Query {
	return driver.Query(core.NewQuery(h.engine.CopiesSource(span, keep)))
}

func (h host) GetCopy(ctx context.Context, key tables.Key, keep []string) (any, error) {
	return h.engine.CopiesSource(compoundkey.All(), keep).Get(ctx, "Get", key)
}

func (h host) GetPrimary(ctx context.Context, copied tables.Key) (any, error) {
	return h.engine.GetPrimary(ctx, copied)
}

func (h host) OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) driver.Query {
	return driver.Query(core.NewQuery(h.outside(table, span, keep)))
}

func (h host) GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (any, error) {
	return h.outside(table, compoundkey.All(), keep).Get(ctx, "Get", key)
}

// outside returns the source of the copies in a table, nil for the repository's own.
func (h host) outside(table *tables.Table, span compoundkey.Span, keep []string) *core.Source {
	return h.engine.OutsideSource(cmp.Or((*core.Table)(table), h.engine.Table), span, keep)
}

func (h host) Merge(ctx context.Context, v any, properties ...string) error {
	return h.engine.Merge(ctx, v, properties...)
}

func (h host) Update(ctx context.Context, key tables.Key, change func(any) error) (any, error) {
	return h.engine.Update(ctx, key, change)
}

func (h host) Apply(ctx context.Context, kind driver.ChangeKind, v any, options *driver.ApplyOptions) error {
	if options == nil {
		options = &driver.ApplyOptions{}
	}
	changes := []engine.Applied{{Engine: h.engine, Kind: kind, Value: v, Incarnation: options.Incarnation}}
	for _, a := range options.Along {
		change, ok := handle.Any(a).Value().(engine.Applied)
		if !ok {
			return h.engine.Invalid("Apply", tables.Key{}, errors.New("ApplyOptions.Along has the zero value; use what Host.Along returns"))
		}
		changes = append(changes, change)
	}
	return engine.Apply(ctx, changes, &options.Beside)
}

func (h host) Along(kind driver.ChangeKind, v any, incarnation string) driver.Along {
	return driver.Along(handle.New(engine.Applied{Engine: h.engine, Kind: kind, Value: v, Incarnation: incarnation}))
}

func (h host) Stage(ctx context.Context, kind driver.ChangeKind, x *tables.Transaction, v any) {
	h.engine.StageKind(ctx, kind, (*core.Transaction)(x), v)
}

func (h host) StageUnchanged(ctx context.Context, x *tables.Transaction, v any) {
	h.engine.StageUnchanged(ctx, (*core.Transaction)(x), v)
}

func (h host) GetIn(ctx context.Context, x *tables.Transaction, key tables.Key) (any, error) {
	return h.engine.GetIn(ctx, (*core.Transaction)(x), key)
}

func (h host) CheckUnder(ctx context.Context, key tables.Key, v any) error {
	return h.engine.CheckUnder(ctx, key, v)
}
