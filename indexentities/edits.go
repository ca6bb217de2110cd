package indexentities

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// edit is the change of one list: the members that the list must contain, and those that it must not contain.
type edit[T any] struct {
	place string
	in    []*driver.Reconciliation[T]
	out   []*driver.Reconciliation[T]
}

// all returns the members of an edit.
func (e *edit[T]) all() []*driver.Reconciliation[T] { return slices.Concat(e.in, e.out) }

// fail records an error for the members of an edit.
func (e *edit[T]) fail(err error) {
	for _, r := range e.all() {
		if r.Err == nil {
			r.Err = err
		}
	}
}

// reconcile calls write for the lists that an intent names, usually once for each list with all members that
// enter or leave it. A member enters its new lists before it leaves others, so that readers can always find
// it. So a list that some members enter and others leave may be written twice. write records failures in the
// members.
func (x *index[T]) reconcile(ctx context.Context, all []*driver.Reconciliation[T], write func([]*edit[T])) {
	var enter, leave []*edit[T]
	at := map[string]*edit[T]{} // of enter
	entering := map[*driver.Reconciliation[T]]bool{}
	left := map[string]*edit[T]{}
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

// checkAll returns an error for a member whose keys include a list that is not one of the index's, or a list
// that its message does not name.
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

// readLists implements Audit.Read: it reads each list once for all entities whose facts are in it. A damaged list is a Fact with an Err.
// Requests: 1 for each list.
func (x *index[T]) readLists(ctx context.Context, asked []driver.Fact) ([]*driver.Fact, error) {
	found := make([]*driver.Fact, len(asked))
	first := map[string]int{} // the first fact of a list
	var places []driver.Fact
	for i := range asked {
		if _, known := first[asked[i].Place]; !known {
			first[asked[i].Place] = len(places)
			places = append(places, driver.Fact{Place: asked[i].Place})
		}
	}
	lists := make([]readList, len(places))
	_, err := driver.ReadEach(func(ctx context.Context, place string, _ tables.Key) (driver.Fact, bool, error) {
		ids, err := x.shelves.load(ctx, place)
		err = x.failed("Read", err)
		if err != nil && !errors.Is(err, tables.ErrGarbled) {
			return driver.Fact{}, false, err
		}
		lists[first[place]] = readList{ids, err}
		return driver.Fact{}, false, nil
	})(ctx, places)
	if err != nil {
		return nil, err
	}
	for i := range asked {
		if fact, held := x.heldBy(&lists[first[asked[i].Place]], asked[i].Place, asked[i].Entity); held {
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
