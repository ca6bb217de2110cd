package dataseries

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// readMany joins the rows of each series. Rows of one series need not be neighbours: "a!0001" comes after the
// series "a b", which comes after "a". So readMany holds back a series, and all series after it, until no
// further row of the first can follow.
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

// enter adds a row to its series. It ignores a row without slots.
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
	// If the first row of a series has no slots, insert the series at its place in the order.
	at, _ = slices.BinarySearchFunc(waiting, key, func(w record, k tables.Key) int { return compoundkey.Compare(w.key.Row, k.Row) })
	return slices.Insert(waiting, at, one), nil
}

// widened extends the span to the further rows of its series: the row "a!0001" of the series "a" sorts after
// "a b", which may be the upper bound. The lower bound stays, since further rows sort after the first row.
func (r *rowShelf) widened(of compoundkey.Span) compoundkey.Span {
	if at := strings.IndexAny(of.To(), " !"); at >= 0 && r.several() {
		const behindMark = `"` // the character after '!'
		return compoundkey.Range(of.From(), of.To()[:at]+behindMark)
	}
	return of
}
