package inspect

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTake: a row with a value that cannot be read is counted by its key, and every other error ends the run.
func TestTake(t *testing.T) {
	c, key := newCollector(&Options{MaxPartitions: 10, MaxProperties: 10}), tables.Key{Partition: "p", Row: "1"}
	v := &visitor{garbled: func(e *tables.Error) { c.garble(e.Key) }, row: func(_ context.Context, row *tablerow.Row) error {
		c.add(row)
		return nil
	}}
	for _, x := range []struct {
		row  *tablerow.Row
		err  error
		ends bool
	}{
		{row: &tablerow.Row{Key: tables.Key{Partition: "p", Row: "0"}}},
		{err: &tables.Error{Op: "Query", Key: key, Kind: tables.ErrGarbled, OfRow: true}},
		{err: &tables.Error{Op: "Query", Kind: tables.ErrGarbled}, ends: true}, // a whole page
		{err: &tables.Error{Op: "Query", Key: key, Kind: tables.ErrUnavailable}, ends: true},
		{err: context.Canceled, ends: true},
	} {
		if got := v.take(t.Context(), x.row, x.err); (got != nil) != x.ends || x.ends && !errors.Is(got, x.err) {
			t.Errorf("%v: %v", x.err, got)
		}
	}
	if r := c.report(); r.Rows != 2 || r.Garbled != 1 || r.GarbledExamples[0] != keyOf(key) || r.Partitions.Largest[0].Rows != 2 || r.Entities != 1 {
		t.Errorf("%+v", r)
	}
	assert.Check(t, (&visitor{}).take(t.Context(), nil, &tables.Error{Key: key, Kind: tables.ErrGarbled, OfRow: true}))
}
