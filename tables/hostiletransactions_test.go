package tables_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestHostileTransactionsAreRefused(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	add := func(n int, rowOf func(i int) *tables.Entity) *tables.Transaction {
		x := table.NewTransaction()
		for i := range n {
			x.Upsert(rowOf(i))
		}
		return x
	}
	row := func(i int) *tables.Entity { return harness.Row("p", fmt.Sprint(i)) }
	committed := add(1, row)
	assert.Must[[]azcore.ETag](t)(committed.Commit(ctx))
	unread := table.NewTransaction()
	unread.Upsert(row(0))
	unread.Replace(row(1))
	for _, c := range []struct {
		what   string
		kind   error
		change int
		x      *tables.Transaction
	}{
		{"no operations", tables.ErrInvalid, 0, table.NewTransaction()},
		{"101 operations", tables.ErrTooLarge, 0, add(101, row)},
		{"10,000 operations", tables.ErrTooLarge, 0, add(10_000, row)},
		{"the same row twice", tables.ErrInvalid, 3, add(4, func(i int) *tables.Entity { return row(i % 2) })},
		{"two partitions", tables.ErrInvalid, 4, add(4, func(i int) *tables.Entity { return harness.Row(fmt.Sprint(i/3), fmt.Sprint(i)) })},
		{"partitions that differ in case", tables.ErrInvalid, 2, add(2, func(i int) *tables.Entity { return harness.Row([]string{"p", "P"}[i], "r") })},
		{"an operation without ETag", tables.ErrInvalid, 2, unread},
		{"a second commit", tables.ErrWiring, 0, committed},
		{"a bad row among good ones", tables.ErrInvalid, 2, add(3, func(i int) *tables.Entity { return harness.Row("p", []string{"a", "b/c", "d"}[i]) })},
		{"a reserved name", tables.ErrInvalid, 1, add(2, func(i int) *tables.Entity { return harness.Row("p", fmt.Sprint(i), property("_tpX", tables.Int32(1))) })},
		{"a large row among small ones", tables.ErrTooLarge, 2, add(3, func(i int) *tables.Entity {
			return harness.Row("p", fmt.Sprint(i), property("S", tables.String(strings.Repeat("s", []int{1, 32769, 1}[i]))))
		})},
		{"over 4 MiB", tables.ErrTooLarge, 0, add(8, func(i int) *tables.Entity {
			e := harness.Row("p", fmt.Sprint(i))
			for j := range 10 {
				e.Set(fmt.Sprintf("B%d", j), tables.Binary(make([]byte, 64*1024)))
			}
			return e
		})},
	} {
		harness.RefusedUnsent(t, requests, c.kind, c.what, func() error {
			_, err := c.x.Commit(ctx)
			var e *tables.Error
			if errors.As(err, &e) && e.Change != c.change {
				t.Errorf("%s: change %d, want %d", c.what, e.Change, c.change)
			}
			return err
		})
	}
}

func TestTransactionsOfOneAndOfAHundred(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	for _, n := range []int{1, 2, 100} {
		before := requests.Load()
		x := table.NewTransaction()
		for i := range n {
			x.Insert(harness.Row("p", fmt.Sprintf("%d of %d", i, n), property("N", tables.Int32(int32(i)))))
		}
		etags := assert.Must[[]azcore.ETag](t)(x.Commit(ctx))
		assert.Equal(t, requests.Load()-before, 1, "%d operations: requests", n)
		if len(etags) != n {
			t.Fatalf("%d ETags of %d operations", len(etags), n)
		}
		for i, etag := range etags {
			got := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, tables.Key{Partition: "p", Row: fmt.Sprintf("%d of %d", i, n)}))
			if got.ETag != etag || got.Get("N") != tables.Int32(int32(i)) {
				t.Errorf("row %d of %d: ETag %q, told %q", i, n, got.ETag, etag)
			}
		}
		x = table.NewTransaction()
		for i := range n {
			x.DeleteUnconditional(tables.Key{Partition: "p", Row: fmt.Sprintf("%d of %d", i, n)})
		}
		for _, etag := range assert.Must[[]azcore.ETag](t)(x.Commit(ctx)) {
			assert.Equal(t, etag, "", "the ETag of a delete")
		}
	}
}

// TestFailureInEveryPlace: whichever operation fails, its index and row come back, and nothing is applied.
func TestFailureInEveryPlace(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	there := harness.Row("p", "there", property("N", tables.Int32(1)))
	assert.Check(t, table.Entities().Insert(ctx, there))
	stale := there.Clone()
	stale.ETag = `W/"datetime'2001-01-01T00%3A00%3A00.0000000Z'"`
	for _, c := range []struct {
		what string
		kind error
		add  func(*tables.Transaction)
	}{
		{"insert", tables.ErrExists, func(x *tables.Transaction) { x.Insert(there) }},
		{"replace", tables.ErrConflict, func(x *tables.Transaction) { x.Replace(stale) }},
		{"merge", tables.ErrConflict, func(x *tables.Transaction) { x.Merge(stale) }},
		{"delete", tables.ErrConflict, func(x *tables.Transaction) { x.Delete(stale) }},
		{"delete of nothing", tables.ErrNotFound, func(x *tables.Transaction) {
			x.DeleteUnconditional(tables.Key{Partition: "p", Row: "absent"})
		}},
	} {
		for n := 1; n <= 4; n++ {
			for place := range n {
				x := table.NewTransaction()
				for i := range n {
					if i == place {
						c.add(x)
					} else {
						x.Insert(harness.Row("p", fmt.Sprint("new ", i)))
					}
				}
				_, err := x.Commit(ctx)
				e := harness.WantKind(t, err, c.kind)
				if want := place + 1; e.Change != want || e.Key.Row == "" {
					t.Errorf("%s in place %d of %d: %v", c.what, place, n, e)
				}
			}
		}
	}
	if got := rows(t, table.Entities().Query().Partition("p")); len(got) != 1 {
		t.Errorf("rows %q are left", got)
	}
}
