package patterns

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// HostOf returns the driver.Host of a repository, for a pattern that uses a second repository and for
// packages that are built on repositories. It is nil for a nil repository.
func HostOf[T any](r *Repository[T]) driver.Host[T] {
	if r == nil {
		return nil
	}
	return host[T]{r}
}

// host implements driver.Host for a Repository. Table, KeyOf, Get, GetMany, Query, Merge and Update are the
// repository's own.
type host[T any] struct{ *Repository[T] }

func (h host[T]) PropertyNames() []string { return h.engine.Names }

func (h host[T]) Rows() compoundkey.Span { return h.engine.Schema.Own.Span }

func (h host[T]) Owns(key tables.Key, stored tables.Properties) bool {
	own := &h.engine.Schema.Own
	return own.Keeps(key) && own.Meets(key, stored)
}

func (h host[T]) Patterns() []driver.Implementation[T] { return slices.Clone(h.patterns) }

func (h host[T]) MetaOf(v *T) *tables.Meta { return h.engine.Codec.Meta(v) }

func (h host[T]) GetEach(ctx context.Context, keys []tables.Key) ([]*T, error) {
	rows, err := h.engine.FetchOwnAll(ctx, "Get", keys)
	if err != nil {
		return nil, err
	}
	all := make([]*T, len(keys))
	for i, row := range rows {
		v, _, err := h.engine.LoadOwn(ctx, "Get", keys[i], row)
		if all[i], err = typed[T](v, err); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (h host[T]) Copies(span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.QueryOf[T](pass, h.engine.CopiesSource(span, keep))
}

func (h host[T]) GetCopy(ctx context.Context, key tables.Key, keep []string) (*T, error) {
	return tables.GetOf[T](ctx, pass, h.engine.CopiesSource(compoundkey.All(), keep), "Get", key)
}

func (h host[T]) GetPrimary(ctx context.Context, copied tables.Key) (*T, error) {
	return typed[T](h.engine.GetPrimary(ctx, copied))
}

func (h host[T]) OutsideCopies(table *tables.Table, span compoundkey.Span, keep []string) tables.Query[T] {
	return tables.QueryOf[T](pass, h.engine.OutsideSource(h.tableOr(table), span, keep))
}

func (h host[T]) GetOutsideCopy(ctx context.Context, table *tables.Table, key tables.Key, keep []string) (*T, error) {
	return tables.GetOf[T](ctx, pass, h.engine.OutsideSource(h.tableOr(table), compoundkey.All(), keep), "Get", key)
}

// tableOr returns the given table of copies, or the repository's own for nil.
func (h host[T]) tableOr(table *tables.Table) *tables.Table {
	if table == nil {
		return h.engine.Table
	}
	return table
}

func (h host[T]) Apply(ctx context.Context, kind driver.ChangeKind, v *T, options *driver.ApplyOptions) error {
	if options == nil {
		options = &driver.ApplyOptions{}
	}
	changes := []engine.Applied{{Engine: h.engine, Kind: kind, Value: untyped(v), Incarnation: options.Incarnation}}
	for _, a := range options.Along {
		change, ok := a.Change(pass).(engine.Applied)
		if !ok {
			return h.engine.Invalid("Apply", tables.Key{}, errors.New("ApplyOptions.Along has the zero value; use what Host.Along returns"))
		}
		changes = append(changes, change)
	}
	return engine.Apply(ctx, changes, &options.Beside)
}

func (h host[T]) Along(kind driver.ChangeKind, v *T, incarnation string) driver.Along {
	return driver.NewAlong(pass, engine.Applied{Engine: h.engine, Kind: kind, Value: untyped(v), Incarnation: incarnation})
}

func (h host[T]) Stage(ctx context.Context, kind driver.ChangeKind, x *tables.Transaction, v *T) {
	h.engine.StageKind(ctx, kind, x, untyped(v))
}

func (h host[T]) StageUnchanged(ctx context.Context, x *tables.Transaction, v *T) {
	h.engine.StageUnchanged(ctx, x, untyped(v))
}

func (h host[T]) GetIn(ctx context.Context, x *tables.Transaction, key tables.Key) (*T, error) {
	return typed[T](h.engine.GetIn(ctx, x, key))
}

func (h host[T]) CheckUnder(ctx context.Context, key tables.Key, v *T) error {
	return h.engine.CheckUnder(ctx, key, untyped(v))
}
