package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// spending says what something may cost, in requests.
type spending struct {
	name string
	want int64
	do   func() error
}

func checkSpending(t *testing.T, requests interface{ Load() int64 }, all []spending) {
	t.Helper()
	for _, s := range all {
		before := requests.Load()
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := requests.Load() - before; got != s.want {
			t.Errorf("%s: %d requests, want %d", s.name, got, s.want)
		}
	}
}

// TestRequestCountsOfReads holds what docs/reference/costs.md says of queries, pages and parallel reads.
func TestRequestCountsOfReads(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	bags := table.Entities()
	if _, err := bags.BulkNonAtomic(ctx, bags3000, nil); err != nil {
		t.Fatal(err)
	}
	drain := func(q tables.Query[tables.Entity], want int) error {
		n := 0
		for _, err := range q.All(ctx) {
			if err != nil {
				return err
			}
			n++
		}
		if n != want {
			return fmt.Errorf("%d rows, want %d", n, want)
		}
		return nil
	}
	key := func(i int) tables.Key {
		return tables.Key{Partition: fmt.Sprintf("p%02d", i%2), Row: fmt.Sprintf("%06d", i)}
	}
	checkSpending(t, requests, []spending{
		{"a point query", 1, func() error { return drain(bags.Query().Partition("p00").Row("000000"), 1) }},
		{"a partition of 1,500 rows", 2, func() error { return drain(bags.Query().Partition("p00"), 1500) }},
		{"1,500 rows in pages of 100", 15, func() error { return drain(bags.Query().Partition("p00").PageSize(100), 1500) }},
		{"the first 10 of 1,500 rows", 1, func() error { return drain(bags.Query().Partition("p00").Top(10), 10) }},
		{"First", 1, func() error { _, err := bags.Query().Partition("p00").First(ctx); return err }},
		{"one page", 1, func() error { _, err := bags.Query().Partition("p00").Page(ctx, ""); return err }},
		{"Plan", 0, func() error { _, err := bags.Query().Partition("p00").Plan(); return err }},
		{"a contradiction", 0, func() error {
			return drain(bags.Query().Partition("p00").Where(tables.Eq("PartitionKey", "p01")), 0)
		}},
		{"a refused table scan", 0, func() error {
			if _, err := bags.Query().First(ctx); !errors.Is(err, tables.ErrTableScan) {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		}},
		{"3 of 4 keys that are there", 4, func() error {
			n := 0
			for _, err := range bags.GetMany(ctx, []tables.Key{key(1), key(2), key(9999), key(3)}, nil) {
				if err != nil {
					return err
				}
				n++
			}
			return wantRows(n, 3)
		}},
		{"two partitions of 1,500 rows side by side", 4, func() error {
			n := 0
			for _, err := range bags.Query().AllPartitions(ctx, []string{"p01", "p00"}, nil) {
				if err != nil {
					return err
				}
				n++
			}
			return wantRows(n, 3000)
		}},
	})
}

// bags3000 are 1,500 rows in each of two partitions.
func bags3000(yield func(*tables.Entity, error) bool) { harness.Bags(3000, 2)(yield) }

func wantRows(got, want int) error {
	if got != want {
		return fmt.Errorf("%d rows, want %d", got, want)
	}
	return nil
}

// TestRequestCountsOfTables holds what docs/reference/costs.md says of accounts, tables, transactions and bulk writes.
func TestRequestCountsOfTables(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := a.Table(storagetest.Open(t).TableName(t))
	bag := func(row string) *tables.Entity {
		return &tables.Entity{Key: tables.Key{Partition: "p", Row: row}}
	}
	employees := staffOf(table)
	x := table.NewTransaction()
	w := &Worker{Department: "p", ID: 1, Hired: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	checkSpending(t, requests, []spending{
		{"Create", 1, func() error { return table.Create(ctx) }},
		{"CreateIfMissing", 1, func() error { return table.CreateIfMissing(ctx) }},
		{"StageInsert", 0, func() error {
			x.Insert(bag("a"))
			employees.StageInsert(x, w)
			return nil
		}},
		{"Commit", 1, func() error { _, err := x.Commit(ctx); return err }},
		{"Merge without patterns", 1, func() error { w.Age = 41; return employees.Merge(ctx, w, "Age") }},
		{"a refused row", 0, func() error {
			if err := table.Entities().Insert(ctx, bag("a/b")); !errors.Is(err, tables.ErrInvalid) {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		}},
		{"DeleteUnconditional of a row", 1, func() error { return table.Entities().DeleteUnconditional(ctx, bag("a").Key) }},
		{"DeleteUnconditional of an entity", 2, func() error {
			return employees.DeleteUnconditional(ctx, tables.Key{Partition: "p", Row: "000001"})
		}},
		{"3,000 rows of two partitions in bulk", 30, func() error {
			_, err := table.Entities().BulkNonAtomic(ctx, bags3000, nil)
			return err
		}},
		{"Drop", 1, func() error { return table.Drop(ctx) }},
	})
}

// loseFirst loses the answer to the first write that it sees.
type loseFirst struct{ lost bool }

func (l *loseFirst) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || l.lost || req.Raw().Method == http.MethodGet {
		return resp, err
	}
	l.lost = true
	resp.Body.Close()
	return nil, errors.New("the connection was reset")
}

// TestRequestCountsAfterLostAnswers holds what docs/reference/costs.md says of ambiguous writes: the SDK's repetition, and one read
// for each row written.
func TestRequestCountsAfterLostAnswers(t *testing.T) {
	ctx := context.Background()
	plain := harness.NewTable(t, harness.Account(t))
	for _, rows := range []int{1, 4} {
		var requests storagetest.RequestCounter
		a := harness.AccountWith(t, func(o *azcore.ClientOptions) {
			harness.Watching(&loseFirst{}, &requests)(o)
			o.Retry = policy.RetryOptions{RetryDelay: time.Millisecond}
		})
		x := a.Table(plain.Name()).NewTransaction()
		for i := range rows {
			x.Insert(&tables.Entity{Key: tables.Key{Partition: fmt.Sprint(rows), Row: fmt.Sprint(i)}})
		}
		etags, err := x.Commit(ctx)
		if err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		if got := requests.Count(); got != 2+rows {
			t.Errorf("%d rows: %d requests, want %d", rows, got, 2+rows)
		}
		for i, etag := range etags {
			if etag == "" {
				t.Errorf("row %d has no ETag", i)
			}
		}
	}
}
