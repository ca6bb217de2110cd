package tables_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestBulkPacksTransactions(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	var last tables.BulkReport
	done, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(2050, 7), &tables.BulkOptions{
		Progress: func(p tables.BulkReport) {
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
	if last.Entities != 2050 || harness.CountRows(t, table) != 2050 {
		t.Fatalf("reported %+v, stored %d", last, harness.CountRows(t, table))
	}
}

func TestBulkResumesWhereItStopped(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	ctx, cancel := context.WithCancel(context.Background())
	stopped, err := table.Entities().BulkNonAtomic(ctx, harness.Bags(1500, 5), &tables.BulkOptions{Concurrency: 2,
		Progress: func(p tables.BulkReport) {
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
	done, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(1500, 5), &tables.BulkOptions{Resume: stopped.Resume, SkipExisting: true})
	if err != nil {
		t.Fatal(err)
	}
	if done.Resume != 1500 || done.Entities+done.Existing+stopped.Resume != 1500 || harness.CountRows(t, table) != 1500 {
		t.Fatalf("%+v after %+v, stored %d", done, stopped, harness.CountRows(t, table))
	}
}

func TestBulkRepeatedRowsKeepTheirOrder(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	rows := func(yield func(*tables.Entity, error) bool) {
		for i := range 500 {
			e := &tables.Entity{Key: tables.Key{Partition: "p", Row: fmt.Sprint(i % 30)}}
			e.Set("N", tables.Int32(int32(i)))
			if !yield(e, nil) {
				return
			}
		}
	}
	if _, err := table.Entities().BulkNonAtomic(context.Background(), rows, &tables.BulkOptions{Verb: tables.BulkUpsert}); err != nil {
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
	table := harness.NewTable(t, harness.Account(t))
	bad := errors.New("the source broke")
	_, err := table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		yield(nil, bad)
	}, nil)
	if !errors.Is(err, bad) {
		t.Fatalf("error is %v", err)
	}
	if _, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(10, 1), nil); err != nil {
		t.Fatal(err)
	}
	_, err = table.Entities().BulkNonAtomic(context.Background(), harness.Bags(10, 1), nil)
	e := harness.WantKind(t, err, tables.ErrExists)
	if e.Key.Row != "000000" {
		t.Fatalf("%+v", e)
	}
	_, err = table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		yield(&tables.Entity{Key: tables.Key{Partition: "a/b"}}, nil)
	}, nil)
	harness.WantKind(t, err, tables.ErrInvalid)
}
