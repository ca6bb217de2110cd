package indexentities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is an index of lists, which one of the three constructors has made. It belongs to the one Repository to which it was
// given. Before NewRepository has returned, its reads return tables.ErrWiring. An index with groups, such as one in the
// partition, is read in the group that In chooses; an index without groups is read as it is.
type Index[T any] struct {
	*index[T]
	group *string // the group that In has chosen, nil for none
}

// Options are the options of NewInTable and NewInBlobs; nil is the same as the zero value.
type Options[T any] struct {
	// Group returns an entity's group, for example its region. Each group has lists of its own, and In chooses the
	// group to read. Group must be pure. By default there are no groups: a list contains entities of all partitions.
	Group func(*T) string

	// ByPartition makes the entity's partition its group (default: false). It excludes Group.
	ByPartition bool
}

// In returns the index for reads in one group: what Options.Group returns, or, with NewInPartition or ByPartition, a partition. Reads of an
// index without groups return tables.ErrWiring after In. The result cannot be given to a repository. Requests: 0.
func (x *Index[T]) In(group string) *Index[T] { return &Index[T]{x.index, &group} }

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.attach(host)
	if x.group != nil {
		err = keyindex.ErrInGroup(*x.group)
	}
	return implementation, err
}

// index is an index without the group that a caller reads.
type index[T any] struct {
	definition keyindex.Index[T]
	shelves    shelves
	attach     func(driver.Host[T]) (driver.Implementation[T], error)
}

func newIndex[T any, K compoundkey.OneOrMany](name string, value func(*T) K, options *Options[T]) index[T] {
	options = cmp.Or(options, &Options[T]{})
	return index[T]{definition: keyindex.New(name, value, keyindex.Groups[T]{Of: options.Group, ByPartition: options.ByPartition})}
}

// shelves store the lists. A place names one list in intents and audits: in rows it is the key of the list's first row, in
// blobs the blob's name.
type shelves interface {
	// place names the list of a value.
	place(group string, value compoundkey.Part) (string, error)
	// load returns the sorted ids of a list; none if the list does not exist.
	load(ctx context.Context, place string) ([]string, error)
	// idOf returns the id of an entity in a list; keyOf is its inverse.
	idOf(entity tables.Key) string
	keyOf(place, id string) (tables.Key, error)
	// checkOwn refuses a place that is not a list of the index: a place can come from a forged message.
	checkOwn(place string) error
	// values yields a Value for each list of a group whose value is in the span.
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

// stored returns the lists to which a stored entity belongs; none for nil. If a place cannot be computed, the entity was
// never written with this index, so it is in no list.
func (x *index[T]) stored(v *T) []string {
	if v == nil {
		return nil
	}
	places, _ := x.places(v)
	return places
}

// prior returns the lists that contain the entity before a change.
func (x *index[T]) prior(v *T, _ tables.Properties) ([]string, error) { return x.stored(v), nil }

// after returns the lists to which an entity belongs after a change.
func (x *index[T]) after(change *driver.Change[T]) ([]string, error) {
	if change.Kind == driver.ChangeDelete {
		return nil, nil
	}
	return x.places(change.Entity)
}

// outsideKeys returns the lists that an entity enters or leaves. Its other lists need no write, since they contain it
// before and after the change.
func (x *index[T]) outsideKeys(_ context.Context, change *driver.Change[T]) ([]string, error) {
	after, err := x.after(change)
	if err != nil {
		return nil, err
	}
	return append(minus(after, change.Prior), minus(change.Prior, after)...), nil
}

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
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

// heldBy returns the fact that a list holds an entity, or that the list cannot be read; otherwise held is false.
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

// unreadable returns the fact for a list that cannot be read. For a list in the entities' own partition, the fact
// also names the partition.
func (x *index[T]) unreadable(place string, err error) driver.Fact {
	fact := driver.Fact{Place: place, Err: x.failed("List", err)}
	if entity, err := x.shelves.keyOf(place, ""); err == nil {
		fact.Entity = entity
	}
	return fact
}

// facts yields the facts for those ids of a list that are in the scope.
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

// failed returns err with the operation that the user called and the index's name.
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

// edit is the change of one list. Its members are entities of an intent: those that the list must contain (in), and
// those that it must not (out).
type edit[T any] struct {
	place string
	in    []*driver.Reconciliation[T]
	out   []*driver.Reconciliation[T]
}

// all returns the members of an edit.
func (e *edit[T]) all() []*driver.Reconciliation[T] { return slices.Concat(e.in, e.out) }

// fail records an error for all members that have none.
func (e *edit[T]) fail(err error) {
	for _, r := range e.all() {
		if r.Err == nil {
			r.Err = err
		}
	}
}

// reconcile calls write with the lists that an intent names. A member enters its new lists before it leaves others, so
// that readers always find it; a list that some members enter and others leave may therefore be written twice. write
// records failures in the members.
func (x *index[T]) reconcile(ctx context.Context, all []*driver.Reconciliation[T], write func([]*edit[T])) {
	var enter, leave []*edit[T]
	at := map[string]*edit[T]{} // enter by place
	entering := map[*driver.Reconciliation[T]]bool{}
	left := map[string]*edit[T]{} // leave by place
	edits := func(list *[]*edit[T], known map[string]*edit[T], place string) *edit[T] {
		if known[place] == nil {
			known[place] = &edit[T]{place: place}
			*list = append(*list, known[place])
		}
		return known[place]
	}
	for _, r := range all {
		if r.Err = x.checkAll(ctx, r); r.Err != nil {
			continue
		}
		belongs := x.stored(r.Entity)
		for _, place := range r.Keys {
			if slices.Contains(belongs, place) {
				e := edits(&enter, at, place)
				e.in, entering[r] = append(e.in, r), true
			}
		}
	}
	for _, r := range all {
		belongs := x.stored(r.Entity)
		for _, place := range r.Keys {
			switch {
			case r.Err != nil || slices.Contains(belongs, place):
			case at[place] != nil && !entering[r]:
				at[place].out = append(at[place].out, r)
			default:
				e := edits(&leave, left, place)
				e.out = append(e.out, r)
			}
		}
	}
	if len(enter) > 0 {
		write(enter)
	}
	for _, e := range leave { // an entity that could not enter all its lists stays in its former lists
		e.out = slices.DeleteFunc(e.out, func(r *driver.Reconciliation[T]) bool { return r.Err != nil })
	}
	leave = slices.DeleteFunc(leave, func(e *edit[T]) bool { return len(e.out) == 0 })
	if len(leave) > 0 {
		write(leave)
	}
}

// checkAll returns an error if a member's keys include a list of another index, or one that its message does not name.
func (x *index[T]) checkAll(ctx context.Context, r *driver.Reconciliation[T]) error {
	for _, place := range r.Keys {
		if err := x.shelves.checkOwn(place); err != nil {
			return &tables.Error{Op: "Reconcile", Kind: tables.ErrInvalid, Err: err}
		}
		if !r.Owns(ctx, place) {
			return tables.Invalidf("Reconcile", "the message does not name the list %q, so it cannot be written for this message; check who can put messages on the queue", place)
		}
	}
	return nil
}

// readLists implements Audit.Read. It reads each list once. For an entity in a damaged list, it returns a Fact with
// an Err. Requests: 1 for each list.
func (x *index[T]) readLists(ctx context.Context, asked []driver.Fact) ([]*driver.Fact, error) {
	found := make([]*driver.Fact, len(asked))
	at := map[string]int{} // indexes of places
	var places []driver.Fact
	for i := range asked {
		if _, known := at[asked[i].Place]; !known {
			at[asked[i].Place] = len(places)
			places = append(places, driver.Fact{Place: asked[i].Place})
		}
	}
	lists := make([]readList, len(places))
	_, err := driver.ReadEach(func(ctx context.Context, place string, _ tables.Key) (driver.Fact, bool, error) {
		ids, err := x.shelves.load(ctx, place)
		err = x.failed("Read", err)
		if err != nil && (!errors.Is(err, tables.ErrGarbled) || refusal.OfResponse(err)) {
			return driver.Fact{}, false, err
		}
		lists[at[place]] = readList{ids, err}
		return driver.Fact{}, false, nil
	})(ctx, places)
	if err != nil {
		return nil, err
	}
	for i := range asked {
		if fact, held := x.heldBy(&lists[at[asked[i].Place]], asked[i].Place, asked[i].Entity); held {
			found[i] = &fact
		}
	}
	return found, nil
}

// readList is a list as it was read, or the error of a damaged one.
type readList struct {
	ids []string
	err error
}
