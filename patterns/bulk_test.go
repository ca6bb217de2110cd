package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// bags makes n rows over p partitions, in turns.
func bags(n, p int) iter.Seq2[*patterns.Entity, error] {
	return func(yield func(*patterns.Entity, error) bool) {
		for i := range n {
			e := &patterns.Entity{Key: patterns.Key{Partition: fmt.Sprintf("p%02d", i%p), Row: fmt.Sprintf("%06d", i)}}
			e.Set("N", patterns.Int32(int32(i)))
			if !yield(e, nil) {
				return
			}
		}
	}
}

func count(t *testing.T, table *patterns.Table) (n int) {
	t.Helper()
	for _, err := range table.Entities().Query().AllowTableScan().All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestBulkPacksTransactions(t *testing.T) {
	table := newTable(t, account(t))
	var last patterns.BulkProgress
	done, err := table.Entities().BulkNonAtomic(context.Background(), bags(2050, 7), &patterns.BulkOptions{
		Progress: func(p patterns.BulkProgress) {
			if p.Entities < last.Entities || p.Resume < last.Resume {
				t.Errorf("progress goes back from %+v to %+v", last, p)
			}
			last = p
		}})
	if err != nil {
		t.Fatal(err)
	}
	// 7 partitions of 293 or 292 rows: 3 transactions each.
	if done.Entities != 2050 || done.Rows != 2050 || done.Transactions != 21 || done.Resume != 2050 {
		t.Fatalf("%+v", done)
	}
	if last.Entities != 2050 || count(t, table) != 2050 {
		t.Fatalf("reported %+v, stored %d", last, count(t, table))
	}
}

func TestBulkResumesWhereItStopped(t *testing.T) {
	table := newTable(t, account(t))
	ctx, cancel := context.WithCancel(context.Background())
	stopped, err := table.Entities().BulkNonAtomic(ctx, bags(1500, 5), &patterns.BulkOptions{Concurrency: 2,
		Progress: func(p patterns.BulkProgress) {
			if p.Transactions == 4 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if stopped.Resume >= 1500 || stopped.Entities < 300 {
		t.Fatalf("%+v", stopped)
	}
	done, err := table.Entities().BulkNonAtomic(context.Background(), bags(1500, 5), &patterns.BulkOptions{Skip: stopped.Resume, SkipExisting: true})
	if err != nil {
		t.Fatal(err)
	}
	if done.Resume != 1500 || done.Entities+done.Existing+stopped.Resume != 1500 || count(t, table) != 1500 {
		t.Fatalf("%+v after %+v, stored %d", done, stopped, count(t, table))
	}
}

func TestBulkRepeatedRowsKeepTheirOrder(t *testing.T) {
	table := newTable(t, account(t))
	rows := func(yield func(*patterns.Entity, error) bool) {
		for i := range 500 {
			e := &patterns.Entity{Key: patterns.Key{Partition: "p", Row: fmt.Sprint(i % 30)}}
			e.Set("N", patterns.Int32(int32(i)))
			if !yield(e, nil) {
				return
			}
		}
	}
	if _, err := table.Entities().BulkNonAtomic(context.Background(), rows, &patterns.BulkOptions{Verb: patterns.BulkUpsert}); err != nil {
		t.Fatal(err)
	}
	for e, err := range table.Entities().Query().Partition("p").All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := e.Get("N").Int(); n < 470 {
			t.Fatalf("row %s holds %d, an earlier write", e.Key.Row, n)
		}
	}
}

func TestBulkFailsWithTheEntity(t *testing.T) {
	table := newTable(t, account(t))
	bad := errors.New("the source broke")
	_, err := table.Entities().BulkNonAtomic(context.Background(), func(yield func(*patterns.Entity, error) bool) {
		yield(nil, bad)
	}, nil)
	if !errors.Is(err, bad) {
		t.Fatalf("error is %v", err)
	}
	if _, err := table.Entities().BulkNonAtomic(context.Background(), bags(10, 1), nil); err != nil {
		t.Fatal(err)
	}
	_, err = table.Entities().BulkNonAtomic(context.Background(), bags(10, 1), nil)
	e := wantKind(t, err, patterns.ErrExists)
	if e.Key.Row != "000000" {
		t.Fatalf("%+v", e)
	}
	_, err = table.Entities().BulkNonAtomic(context.Background(), func(yield func(*patterns.Entity, error) bool) {
		yield(&patterns.Entity{Key: patterns.Key{Partition: "a/b"}}, nil)
	}, nil)
	wantKind(t, err, patterns.ErrInvalid)
}
