package dataseries

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rowShelf stores each series in one or more rows.
type rowShelf struct {
	layout
	table    *tables.Table
	rows     *tables.Rows[tables.Entity]
	attempts int
	counts   bool // set for a Counter: every write must check the ETags of the rows as read
}

// set merges the values into the rows that hold their slots; several rows in one transaction.
func (r *rowShelf) set(ctx context.Context, key tables.Key, values []slotValue) error {
	merged := r.rowsFor(key, values)
	if r.counts {
		return r.setUnchanged(ctx, merged)
	}
	if len(merged) == 1 {
		return r.rows.UpsertMerge(ctx, merged[0])
	}
	x := r.table.NewTransaction()
	for _, row := range merged {
		x.UpsertMerge(row)
	}
	_, err := x.Commit(ctx)
	return err
}

// rowsFor groups values by the rows that hold their slots.
func (r *rowShelf) rowsFor(key tables.Key, values []slotValue) []*tables.Entity {
	var grouped []*tables.Entity
	for _, v := range values { // values are sorted, so those of one row are neighbours
		if at := r.rowOf(key, v.slot); len(grouped) == 0 || grouped[len(grouped)-1].Key != at {
			grouped = append(grouped, &tables.Entity{Key: at})
		}
		row := grouped[len(grouped)-1]
		row.Properties = append(row.Properties, tables.Property{Name: r.property(v.slot), Value: v.value})
	}
	return grouped
}

// setUnchanged does what set does, under the rows' ETags: an attempt without ETag whose response was lost could arrive late,
// and undo acknowledged additions.
func (r *rowShelf) setUnchanged(ctx context.Context, values []*tables.Entity) error {
	return persist(ctx, r.attempts, false, func(ctx context.Context) (step, error) {
		x, base := r.table.NewTransaction(), ""
		for _, value := range values {
			row, err := r.rows.Get(ctx, value.Key)
			switch {
			case errors.Is(err, tables.ErrNotFound):
				x.Insert(&tables.Entity{Key: value.Key, Properties: value.Properties})
			case err != nil:
				return step{}, err
			default:
				row.Properties = value.Properties // the row keeps its ETag
				base += string(row.ETag) + " "
				x.Merge(row)
			}
		}
		return step{azcore.ETag(base), func(ctx context.Context) error {
			_, err := x.Commit(ctx)
			return err
		}}, nil
	})
}

// of reads the rows of a series.
func (r *rowShelf) of(ctx context.Context, key tables.Key) ([]*tables.Entity, error) {
	if !r.several() {
		row, err := r.rows.Get(ctx, key)
		if errors.Is(err, tables.ErrNotFound) {
			return nil, nil
		}
		return []*tables.Entity{row}, err
	}
	var found []*tables.Entity
	for row, err := range r.rows.Query().Partition(key.Partition).Rows(rows.AllNumbered(key.Row)).All(ctx) {
		if err != nil {
			return nil, err
		}
		if first, _ := rows.ParseNumbered(row.Key.Row); first == key.Row {
			found = append(found, row)
		}
	}
	return found, nil
}

func (r *rowShelf) read(ctx context.Context, key tables.Key) ([]tables.Value, error) {
	stored, err := r.of(ctx, key)
	if err != nil {
		return nil, err
	}
	values := make([]tables.Value, r.slots)
	for _, row := range stored {
		if _, err := r.takeRow(values, row); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (r *rowShelf) takeRow(values []tables.Value, row *tables.Entity) (found bool, err error) {
	number := 0
	if r.several() {
		_, number = rows.ParseNumbered(row.Key.Row)
	}
	if found, err = r.take(values, row.Properties, number); err != nil {
		return false, garbled(row.Key, err)
	}
	return found, nil
}

// remove deletes the rows of a series under their ETags, so that concurrent changes are not lost. It deletes a series
// in one row without a check of the ETag.
func (r *rowShelf) remove(ctx context.Context, key tables.Key) error {
	if !r.several() {
		return r.rows.DeleteUnconditional(ctx, key)
	}
	tried := false
	return persist(ctx, r.attempts, true, func(ctx context.Context) (step, error) {
		stored, err := r.of(ctx, key)
		if err == nil && len(stored) == 0 && !tried {
			err = &tables.Error{Key: key, Kind: tables.ErrNotFound}
		}
		return step{write: func(ctx context.Context) error {
			if len(stored) == 0 {
				return nil // an earlier attempt whose response was lost, or a concurrent writer, has deleted the rows
			}
			tried = true
			x := r.table.NewTransaction()
			for _, row := range stored {
				x.Delete(row)
			}
			_, err := x.Commit(ctx)
			return err
		}}, err
	})
}

// sum computes the new value of a slot from the old one, which is null for a gap.
type sum func(old tables.Value) (tables.Value, error)

// added reads the row of a slot, and returns the entity to merge into it. If the entity has no ETag, the row does not
// exist, and must be inserted.
func (r *rowShelf) added(ctx context.Context, key tables.Key, slot int, sum sum) (*tables.Entity, error) {
	key = r.rowOf(key, slot)
	row, err := r.rows.Get(ctx, key)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		row = &tables.Entity{Key: key}
	case err != nil:
		return nil, err
	}
	name := r.property(slot)
	value, err := sum(row.Get(name))
	if err != nil {
		return row, err
	}
	row.Properties = tables.Properties{{Name: name, Value: value}} // the row keeps its ETag
	return row, nil
}

func (r *rowShelf) add(ctx context.Context, key tables.Key, slot int, sum sum) error {
	return persist(ctx, r.attempts, false, func(ctx context.Context) (step, error) {
		row, err := r.added(ctx, key, slot, sum)
		if err != nil {
			return step{}, err
		}
		return step{row.ETag, func(ctx context.Context) error {
			if row.ETag == "" {
				return r.rows.Insert(ctx, row)
			}
			return r.rows.Merge(ctx, row)
		}}, nil
	})
}

// addOnce adds the delta and inserts the marker in one transaction. If an attempt was applied, the next
// attempt finds the marker.
func (r *rowShelf) addOnce(ctx context.Context, m *mark, sum sum) (counted bool, err error) {
	var refused error
	found := func(context.Context) error { return nil }
	err = persist(ctx, r.attempts, true, func(ctx context.Context) (step, error) {
		row, err := r.added(ctx, m.key, m.slot, sum)
		if errors.Is(err, ErrOverflow) {
			// The operation itself may have filled the slot, in an earlier call.
			known, first, readErr := r.known(ctx, m)
			switch {
			case known:
				counted, refused = first, readErr
				return step{write: found}, nil
			case readErr != nil:
				err = readErr
			}
		}
		if err != nil {
			return step{}, err
		}
		return step{row.ETag, func(ctx context.Context) error {
			x := r.table.NewTransaction()
			m.stage(x, row)
			_, err := x.Commit(ctx)
			if errors.Is(err, tables.ErrExists) {
				known, first, readErr := r.known(ctx, m)
				if known {
					counted, refused = first, readErr
					return nil
				}
				return err // another writer has changed the row, or the marker cannot be read now
			}
			counted = err == nil
			return err
		}}, nil
	})
	if err == nil {
		err = refused
	}
	return counted, err
}

// known reports whether an operation was counted before, and whether this call has counted it (first).
func (r *rowShelf) known(ctx context.Context, m *mark) (known, first bool, err error) {
	row, err := r.rows.Get(ctx, m.row())
	if errors.Is(err, tables.ErrNotFound) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return true, row.Get(markerCall) == tables.String(m.call), m.same(row.Get(markerSlot), row.Get(markerDelta))
}

// readMany joins the rows of each series, which need not be neighbours: the series "a b" sorts between the rows "a" and
// "a!0001" of the series "a". So readMany holds back a series, and all series after it, until none of its rows can follow.
func (r *rowShelf) readMany(ctx context.Context, partition string, of compoundkey.Span) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		var waiting []record
		// pass yields the series whose last row the query has passed; at its end, all of them.
		pass := func(row string, end bool) bool {
			for len(waiting) > 0 && (end || compoundkey.Compare(rows.AllNumbered(waiting[0].key.Row).To(), row) <= 0) {
				if !yield(waiting[0], nil) {
					return false
				}
				waiting = waiting[1:]
			}
			return true
		}
		for row, err := range r.table.InOrder(r.rows.Query().Partition(partition).Rows(r.widened(of)).All(ctx)) {
			if err != nil {
				yield(record{}, err)
				return
			}
			first := row.Key.Row
			if r.several() {
				first, _ = rows.ParseNumbered(row.Key.Row)
			}
			if !of.Contains(first) || strings.HasPrefix(first, markerPrefix) {
				continue
			}
			if !pass(row.Key.Row, false) {
				return
			}
			if waiting, err = r.enter(waiting, tables.Key{Partition: partition, Row: first}, row); err != nil {
				yield(record{key: row.Key}, err)
				return
			}
			if !r.several() && !pass("", true) {
				return
			}
		}
		pass("", true)
	}
}

// enter adds a row to its series in waiting. It ignores a row without slots whose series is not in waiting yet.
func (r *rowShelf) enter(waiting []record, key tables.Key, row *tables.Entity) ([]record, error) {
	at := slices.IndexFunc(waiting, func(w record) bool { return w.key == key })
	if at >= 0 {
		_, err := r.takeRow(waiting[at].values, row)
		return waiting, err
	}
	one := record{key, make([]tables.Value, r.slots)}
	if found, err := r.takeRow(one.values, row); err != nil || !found {
		return waiting, err
	}
	// The series may sort before others in waiting: if its first row has no slots, it enters with a later one.
	at, _ = slices.BinarySearchFunc(waiting, key, func(w record, k tables.Key) int { return compoundkey.Compare(w.key.Row, k.Row) })
	return slices.Insert(waiting, at, one), nil
}

// widened extends the upper bound of a span to the further rows of its series: for the bound "a b", the span must contain
// the row "a!0001" of the series "a", which sorts after it.
func (r *rowShelf) widened(of compoundkey.Span) compoundkey.Span {
	if at := strings.IndexAny(of.To(), " !"); at >= 0 && r.several() {
		const behindMark = `"` // the character after '!'
		return compoundkey.Range(of.From(), of.To()[:at]+behindMark)
	}
	return of
}
