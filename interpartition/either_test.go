package interpartition_test

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// either is an Index or a Unique, which tests read in the same way.
type either[T any] struct {
	patterns.Pattern[T]
	shared *interpartition.Index[T, compoundkey.Part]
	unique *interpartition.Unique[T, compoundkey.Part]
}

func newEither[T any](unique bool, name string, key func(*T) compoundkey.Part, options *interpartition.Options[T]) *either[T] {
	if unique {
		return ofUnique(interpartition.NewUnique(name, key, options))
	}
	return ofShared(interpartition.NewIndex(name, key, options))
}

func ofUnique[T any](x *interpartition.Unique[T, compoundkey.Part]) *either[T] {
	return &either[T]{x, nil, x}
}
func ofShared[T any](x *interpartition.Index[T, compoundkey.Part]) *either[T] {
	return &either[T]{x, x, nil}
}

func (x *either[T]) In(group string) *either[T] {
	if x.unique != nil {
		return ofUnique(x.unique.In(group))
	}
	return ofShared(x.shared.In(group))
}

// Get reads the first entity of a shared key.
func (x *either[T]) Get(ctx context.Context, key compoundkey.Part) (*T, error) {
	if x.unique != nil {
		return x.unique.Get(ctx, key)
	}
	return first(x.shared.All(ctx, key))
}

// GetFull reads the first entity of a shared key as Get does.
func (x *either[T]) GetFull(ctx context.Context, key compoundkey.Part) (*T, error) {
	if x.unique != nil {
		return x.unique.GetFull(ctx, key)
	}
	return x.Get(ctx, key)
}

// All yields the one entity of a unique key.
func (x *either[T]) All(ctx context.Context, key compoundkey.Part) iter.Seq2[*T, error] {
	if x.unique != nil {
		return gotten(x.unique.Get(ctx, key))
	}
	return x.shared.All(ctx, key)
}

func (x *either[T]) Range(ctx context.Context, intervals ...compoundkey.Interval[compoundkey.Part]) iter.Seq2[*T, error] {
	if x.unique != nil {
		return x.unique.Range(ctx, intervals...)
	}
	return x.shared.Range(ctx, intervals...)
}

func (x *either[T]) Query(intervals ...compoundkey.Interval[compoundkey.Part]) tables.Query[T] {
	if x.unique != nil {
		return x.unique.Query(intervals...)
	}
	return x.shared.Query(intervals...)
}

// first is the first entity that a read yields, or tables.ErrNotFound.
func first[T any](all iter.Seq2[*T, error]) (*T, error) {
	for v, err := range all {
		return v, err
	}
	return nil, tables.ErrNotFound
}
