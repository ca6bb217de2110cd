package largeentities

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"
)

// pointerProbe is a read of an entity that returns how its large properties are stored. Under a context with
// a pointerProbe, no blob is read.
type pointerProbe struct {
	key   tables.Key
	seen  map[string]tables.Value // stored values, by property
	noted bool
}

type pointerProbeKey struct{}

func pointerProbeOf(ctx context.Context) *pointerProbe {
	g, _ := ctx.Value(pointerProbeKey{}).(*pointerProbe)
	return g
}

func (g *pointerProbe) note(property string, key tables.Key, v tables.Value) {
	g.noted = true
	if key == g.key {
		g.seen[property] = v
	}
}

// probe returns how the entity's row stores its large properties now; found is false if the entity does not
// exist. read makes the request. Errors in decoding the other properties are ignored.
func (x *spill[T]) probe(ctx context.Context, key tables.Key, read func(context.Context) error) (ptr *pointer, found bool, err error) {
	g := &pointerProbe{key: key, seen: map[string]tables.Value{}}
	err = read(context.WithValue(ctx, pointerProbeKey{}, g))
	v, seen := g.seen[x.name]
	var e *tables.Error
	switch {
	case seen:
		ptr, err = x.pointerIn("Load", key, v)
		return ptr, true, err
	case errors.Is(err, tables.ErrNotFound) && !g.noted && errors.As(err, &e) && e.Pattern == "":
		return nil, false, nil
	case err == nil && g.noted:
		return nil, false, nil // the copy now belongs to another entity
	case err == nil:
		err = errors.New("the read did not return the stored form of the property")
	}
	return nil, false, err
}

// probeRow calls probe for the entity's own row. Requests: 1.
func (x *spill[T]) probeRow(ctx context.Context, key tables.Key) (*pointer, bool, error) {
	return x.probe(ctx, key, func(ctx context.Context) error {
		_, err := x.host.Get(ctx, key)
		return err
	})
}
