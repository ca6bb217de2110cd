package indexentities

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// apply carries operations out on a list, as the service would.
func (l *list) apply(t *rapid.T, operations []driver.RowOperation) {
	for _, o := range operations {
		first, number := rows.ParseNumbered(o.Row.Key.Row)
		at := slices.IndexFunc(l.rows, func(r listRow) bool { return r.number == number })
		if first != l.first.Row || (o.Verb == driver.InsertRow) != (at < 0) {
			t.Fatalf("operation %d on row %q, which is at %d", o.Verb, o.Row.Key.Row, at)
		}
		if o.Verb == driver.DeleteRow {
			l.rows = slices.Delete(l.rows, at, at+1)
			continue
		}
		ids, err := decodeIDs(o.Row.Properties)
		if err != nil {
			t.Fatal(err)
		}
		row := listRow{number: number, ids: ids, etag: azcore.ETag(fmt.Sprint("etag", number))}
		if at < 0 {
			l.rows = append(l.rows, row)
			slices.SortFunc(l.rows, func(a, b listRow) int { return a.number - b.number })
		} else {
			if o.Row.ETag != l.rows[at].etag {
				t.Fatalf("row %d is written under ETag %q", number, o.Row.ETag)
			}
			l.rows[at] = row
		}
	}
}

// after returns what is written after an edit of a copy of the list.
func (l *list) after(edit func(*list) error) ([]driver.RowOperation, error) {
	edited := &list{l.first, slices.Clone(l.rows)}
	err := edit(edited)
	return edited.writes(), err
}

// TestListsAreSets: whatever enters and leaves, a list holds what a set would, each id in one row, and no row is empty or
// larger than the service takes.
func TestListsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, set := &list{first: tables.Key{Partition: "Sales", Row: "lastname_Jones"}}, map[string]bool{}
		id := rapid.Custom(func(t *rapid.T) string {
			n := rapid.IntRange(0, 40).Draw(t, "n")
			return fmt.Sprintf("%03d", n) + strings.Repeat("\U0001F600", rapid.SampledFrom([]int{0, 1000, 14_000}).Draw(t, "units"))
		})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			one := id.Draw(t, "id")
			if rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
				operations, _ := l.after(func(l *list) error { l.leave(one); return nil })
				l.apply(t, operations)
				delete(set, one)
			} else {
				operations, err := l.after(func(l *list) error { return l.enter(one, rapid.Bool().Draw(t, "touch")) })
				if err != nil || len(operations) > 1 {
					t.Fatalf("%d operations, %v", len(operations), err)
				}
				l.apply(t, operations)
				set[one] = true
			}
			want := []string{}
			for s := range set {
				want = append(want, s)
			}
			slices.SortFunc(want, compoundkey.Compare)
			if got := l.ids(); !slices.Equal(got, want) || !slices.Contains(got, one) == set[one] {
				t.Fatalf("the list has %d ids, and should have %d", len(got), len(want))
			}
			held := 0
			for i := range l.rows {
				held += len(l.rows[i].ids)
				checkRow(t, encodeIDs(l.rows[i].ids))
			}
			if held != len(set) {
				t.Fatalf("%d ids in the rows, %d in the list", held, len(set))
			}
		}
	})
}

// checkRow holds a row to the service's limits, with 4 KiB for keys and properties of the library.
func checkRow(t *rapid.T, p tables.Properties) {
	size := 4096
	for i := range p {
		size += edm.PropertySize(p[i].Name, edm.Value(p[i].Value))
		if err := edm.Value(p[i].Value).Check(); err != nil {
			t.Fatal(err)
		}
	}
	if len(p) < 2 || size > tables.MaxEntitySize {
		t.Fatalf("a row of %d properties and %d bytes", len(p), size)
	}
}

// TestRepeatedIDs: an id in two rows leaves both, and is repaired by the next write.
func TestRepeatedIDs(t *testing.T) {
	l := &list{first: tables.Key{Partition: "Sales", Row: "Jones"}, rows: []listRow{{number: 0, ids: []string{"a", "b"}, etag: "0"}, {number: 2, ids: []string{"b"}, etag: "2"}}}
	if got := l.ids(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("ids are %q", got)
	}
	operations, err := l.after(func(l *list) error { return l.enter("b", false) })
	if err != nil || len(operations) != 1 || operations[0].Verb != driver.DeleteRow || operations[0].Row.Key.Row != "Jones!0002" {
		t.Errorf("entered by %+v, %v", operations, err)
	}
	if operations, _ := l.after(func(l *list) error { l.leave("b"); return nil }); len(operations) != 2 {
		t.Errorf("left by %+v", operations)
	}
	if operations, _ := l.after(func(l *list) error { l.leave("c"); return nil }); operations != nil {
		t.Errorf("left without being there: %+v", operations)
	}
}

// TestNumbers: the least free number, and none beyond the last.
func TestNumbers(t *testing.T) {
	var l list
	for number := range mostRows {
		if got, err := l.free(); got != number || err != nil {
			t.Fatalf("of %d rows number %d is free, %v", len(l.rows), got, err)
		}
		l.rows = append(l.rows, listRow{number: number})
	}
	if _, err := l.free(); !errors.Is(err, tables.ErrTooLarge) || !strings.Contains(err.Error(), "NewInTable") {
		t.Errorf("error is %v", err)
	}
	l.rows = slices.Delete(l.rows, 7, 8)
	if got, err := l.free(); got != 7 || err != nil {
		t.Errorf("number %d is free, %v", got, err)
	}
}

// TestChangesThatFitNoTransaction are refused, with the option that takes them.
func TestChangesThatFitNoTransaction(t *testing.T) {
	row := func(units int) driver.RowOperation {
		return driver.RowOperation{Row: &tables.Entity{Properties: tables.Properties{{Name: "Keys", Value: tables.String(strings.Repeat("x", units))}}}}
	}
	for what, c := range map[string]struct {
		operations []driver.RowOperation
		fits       bool
	}{
		"99 rows":  {slices.Repeat([]driver.RowOperation{row(1)}, 99), true},
		"100 rows": {slices.Repeat([]driver.RowOperation{row(1)}, 100), false},
		"4 MiB":    {slices.Repeat([]driver.RowOperation{row(1 << 20)}, 4), true},
		"more":     {append(slices.Repeat([]driver.RowOperation{row(1 << 20)}, 4), row(1)), false},
	} {
		err := checkSize(c.operations)
		if c.fits != (err == nil) || !c.fits && (!errors.Is(err, tables.ErrTooLarge) || !strings.Contains(err.Error(), "NewInTable")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCutLists: nothing of a row that is not all of it is taken for it.
func TestCutLists(t *testing.T) {
	for _, p := range []tables.Properties{nil, {{Name: "Keys", Value: tables.String("a")}}, {{Name: "Count", Value: tables.Int32(2)}, {Name: "Keys", Value: tables.String("a")}},
		{{Name: "Count", Value: tables.Int32(1)}}} {
		if ids, err := decodeIDs(p); err == nil {
			t.Errorf("%v is %q", p, ids)
		}
	}
}
