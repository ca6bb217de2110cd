package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns"
)

func TestHostileTransactionsAreRefused(t *testing.T) {
	ctx := context.Background()
	a, requests := counted(t)
	table := newTable(t, a)
	add := func(n int, make func(i int) *patterns.Entity) *patterns.Transaction {
		x := table.NewTransaction()
		for i := range n {
			x.Upsert(make(i))
		}
		return x
	}
	row := func(i int) *patterns.Entity { return entity("p", fmt.Sprint(i)) }
	committed := add(1, row)
	must[[]azcore.ETag](t)(committed.Commit(ctx))
	unread := table.NewTransaction()
	unread.Upsert(row(0))
	unread.Replace(row(1))
	for _, c := range []struct {
		what   string
		kind   error
		change int
		x      *patterns.Transaction
	}{
		{"no operations", patterns.ErrInvalid, 0, table.NewTransaction()},
		{"101 operations", patterns.ErrTooLarge, 0, add(101, row)},
		{"10,000 operations", patterns.ErrTooLarge, 0, add(10_000, row)},
		{"the same row twice", patterns.ErrInvalid, 3, add(4, func(i int) *patterns.Entity { return row(i % 2) })},
		{"two partitions", patterns.ErrInvalid, 4, add(4, func(i int) *patterns.Entity { return entity(fmt.Sprint(i/3), fmt.Sprint(i)) })},
		{"partitions that differ in case", patterns.ErrInvalid, 2, add(2, func(i int) *patterns.Entity { return entity([]string{"p", "P"}[i], "r") })},
		{"an operation without ETag", patterns.ErrInvalid, 2, unread},
		{"a second commit", patterns.ErrInvalid, 0, committed},
		{"a bad row among good ones", patterns.ErrInvalid, 2, add(3, func(i int) *patterns.Entity { return entity("p", []string{"a", "b/c", "d"}[i]) })},
		{"a reserved name", patterns.ErrInvalid, 1, add(2, func(i int) *patterns.Entity { return entity("p", fmt.Sprint(i), property("_tpX", patterns.Int32(1))) })},
		{"a large row among small ones", patterns.ErrTooLarge, 2, add(3, func(i int) *patterns.Entity {
			return entity("p", fmt.Sprint(i), property("S", patterns.String(strings.Repeat("s", []int{1, 32769, 1}[i]))))
		})},
		{"over 4 MiB", patterns.ErrTooLarge, 0, add(8, func(i int) *patterns.Entity {
			e := entity("p", fmt.Sprint(i))
			for j := range 10 {
				e.Set(fmt.Sprintf("B%d", j), patterns.Binary(make([]byte, 64*1024)))
			}
			return e
		})},
	} {
		refused(t, requests, c.kind, c.what, func() error {
			_, err := c.x.Commit(ctx)
			var e *patterns.Error
			if errors.As(err, &e) && e.Change != c.change {
				t.Errorf("%s: change %d, want %d", c.what, e.Change, c.change)
			}
			return err
		})
	}
}

func TestTransactionsOfOneAndOfAHundred(t *testing.T) {
	ctx := context.Background()
	a, requests := counted(t)
	table := newTable(t, a)
	for _, n := range []int{1, 2, 100} {
		before := requests.Load()
		x := table.NewTransaction()
		for i := range n {
			x.Insert(entity("p", fmt.Sprintf("%d of %d", i, n), property("N", patterns.Int32(int32(i)))))
		}
		etags := must[[]azcore.ETag](t)(x.Commit(ctx))
		if made := requests.Load() - before; made != 1 {
			t.Errorf("%d operations made %d requests", n, made)
		}
		if len(etags) != n {
			t.Fatalf("%d ETags of %d operations", len(etags), n)
		}
		for i, etag := range etags {
			got := must[*patterns.Entity](t)(table.Entities().Get(ctx, patterns.Key{Partition: "p", Row: fmt.Sprintf("%d of %d", i, n)}))
			if got.ETag != etag || got.Get("N") != patterns.Int32(int32(i)) {
				t.Errorf("row %d of %d: ETag %q, told %q", i, n, got.ETag, etag)
			}
		}
		x = table.NewTransaction()
		for i := range n {
			x.DeleteUnconditional(patterns.Key{Partition: "p", Row: fmt.Sprintf("%d of %d", i, n)})
		}
		for _, etag := range must[[]azcore.ETag](t)(x.Commit(ctx)) {
			if etag != "" {
				t.Errorf("a delete has the ETag %q", etag)
			}
		}
	}
}

// TestFailureInEveryPlace: whichever operation fails, its index and row come back, and nothing is applied.
func TestFailureInEveryPlace(t *testing.T) {
	ctx := context.Background()
	table := newTable(t, account(t))
	there := entity("p", "there", property("N", patterns.Int32(1)))
	if err := table.Entities().Insert(ctx, there); err != nil {
		t.Fatal(err)
	}
	stale := there.Clone()
	stale.ETag = `W/"datetime'2001-01-01T00%3A00%3A00.0000000Z'"`
	for _, c := range []struct {
		what string
		kind error
		add  func(*patterns.Transaction)
	}{
		{"insert", patterns.ErrExists, func(x *patterns.Transaction) { x.Insert(there) }},
		{"replace", patterns.ErrConflict, func(x *patterns.Transaction) { x.Replace(stale) }},
		{"merge", patterns.ErrConflict, func(x *patterns.Transaction) { x.Merge(stale) }},
		{"delete", patterns.ErrConflict, func(x *patterns.Transaction) { x.Delete(stale) }},
		{"delete of nothing", patterns.ErrNotFound, func(x *patterns.Transaction) {
			x.DeleteUnconditional(patterns.Key{Partition: "p", Row: "absent"})
		}},
	} {
		for n := 1; n <= 4; n++ {
			for place := range n {
				x := table.NewTransaction()
				for i := range n {
					if i == place {
						c.add(x)
					} else {
						x.Insert(entity("p", fmt.Sprint("new ", i)))
					}
				}
				_, err := x.Commit(ctx)
				e := wantKind(t, err, c.kind)
				if want := place + 1; n > 1 && e.Change != want || e.Key.Row == "" {
					t.Errorf("%s in place %d of %d: %v", c.what, place, n, e)
				}
			}
		}
	}
	if got := rows(t, table.Entities().Query().Partition("p")); len(got) != 1 {
		t.Errorf("rows %q are left", got)
	}
}
