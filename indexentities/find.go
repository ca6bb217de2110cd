package indexentities

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Keys returns the sorted keys of the entities of a group that have a value; none if no entity has it. value
// has the form that the value function returns, such as compoundkey.String of a text. Requests: 1.
func (x *index[T]) Keys(ctx context.Context, group string, value compoundkey.Part) ([]tables.Key, error) {
	_, keys, err := x.keysAt(ctx, "Keys", group, value)
	return keys, err
}

// keysAt reads a list, and also returns its place.
func (x *index[T]) keysAt(ctx context.Context, op, group string, value compoundkey.Part) (string, []tables.Key, error) {
	if _, err := x.definition.Host(op); err != nil {
		return "", nil, err
	}
	place, err := x.shelves.place(group, value)
	if err != nil {
		return "", nil, x.failed(op, err)
	}
	ids, err := x.shelves.load(ctx, place)
	if err != nil {
		return "", nil, x.failed(op, err)
	}
	keys := make([]tables.Key, len(ids))
	for i, id := range ids {
		if keys[i], err = x.shelves.keyOf(place, id); err != nil {
			return "", nil, x.failed(op, &tables.Error{Kind: tables.ErrGarbled, Err: err})
		}
	}
	return place, keys, nil
}

// FindOptions are the options of Find; nil is the same as the zero value.
type FindOptions struct {
	// Concurrency is the number of entities read at once (default 8).
	Concurrency int
}

// Find yields the entities of a group that have a value, in the order of their keys. It reads each entity's current version, and skips it
// if it is deleted or has another value. For a row that does not fit the type it yields tables.ErrGarbled with Error.OfRow, and the loop
// can continue; any other error is yielded once, as the last element. Requests: 1, and 1 for each key, 8 at once.
func (x *index[T]) Find(ctx context.Context, group string, value compoundkey.Part, options *FindOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		place, keys, err := x.keysAt(ctx, "Find", group, value)
		if err != nil {
			yield(nil, err)
			return
		}
		x.follow(ctx, place, keys, options)(yield)
	}
}

// follow yields the entities of a list that still belong to it.
func (x *index[T]) follow(ctx context.Context, place string, keys []tables.Key, options *FindOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		host, err := x.definition.Host("Find")
		if err != nil {
			yield(nil, err)
			return
		}
		var parallel tables.ParallelOptions[T]
		if options != nil {
			parallel.Concurrency = options.Concurrency
		}
		for v, err := range host.GetMany(ctx, keys, &parallel) {
			if err == nil && !slices.Contains(x.stored(v), place) {
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
