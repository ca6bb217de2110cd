package tables_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// delayed waits before each request.
type delayed struct {
	wait time.Duration
	made int
}

func (d *delayed) transport(inner policy.Transporter) policy.Transporter {
	turn := make(chan struct{}, 1)
	return transporter(func(req *http.Request) (*http.Response, error) {
		turn <- struct{}{}
		d.made++
		<-turn
		time.Sleep(d.wait)
		return inner.Do(req)
	})
}

type transporter func(*http.Request) (*http.Response, error)

func (do transporter) Do(req *http.Request) (*http.Response, error) { return do(req) }

// on opens the account of a service.
func on(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

// spreadRows yields n rows; skewed has 90 % of them in one partition.
func spreadRows(n int, skewed bool) iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			key := tables.Key{Partition: fmt.Sprintf("p%03d", i*100/n), Row: fmt.Sprintf("%08d", i)}
			if skewed && i%10 != 0 {
				key.Partition = "p050"
			}
			if !yield(&tables.Entity{Key: key}, nil) {
				return
			}
		}
	}
}

// TestAllParallelChains: with eight readers the longest chain of dependent requests is at most a sixth of one reader's, in an even
// table and in one with 90 % of its rows in one partition; in order, it is shorter than that.
func TestAllParallelChains(t *testing.T) {
	orders := 1
	if harness.Thorough() {
		orders = 2
	}
	const n, size = 20_000, 20 // as many pages as 1 M rows have in pages of 1,000
	for _, skewed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			table := on(t, s).Table("Events")
			assert.Check(t, table.Create(t.Context()))
			assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(t.Context(), spreadRows(n, skewed), nil)))
			d := &delayed{wait: time.Second}
			q := on(t, s.WithTransport(d.transport)).Table("Events").Entities().Query().AllowTableScan().PageSize(size)
			for _, unordered := range []bool{true, false}[:orders] {
				chain := func(concurrency int) time.Duration {
					began := time.Now()
					d.made = 0
					keys, err := keysOf(q.AllParallel(t.Context(), &tables.ParallelOptions[tables.Entity]{Concurrency: concurrency, Unordered: unordered}))
					if err != nil || !unordered && !slices.IsSorted(keys) {
						t.Fatal(err)
					}
					if slices.Sort(keys); len(slices.Compact(keys)) != n {
						t.Errorf("skewed %v, unordered %v: %d rows", skewed, unordered, len(keys))
					}
					return time.Since(began)
				}
				one, requests := chain(1), d.made
				eight := chain(8)
				t.Logf("skewed %v, unordered %v: %d requests and %d, 1/%.1f of the chain", skewed, unordered, requests, d.made, float64(one)/float64(eight))
				least := time.Duration(1)
				if unordered {
					least = 6
				}
				if eight*least > one || requests != n/size || d.made > requests*3/2 {
					t.Errorf("skewed %v, unordered %v: %v with %d requests beside %v with %d", skewed, unordered, eight, d.made, one, requests)
				}
			}
		})
	}
}

// TestAllParallelResumes: cut off after any page, a read goes on from its last token and misses nothing.
func TestAllParallelResumes(t *testing.T) {
	noLeaks(t)
	table := harness.NewTable(t, harness.Account(t))
	assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(t.Context(), spreadRows(600, true), nil)))
	rows := table.Entities()
	want := assert.Must[[]string](t)(keysOf(rows.Query().AllowTableScan().All(t.Context())))
	cases := map[string]func(*tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error]{
		"the table": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().AllowTableScan().PageSize(20).AllParallel(t.Context(), o)
		},
		"a partition": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().Partition("p050").PageSize(20).AllParallel(t.Context(), o)
		},
		"partitions": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().PageSize(20).AllPartitions(t.Context(), []string{"p050", "p000", "p099"}, o)
		},
	}
	for name, all := range cases {
		for _, unordered := range []bool{false, true} {
			o := tables.ParallelOptions[tables.Entity]{Concurrency: 3, Unordered: unordered}
			var got []string
			for runs, ended := 0, false; !ended; runs++ {
				pages, token, page := 0, "", []string(nil)
				ctxDone := errors.New("enough")
				o.Progress = func(r tables.Progress) { got, page, token, pages = append(got, page...), nil, r.Resume, pages+1 }
				var err error
				for e, failed := range all(&o) {
					if err = failed; err != nil {
						break
					}
					if pages == 3 {
						err = ctxDone
						break
					}
					page = append(page, e.Key.Partition+"/"+e.Key.Row)
				}
				if o.Resume, ended = token, err == nil; err != nil && !errors.Is(err, ctxDone) || runs > 200 {
					t.Fatal(name, err)
				}
			}
			least := len(want)
			if name != "the table" {
				least = 540
			}
			n := len(got)
			if slices.Sort(got); len(slices.Compact(got)) != n || n < least {
				t.Errorf("%s, unordered %v: %d rows of %d", name, unordered, n, least)
			}
		}
	}
	for name, o := range map[string]tables.ParallelOptions[tables.Entity]{"no token": {Resume: "x"}, "order": {Order: byRow}} {
		_, err := keysOf(rows.Query().AllowTableScan().AllParallel(t.Context(), &o))
		assert.ErrorIs(t, err, map[bool]error{true: tables.ErrWiring, false: tables.ErrInvalid}[o.Order != nil], name)
	}
	_, err := keysOf(rows.Query().AllParallel(t.Context(), nil))
	harness.WantKind(t, err, tables.ErrTableScan)
	for _, q := range []tables.Query[tables.Entity]{rows.Query().AllowTableScan().Top(7), rows.Query().Partition("p050").Top(7), rows.Query().Partition("p050").Row("00000301")} {
		got, err := keysOf(q.AllParallel(t.Context(), nil))
		one := assert.Must[[]string](t)(keysOf(q.All(context.Background())))
		if err != nil || !slices.Equal(got, one) {
			t.Errorf("%q, %v, want %q", got, err, one)
		}
	}
}

// TestParallelPositionsStayInside: a token of an earlier read that somebody has edited leads to no row outside of the query's partitions.
func TestParallelPositionsStayInside(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	rows := table.Entities()
	for _, partition := range []string{"mine", "mine2", "other"} {
		for i := range 6 {
			assert.Check(t, rows.Insert(t.Context(), &tables.Entity{Key: tables.Key{Partition: partition, Row: fmt.Sprint(i)}}))
		}
	}
	for name, all := range map[string]func(*tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error]{
		"a partition": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().Partition("mine").PageSize(2).AllParallel(t.Context(), o)
		},
		"with Top": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().Partition("mine").Top(5).PageSize(2).AllParallel(t.Context(), o)
		},
		"partitions": func(o *tables.ParallelOptions[tables.Entity]) iter.Seq2[*tables.Entity, error] {
			return rows.Query().PageSize(2).AllPartitions(t.Context(), []string{"mine", "mine2"}, o)
		},
	} {
		token := ""
		for _, err := range all(&tables.ParallelOptions[tables.Entity]{Concurrency: 1, Progress: func(r tables.Progress) {
			if token == "" {
				token = r.Resume
			}
		}}) {
			if err != nil {
				t.Fatal(name, err)
			}
		}
		for _, to := range []string{"other", "*", "min", "mine1"} {
			got, err := keysOf(all(&tables.ParallelOptions[tables.Entity]{Resume: harness.MovedPosition(t, token, to)}))
			if harness.WantKind(t, err, tables.ErrInvalid); len(got) > 0 {
				t.Errorf("%s, moved to %q: %q", name, to, got)
			}
		}
	}
}
