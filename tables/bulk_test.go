package tables_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// position returns the number of entities that a report's Resume stands for.
func position(t testing.TB, r tables.BulkReport) int64 {
	t.Helper()
	if r.Resume == "" {
		return 0
	}
	n, err := strconv.ParseInt(r.Resume, 10, 64)
	assert.NoError(t, err, "Resume is %q", r.Resume)
	return n
}

// TestBulkRefusesOtherTokens: Resume is what a report said, and nothing else.
func TestBulkRefusesOtherTokens(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	for _, token := range []string{"?", "-1", "1.5", "99999999999999999999"} {
		_, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(3, 1), &tables.BulkOptions{Resume: token})
		harness.WantKind(t, err, tables.ErrInvalid)
	}
	assert.Equal(t, harness.CountRows(t, table), 0, "rows stored")
}

func TestBulkPacksTransactions(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	var last tables.BulkReport
	done, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(2050, 7), &tables.BulkOptions{
		Progress: func(p tables.BulkReport) {
			if p.Written < last.Written || position(t, p) < position(t, last) {
				t.Errorf("progress goes back from %+v to %+v", last, p)
			}
			last = p
		}})
	assert.Check(t, err)
	// 7 partitions of 293 or 292 rows: 3 transactions each.
	if done.Written != 2050 || done.Rows != 2050 || done.Transactions != 21 || position(t, last) != 2050 || done.Resume != "" {
		t.Fatalf("%+v", done)
	}
	if last.Written != 2050 || harness.CountRows(t, table) != 2050 {
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
	assert.ErrorIs(assert.Fatal(t), err, context.Canceled)
	if position(t, stopped) >= 1500 || stopped.Written < 300 {
		t.Fatalf("%+v", stopped)
	}
	done, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(1500, 5), &tables.BulkOptions{Resume: stopped.Resume, SkipExisting: true})
	assert.Check(t, err)
	if done.Resume != "" || done.Written+done.Unchanged+position(t, stopped) != 1500 || harness.CountRows(t, table) != 1500 {
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
	assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(context.Background(), rows, &tables.BulkOptions{Verb: tables.BulkUpsert})))
	for e, err := range table.Entities().Query().Partition("p").All(context.Background()) {
		assert.Check(t, err)
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
	assert.ErrorIs(assert.Fatal(t), err, bad)
	assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(context.Background(), harness.Bags(10, 1), nil)))
	_, err = table.Entities().BulkNonAtomic(context.Background(), harness.Bags(10, 1), nil)
	e := harness.WantKind(t, err, tables.ErrExists)
	assert.Equal(assert.Fatal(t), e.Key.Row, "000000", "%+v", e)
	_, err = table.Entities().BulkNonAtomic(context.Background(), func(yield func(*tables.Entity, error) bool) {
		yield(&tables.Entity{Key: tables.Key{Partition: "a/b"}}, nil)
	}, nil)
	harness.WantKind(t, err, tables.ErrInvalid)
}
