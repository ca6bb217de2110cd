package heterogeneous

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The methods below implement AnyType for *Type[T].

func (t *Type[T]) attached() (*tables.Table, bool) {
	host := t.host()
	if host == nil {
		return nil, false
	}
	return host.Table(), true
}

func (t *Type[T]) goType() reflect.Type { return reflect.TypeFor[T]() }

func (t *Type[T]) versions() (name string, oldest, newest int) {
	return t.tag.name, t.oldest(), t.tag.version
}

func (t *Type[T]) byKey() bool { return t.options.ByKey }

// span returns the span of the type's row keys, or the zero Span if the schema sets none.
func (t *Type[T]) span() compoundkey.Span { return t.host().Rows() }

// current reports whether EntityType says that a row is of the current version.
func (t *Type[T]) current(p tables.Properties) bool {
	text, _ := p.Get(EntityType).Text()
	return t.options.ByKey || text == t.tag.String()
}

// filterable reports whether the service finds all entities of the type that meet a condition on a property.
func (t *Type[T]) filterable(property string) bool {
	return !slices.ContainsFunc(t.beside.filterable, func(is func(string) bool) bool { return !is(property) }) &&
		(t.beside.spread == nil || t.beside.spread.Filterable(property))
}

// whole reports whether decode can make an entity from its own row, without a read through its repository.
func (t *Type[T]) whole() bool { return !t.beside.rewrite && t.beside.spread == nil }

// alone reports whether the repository has no other pattern, so that an entity consists of its own row.
func (t *Type[T]) alone() bool { return t.beside.none }

// decode makes an entity from its own row. The entity's Meta says what was read, so that the repository can read what is missing
// before it writes the entity.
func (t *Type[T]) decode(r *row, p tables.Properties) (any, error) {
	p, err := t.upgraded(r.key(), p)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := t.codec.Decode(p, v); err != nil {
		return nil, err
	}
	(*core.Codec)(t.codec).Finish(&tablerow.Row{Timestamp: r.Timestamp}, r.key(), v)
	*t.host().MetaOf(v) = r.Meta
	return v, nil
}

// readMany reads entities concurrently through their repository. found has those that exist, and problems has an error for each
// that does not fit the type. Requests: 1 for each.
func (t *Type[T]) readMany(ctx context.Context, keys []tables.Key) (found map[tables.Key]any, problems []error, err error) {
	found = make(map[tables.Key]any, len(keys))
	for v, err := range t.host().GetMany(ctx, keys, 0) {
		switch e, _ := errors.AsType[*tables.Error](err); {
		case e != nil && e.OfRow:
			problems = append(problems, err)
			continue
		case err != nil:
			return nil, problems, err
		}
		found[t.host().MetaOf(v).Key()] = v
	}
	return found, problems, nil
}

// remove deletes an entity that was read as this type.
func (t *Type[T]) remove(ctx context.Context, v any) error {
	return t.host().Apply(ctx, driver.ChangeDelete, v, nil)
}

// merge changes an entity through its repository. change gets a bag with the properties of the Go type. Requests: 1 to 3.
func (t *Type[T]) merge(ctx context.Context, key tables.Key, change func(*tables.Entity) error) error {
	v, err := driver.Got[T](t.host().Get(ctx, key))
	if err != nil {
		return err
	}
	stored, err := t.codec.Encode(v)
	if err != nil {
		return err
	}
	meta := t.host().MetaOf(v)
	bag := &tables.Entity{Key: key, ETag: meta.ETag, Timestamp: meta.Timestamp, Properties: stored}
	changed, err := edit(bag, change)
	if err != nil || len(changed) == 0 {
		return err
	}
	if err := t.codec.Decode(changed, v); err != nil {
		return errs.Invalid("Modify", err)
	}
	now, err := t.codec.Encode(v)
	if err != nil {
		return err
	}
	names := make([]string, len(changed))
	for i, p := range changed {
		names[i] = p.Name
		if !slices.Contains(now, p) {
			return errs.Invalidf("Modify", "%s has no property %s with a value of this type; change only properties of the Go type", t, p.Name)
		}
	}
	return t.host().Merge(ctx, v, names...)
}
