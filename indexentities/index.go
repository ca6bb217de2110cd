package indexentities

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Global is the group of a global index: Options.Group returns it for lists of all entities, whatever their partition.
const Global = ""

// Options are the options of NewInTable and NewInBlobs; nil is the same as the zero value.
type Options[T any] struct {
	// Group returns an entity's group, for example its region. Each group has lists of its own. For a global index, whose
	// lists contain entities of all partitions, it returns Global. It must be pure. By default the group is the entity's
	// partition.
	Group func(*T) string
}

// index is the part that the indexes of all three options share.
type index[T any] struct {
	definition keyindex.Index[T]
	shelves    shelves
}

// newIndex makes the part that the indexes of all three options share.
func newIndex[T any, K compoundkey.OneOrMany](name string, value func(*T) K, options *Options[T]) index[T] {
	var group func(*T) string
	if options != nil {
		group = options.Group
	}
	return index[T]{definition: keyindex.New(name, value, group)}
}

// shelves store the lists.
type shelves interface {
	// place names the list of a value.
	place(group string, value compoundkey.Part) (string, error)
	// load reads a list and returns its sorted ids, none if the list does not exist.
	load(ctx context.Context, place string) ([]string, error)
	// idOf returns the id of an entity in a list; keyOf is its inverse.
	idOf(entity tables.Key) string
	keyOf(place, id string) (tables.Key, error)
	// checkOwn refuses a place that is not one of the index's lists. Places can come from messages, which may
	// be forged.
	checkOwn(place string) error
	// values yields the lists of a group.
	values(ctx context.Context, group string, span compoundkey.Span) iter.Seq2[Value, error]
}

// places returns the lists to which an entity belongs, without duplicates.
func (x *index[T]) places(v *T) ([]string, error) {
	host, err := x.definition.Host("Places")
	if err != nil {
		return nil, err
	}
	group := x.definition.GroupOf(v, host.KeyOf)
	var places []string
	for _, value := range x.definition.KeysOf(v) {
		place, err := x.shelves.place(group, value)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places, nil
}

// stored returns the lists that contain an entity, as computed from the entity. If the value function rejects
// the entity, it was never written with this index and is in no list.
func (x *index[T]) stored(v *T) []string {
	if v == nil {
		return nil
	}
	places, err := x.places(v)
	if err != nil {
		return nil
	}
	return places
}

// prior returns the lists that the entity is in.
func (x *index[T]) prior(v *T, _ tables.Properties) ([]string, error) { return x.stored(v), nil }

// after returns the lists to which an entity belongs after a change.
func (x *index[T]) after(change *driver.Change[T]) ([]string, error) {
	if change.Kind == driver.ChangeDelete {
		return nil, nil
	}
	return x.places(change.Entity)
}

// changed names the lists that an entity enters or leaves. The other lists of the entity need no write: only
// a change that names a list can change the entity's membership in it.
func (x *index[T]) changed(change *driver.Change[T]) ([]string, error) {
	before := change.Prior
	after, err := x.after(change)
	if err != nil {
		return nil, err
	}
	return append(minus(after, before), minus(before, after)...), nil
}

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	var left []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			left = append(left, s)
		}
	}
	return left
}

// wanted returns the facts that an entity requires: the entity is in the list of each of its values.
func (x *index[T]) wanted(v *T) ([]driver.Fact, error) {
	places, err := x.places(v)
	if err != nil {
		return nil, err
	}
	host, err := x.definition.Host("Expected")
	if err != nil {
		return nil, err
	}
	facts := make([]driver.Fact, len(places))
	for i, place := range places {
		facts[i] = driver.Fact{Place: place, Entity: host.KeyOf(v)}
	}
	return facts, nil
}

// heldBy returns the fact that a list, as read, holds an entity, or the list's error; held is false if the list does not hold it.
func (x *index[T]) heldBy(l *readList, place string, entity tables.Key) (fact driver.Fact, held bool) {
	fact = driver.Fact{Place: place, Entity: entity, Err: l.err}
	if l.err != nil {
		return fact, true
	}
	id := x.shelves.idOf(entity)
	if key, err := x.shelves.keyOf(place, id); err != nil || key != entity {
		return fact, false // the lists of a partition never name entities of another one
	}
	_, held = slices.BinarySearchFunc(l.ids, id, compoundkey.Compare)
	return fact, held
}

// unreadable returns the fact for a list that cannot be read. It names the entity's partition if the place contains it.
func (x *index[T]) unreadable(place string, err error) driver.Fact {
	fact := driver.Fact{Place: place, Err: x.failed("List", err)}
	if entity, err := x.shelves.keyOf(place, ""); err == nil {
		fact.Entity = entity
	}
	return fact
}

// facts yields the facts for the ids of one list.
func (x *index[T]) facts(place string, ids []string, scope driver.Scope) iter.Seq[driver.Fact] {
	return func(yield func(driver.Fact) bool) {
		for _, id := range ids {
			key, err := x.shelves.keyOf(place, id)
			fact := driver.Fact{Place: place, Entity: key, Err: err}
			if err == nil && !scope.Contains(key) {
				continue
			}
			if !yield(fact) {
				return
			}
		}
	}
}

// failed adds the operation that the caller called and the index's name to an error.
func (x *index[T]) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *tables.Error
	if !errors.As(err, &e) {
		if wire.HasEnded(err) {
			return err
		}
		return &tables.Error{Op: op, Pattern: x.definition.Name, Kind: tables.ErrInvalid, Err: err}
	}
	named := *e
	named.Op, named.Pattern = op, x.definition.Name
	return &named
}
