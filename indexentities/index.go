package indexentities

import (
	"cmp"
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

// Index is an index of lists of entities of type T, one for each value of type K. It belongs to the one Repository to which it was
// given. Before NewRepository has returned, its reads return tables.ErrWiring. An index with groups, such as one in the
// partition, is read in the group that In chooses; an index without groups is read as it is.
type Index[T any, K compoundkey.Key] struct {
	*index
	group *string // the group that In has chosen, nil for none
}

// Options are the options of NewInTable and NewMultiInTable; nil is the same as the zero value.
type Options[T any] struct {
	// Group returns an entity's group, for example its region. Each group has lists of its own, and In chooses the
	// group to read. Group must be pure. By default there are no groups: a list contains entities of all partitions.
	Group func(*T) string

	// ByPartition makes the entity's partition its group (default: false). It excludes Group.
	ByPartition bool
}

// In returns the index for reads in one group: what Options.Group returns, or, with NewInPartition or ByPartition, a partition. Reads of an
// index without groups return tables.ErrWiring after In. The result cannot be given to a repository. Requests: 0.
func (x *Index[T, K]) In(group string) *Index[T, K] { return &Index[T, K]{x.index, &group} }

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T, K]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	implementation, err := x.attach(host)
	if x.group != nil {
		err = keyindex.ErrInGroup(*x.group)
	}
	return implementation, err
}

// index is an index without the group that a caller reads.
type index struct {
	definition *keyindex.Index
	shelves    shelves
	attach     func(driver.Host) (driver.Implementation, error)
}

func newIndex[T any](name string, values func(any) []compoundkey.Part, options *Options[T]) index {
	options = cmp.Or(options, &Options[T]{})
	return index{definition: keyindex.New(name, values, options.Group, options.ByPartition)}
}

// shelves store the lists. A place names one list: in the partition it is the key of the list's first row, elsewhere what the keys of its rows begin with.
type shelves interface {
	// place names the list of a value.
	place(group string, value compoundkey.Part) (string, error)
	// keys yields the keys in a list that are after a key, nil for all, in their order. The caller wants so many of them, 0 for all.
	keys(ctx context.Context, place string, after *tables.Key, want int) iter.Seq2[tables.Key, error]
	// values yields a Value for each list of a group whose value is in the span.
	values(ctx context.Context, group string, span compoundkey.Span) iter.Seq2[Value, error]
}

// places returns the lists to which an entity belongs, without duplicates.
func (x *index) places(v any) ([]string, error) {
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

// stored returns the lists to which a stored entity belongs; none for nil. If a place cannot be computed, the entity was
// never written with this index, so it is in no list.
func (x *index) stored(v any) []string {
	if v == nil {
		return nil
	}
	places, _ := x.places(v)
	return places
}

// failed returns err with the operation that the user called and the index's name.
func (x *index) failed(op string, err error) error {
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
