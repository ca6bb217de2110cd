package largeentities

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"
)

// glance is a read of an entity for what its large properties are stored as: under its context no blob is read.
type glance struct {
	key   tables.Key
	seen  map[string]tables.Value // by property
	noted bool
}

type glanceKey struct{}

func glanceOf(ctx context.Context) *glance {
	g, _ := ctx.Value(glanceKey{}).(*glance)
	return g
}

func (g *glance) note(property string, key tables.Key, v tables.Value) {
	g.noted = true
	if key == g.key {
		g.seen[property] = v
	}
}

// look reads what the entity's row holds now; found is false when there is no such entity. read makes the request. Whether the rest
// of the entity makes sense does not matter.
func (x *spill[T]) look(ctx context.Context, key tables.Key, read func(context.Context) error) (ptr *pointer, found bool, err error) {
	g := &glance{key: key, seen: map[string]tables.Value{}}
	err = read(context.WithValue(ctx, glanceKey{}, g))
	v, seen := g.seen[x.name]
	var e *tables.Error
	switch {
	case seen:
		ptr, err = x.pointerIn("Look", key, v)
		return ptr, true, err
	case errors.Is(err, tables.ErrNotFound) && !g.noted && errors.As(err, &e) && e.Pattern == "":
		return nil, false, nil
	case err == nil && g.noted:
		return nil, false, nil // a copy that is another entity's now
	case err == nil:
		err = errors.New("the entity was read without its stored form")
	}
	return nil, false, err
}

// lookAt is look at the entity's own row. Requests: 1.
func (x *spill[T]) lookAt(ctx context.Context, key tables.Key) (*pointer, bool, error) {
	return x.look(ctx, key, func(ctx context.Context) error {
		_, err := x.host.Get(ctx, key)
		return err
	})
}
