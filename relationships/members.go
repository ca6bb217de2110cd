package relationships

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Members stores which children each parent has, in whichever partitions parent and children are: a row for
// each child in the parent's partition, and a row with the number of children. Intents keep them consistent. It
// is a pattern: give it to NewRepository of the children, whose table is one of a patterns.Store.
type Members[C any] struct{ members }

// members is a Members without the type of the children.
type members struct {
	name     string
	table    *tables.Table
	parentOf parentFunc

	repository driver.Binding
}

// parentFunc returns the key of a child's parent, or false if the child has no parent. It is nil if the caller has given none.
type parentFunc func(child any) (tables.Key, bool)

func parentFuncOf[C any](parentOf func(*C) (tables.Key, bool)) parentFunc {
	if parentOf == nil {
		return nil
	}
	return func(child any) (tables.Key, bool) { return parentOf(child.(*C)) }
}

// NewMembers returns the pattern. table stores the pattern's rows, such as the parents' table; nil means the
// children's own table. name is the beginning of the rows' keys: letters, digits, '-' and '.'. Stored intents
// contain it, so do not change it between versions of a program. parentOf returns the key of a child's
// parent, or false if the child has no parent; it must be pure, and use stored properties and keys only.
// Parents need not exist.
func NewMembers[C any](name string, table *tables.Table, parentOf func(*C) (tables.Key, bool)) *Members[C] {
	return &Members[C]{members{name: name, table: table, parentOf: parentFuncOf(parentOf)}}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Members[C]) Attach(host driver.Host, _ *C) (driver.Implementation, error) {
	return x.attach(host)
}

func (x *members) attach(host driver.Host) (driver.Implementation, error) {
	m := &memberRows{x, host}
	implementation := driver.Implementation{Name: x.name, Binding: &x.repository, Tables: []*tables.Table{x.table}, Intents: eventual.IntentQueue(nil, nil),
		Prior:  x.parentOf.prior,
		Effect: driver.Effect{OutsideKeys: m.outsideKeys, Reconcile: driver.ReconcileEach(m.reconcile), Expected: m.facts, List: m.held, Read: driver.ReadEach(m.readRow)}}
	if x.parentOf == nil {
		return implementation, errors.New("parentOf is nil; give a function that returns a child's parent")
	}
	return implementation, checkRowKeys("the members", x.name, host.Rows())
}

// memberRows is a Members with the children's repository.
type memberRows struct {
	*members
	host driver.Host
}

func (x *members) in(op string) (*memberRows, error) {
	host, err := x.repository.Host(op, x.name)
	return &memberRows{x, host}, err
}

func (x *memberRows) rows() *tables.Table {
	if x.table != nil {
		return x.table
	}
	return x.host.Table()
}

// countKey returns the key of the row with the number of a parent's members, the first of its rows.
func (x *members) countKey(parent tables.Key) tables.Key {
	return tables.Key{Partition: parent.Partition, Row: compoundkey.Join(x.name, compoundkey.String(parent.Row))}
}

// memberKey returns the key of a child's row.
func (x *members) memberKey(parent, child tables.Key) tables.Key {
	row := compoundkey.Join(x.name, compoundkey.String(parent.Row), compoundkey.String(child.Partition), compoundkey.String(child.Row))
	return tables.Key{Partition: parent.Partition, Row: row}
}

// childOf is the inverse of memberKey. It returns false for any other key, such as that of the row with the
// number.
func (x *members) childOf(row tables.Key) (parent, child tables.Key, ok bool) {
	parent.Partition = row.Partition
	err := compoundkey.Parse(row.Row, x.name, compoundkey.ToString(&parent.Row), compoundkey.ToString(&child.Partition), compoundkey.ToString(&child.Row))
	return parent, child, err == nil
}

// outsideKeys returns the places of the parents that a child enters and leaves by a change. If the child keeps
// its parent, it returns none, and the change needs no intent.
func (x *memberRows) outsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	from, to, err := x.parentOf.moves(c)
	if err != nil || from == to {
		return nil, err
	}
	var places []string
	if to != "" {
		if err := x.checkEntry(to, c.Key); err != nil {
			return nil, err
		}
		places = append(places, to)
	}
	// If the child's row would have too long a key, there is no such row: a program without Members has stored
	// the child.
	if from != "" && x.checkMember(from, c.Key) == nil {
		places = append(places, from)
	}
	return places, nil
}

// checkMember refuses a child whose row at a parent would have a key that the service does not accept.
func (x *members) checkMember(place string, child tables.Key) error {
	parent, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	if err := compoundkey.CheckKey(x.memberKey(parent, child).Row); err != nil {
		return fmt.Errorf("the parent's row key and both keys of the child together make the member's row key, which the service does not accept; shorten them: %w", err)
	}
	return nil
}

// checkEntry refuses a child that a parent cannot get as a member: by checkMember, or by Schema.MayName.
func (x *memberRows) checkEntry(place string, child tables.Key) error {
	if err := x.checkMember(place, child); err != nil {
		return err
	}
	parent, _ := driver.SplitKey(place) // checkMember has split it
	return x.host.MayName(child, parent)
}

// reconcile gives a child a row at its parent, and removes the child's rows at the other parents that the
// intent names.
func (x *memberRows) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	var own []string
	if r.Entity != nil {
		own = x.parentOf.ofStored(r.Entity)
	}
	for _, place := range r.Keys {
		if err := x.reconcileRow(ctx, r, place, slices.Contains(own, place)); err != nil {
			return err
		}
	}
	return nil
}

// reconcileRow adds or removes the child's row at one parent, and changes the number in the same transaction. It writes both
// rows under the ETags with which it read them, so concurrent or repeated calls count a child once.
func (x *memberRows) reconcileRow(ctx context.Context, r *driver.Reconciliation, place string, belongs bool) error {
	parent, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	if belongs {
		if err := x.checkEntry(place, r.Key); err != nil {
			return err
		}
	} else if x.checkMember(place, r.Key) != nil {
		return nil // an intent of an older build can name such a parent; the child has no row there
	}
	return r.Edit(ctx, place, x.rows(), func() ([]driver.RowOperation, error) {
		member, err := readRow(ctx, x.rows(), x.memberKey(parent, r.Key))
		if err != nil || (member.ETag != "") == belongs {
			return nil, err
		}
		return x.change(ctx, parent, member)
	})
}

// change returns the writes that add the row of a member, or remove it if it exists, and change the number. It
// never deletes the row with the number, even at 0: if that row were deleted and inserted again, a concurrent
// Recount could miss the changes in between.
func (x *memberRows) change(ctx context.Context, parent tables.Key, member *tables.Entity) ([]driver.RowOperation, error) {
	row, err := readRow(ctx, x.rows(), x.countKey(parent))
	if err != nil {
		return nil, err
	}
	verb, delta := driver.InsertRow, int64(1)
	if member.ETag != "" {
		verb, delta = driver.DeleteRow, -1
	}
	stored, ok := countIn(row)
	if !ok || stored.Count+delta < 0 {
		// This is the parent's first member, or rows were removed by hand.
		if stored, err = x.scan(ctx, parent); err != nil {
			return nil, err
		}
	}
	return []driver.RowOperation{{Verb: verb, Row: member}, putRow(row, setCount, Aggregate{Count: max(stored.Count+delta, 0)})}, nil
}

// scan counts the rows of a parent's members.
func (x *memberRows) scan(ctx context.Context, parent tables.Key) (a Aggregate, err error) {
	for _, err := range x.of(ctx, parent) {
		if err != nil {
			return Aggregate{}, err
		}
		a.Count++
	}
	return a, nil
}

// Count returns the number of a parent's members. Requests: 1.
func (x *Members[C]) Count(ctx context.Context, parent tables.Key) (int64, error) {
	m, err := x.in("Count")
	if err != nil {
		return 0, err
	}
	row, err := readRow(ctx, m.rows(), x.countKey(parent))
	if err != nil || row.ETag == "" {
		return 0, err
	}
	a, ok := countIn(row)
	if !ok {
		return 0, &tables.Error{Op: "Count", Table: m.rows().Name(), Key: row.Key, Pattern: x.name, Kind: tables.ErrGarbled, Err: fmt.Errorf("property %s is missing or not a number; run Members.Recount", countProperty)}
	}
	return a.Count, nil
}

// Recount counts a parent's members again, and returns the number and the previously stored one (-1 for none).
// Use it after rows were removed or added by hand: Verify and Repair compare the rows with the children, but
// not the number with the rows. The number is exact: if a member is added or removed meanwhile, Recount counts
// again, and returns tables.ErrConflict after ten attempts. Requests for each attempt: 2, and 1 for each page
// of members.
func (x *Members[C]) Recount(ctx context.Context, parent tables.Key) (n, was int64, err error) {
	m, err := x.in("Recount")
	if err != nil {
		return 0, 0, err
	}
	a, before, err := recount(ctx, x.name, m.rows(), x.countKey(parent), true, countIn, setCount, func(ctx context.Context) (Aggregate, error) { return m.scan(ctx, parent) })
	return a.Count, countOrNone(before), err
}

// Keys yields the keys of a parent's members, in the order of their partition keys and row keys. An error is
// yielded once, as the last element. Requests: 1 for each page of at most 1,000.
func (x *Members[C]) Keys(ctx context.Context, parent tables.Key) iter.Seq2[tables.Key, error] {
	m, err := x.in("Keys")
	if err != nil {
		return func(yield func(tables.Key, error) bool) { yield(tables.Key{}, err) }
	}
	return m.of(ctx, parent)
}

func (x *memberRows) of(ctx context.Context, parent tables.Key) iter.Seq2[tables.Key, error] {
	span := compoundkey.Starting(x.name, compoundkey.String(parent.Row))
	return func(yield func(tables.Key, error) bool) {
		for row, err := range x.rows().Entities().Query().Partition(parent.Partition).Rows(span).All(ctx) {
			if err != nil {
				yield(tables.Key{}, err)
				return
			}
			of, child, ok := x.childOf(row.Key)
			if ok && of.Row == parent.Row && !yield(child, nil) {
				return
			}
		}
	}
}

// All yields a parent's members in the order of Keys, read concurrently. It skips members that were deleted or
// now have another parent. An error is yielded once, as the last element. Requests: those of Keys, and 1 for
// each member.
func (x *Members[C]) All(ctx context.Context, parent tables.Key) iter.Seq2[*C, error] {
	return func(yield func(*C, error) bool) {
		m, err := x.in("All")
		if err != nil {
			yield(nil, err)
			return
		}
		keys := make([]tables.Key, 0, defaultBatch)
		// flush yields the collected members, and reports whether the iteration continues.
		flush := func() bool {
			for v, err := range m.host.GetMany(ctx, keys, 0) {
				if err != nil {
					yield(nil, err)
					return false
				}
				if key, ok := x.parentOf(v); ok && key == parent && !yield(driver.As[C](v), nil) {
					return false
				}
			}
			keys = keys[:0]
			return true
		}
		for key, err := range m.of(ctx, parent) {
			if err != nil {
				yield(nil, err)
				return
			}
			if keys = append(keys, key); len(keys) == defaultBatch && !flush() {
				return
			}
		}
		if len(keys) > 0 {
			flush()
		}
	}
}

// facts returns the fact that a child has a row at its parent. It returns an error if checkEntry refuses the child: then a
// program without Members has stored it.
func (x *memberRows) facts(v any) ([]driver.Fact, error) {
	key, ok, err := x.parentOf.in(v)
	if err != nil || !ok {
		return nil, err
	}
	fact := driver.Fact{Place: driver.JoinKey(key), Entity: x.host.KeyOf(v)}
	if err := x.checkEntry(fact.Place, fact.Entity); err != nil {
		return nil, err
	}
	return []driver.Fact{fact}, nil
}

// held yields the facts of the stored rows whose children are in the scope. Requests: those of
// Query.AllParallel of the table that holds the rows.
func (x *memberRows) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		q := x.rows().Entities().Query().Rows(compoundkey.All().Under(x.name)).AllowTableScan()
		for row, err := range q.AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			parent, child, ok := x.childOf(row.Key)
			if !ok || !scope.Contains(child) {
				continue
			}
			if !yield(driver.Fact{Place: driver.JoinKey(parent), Entity: child}, nil) {
				return
			}
		}
	}
}

// readRow reports whether a child has a row at a parent. Requests: 1.
func (x *memberRows) readRow(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	parent, err := driver.SplitKey(place)
	if err != nil {
		return driver.Fact{}, false, err
	}
	row, err := readRow(ctx, x.rows(), x.memberKey(parent, entity))
	return driver.Fact{Place: place, Entity: entity}, err == nil && row.ETag != "", err
}

// in returns the key of an entity's parent, and an error if that key is illegal.
func (f parentFunc) in(v any) (key tables.Key, ok bool, err error) {
	if key, ok = f(v); !ok {
		return tables.Key{}, false, nil
	}
	return key, true, errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}

// ofStored returns the place of a stored entity's parent. It returns none for a parent with an illegal key: the
// entity was never counted there.
func (f parentFunc) ofStored(v any) []string {
	key, ok, err := f.in(v)
	if err != nil || !ok {
		return nil
	}
	return []string{driver.JoinKey(key)}
}

// prior implements driver.Implementation.Prior.
func (f parentFunc) prior(v any, _ tables.Properties) ([]string, error) { return f.ofStored(v), nil }

// moves returns the place of the parent that an entity leaves by a change, and the place of the parent that it
// enters; "" for none.
func (f parentFunc) moves(c *driver.Change) (from, to string, err error) {
	if len(c.Prior) > 0 {
		from = c.Prior[0]
	}
	if c.Kind == driver.ChangeDelete {
		return from, "", nil
	}
	key, ok, err := f.in(c.Entity)
	if ok && err == nil {
		to = driver.JoinKey(key)
	}
	return from, to, err
}
