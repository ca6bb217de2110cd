package largeentities

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

type resealKey struct{}

// Reseal stores the value of an entity in a new blob, as a new value would be stored: sealed under the
// Sealer's current key, or, with Options.AcceptPlaintext, sealed for the first time. It reads the entity and
// replaces it under its ETag. Before you remove a data key, reseal every entity that has a value under it.
// Requests: those of an Update with a new value.
func (p *Property[T]) Reseal(ctx context.Context, key tables.Key) error {
	const op = "Reseal"
	s, err := p.spill(op)
	if err != nil {
		return err
	}
	if s.blobs.sealing == nil {
		return tables.Wiringf(op, "", "property %s has no Options.Sealer; give it one", p.name)
	}
	_, err = s.host.Update(context.WithValue(ctx, resealKey{}, s), key, func(*T) error { return nil })
	return err
}

// keeps reports whether an unchanged value stays in its blob.
func (x *spill[T]) keeps(ctx context.Context, old *pointer) bool {
	return old != nil && ctx.Value(resealKey{}) != any(x) && old.sealed == (x.blobs.sealing != nil)
}
