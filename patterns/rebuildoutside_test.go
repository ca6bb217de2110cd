package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scattered is a key in an order that has nothing to do with that of the entities.
func scattered(p *person) string {
	h := fnv.New64a()
	fmt.Fprint(h, p.ID)
	return fmt.Sprintf("%016x", h.Sum64())
}

// lateIndex is a table of persons whose index over partitions is attached later. Its requests are counted.
type lateIndex struct {
	bare, repo *patterns.Repository[person]
	index      *interpartition.Unique[person, string]
	copies     *tables.Table
	requests   *storagetest.RequestCounter
}

// newLateIndex has n persons in so many partitions, and an index with so many groups.
func newLateIndex(t *testing.T, n, partitions, groups int) *lateIndex {
	t.Helper()
	w := openLateIndex(t, storagetest.Simulator(t, nil), n, partitions, groups, false)
	w.fill(t, n)
	return w
}

// openLateIndex opens the table and the index of newLateIndex.
func openLateIndex(t *testing.T, s *storagetest.Service, n, partitions, groups int, otherBuilds bool) *lateIndex {
	t.Helper()
	w := &lateIndex{requests: &storagetest.RequestCounter{}}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, w.requests)
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, &counted)}))
	schema := patterns.Schema[person]{Prefix: "person", OtherBuilds: otherBuilds, Key: func(p *person) tables.Key {
		return tables.Key{Partition: fmt.Sprintf("p%06d", p.ID*partitions/n), Row: fmt.Sprintf("person_%06d", p.ID)}
	}}
	w.copies = store.Table("Copies")
	w.index = interpartition.NewUnique("key", func(p *person) string { return scattered(p) },
		&interpartition.Options[person]{Table: w.copies, Group: func(p *person) string { return fmt.Sprint("g", p.ID%groups) }})
	w.bare = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Account().Table("People"), schema))
	w.repo = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("People"), schema, w.index))
	assert.Check(t, store.Create(t.Context()))
	return w
}

// fill inserts n persons without copies.
func (w *lateIndex) fill(t *testing.T, n int) {
	t.Helper()
	_, err := w.bare.BulkNonAtomic(t.Context(), func(yield func(*person, error) bool) {
		for id := range n {
			p := ann()
			p.ID, p.Photo = id, nil
			if !yield(p, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
}

// rebuild returns the report of a Rebuild, and its requests for each 1,000 entities.
func (w *lateIndex) rebuild(t *testing.T, options *patterns.JobOptions) (patterns.RebuildReport, float64) {
	t.Helper()
	w.requests.Reset()
	report, err := w.repo.Rebuild(t.Context(), options)
	if err != nil || report.Failed > 0 || report.Resume != "" || report.Read != report.Written+report.Unchanged {
		t.Fatalf("%+v, %v", report, err)
	}
	return report, float64(w.requests.Count()) * 1000 / float64(report.Read)
}

// TestRequestCountsOfRebuildOutside: an index over partitions is filled, and compared, with requests in proportion to the number of entities, although its keys
// have another order. It holds what docs/reference/costs.md says.
func TestRequestCountsOfRebuildOutside(t *testing.T) {
	sizes := []int{1000, 16_000}
	switch {
	case harness.Shortened():
		sizes = sizes[:1]
	case harness.Thorough():
		sizes = append(sizes, 64_000)
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newLateIndex(t, n, 1, 1)
			for _, c := range []struct {
				what    string
				written int
				most    float64
				harm    func(i int) bool // which rows are removed before
			}{
				{"a new index", n, 25, func(int) bool { return false }},
				{"a complete index", 0, 5, func(int) bool { return false }},
				{"one copy in 500", n / 500, 20, func(i int) bool { return i%500 == 0 }},
				{"one copy in 4", n / 4, 50, func(i int) bool { return i%4 == 0 }},
				{"a complete index again", 0, 5, func(int) bool { return false }},
			} {
				i := 0
				for row, err := range w.copies.Entities().Query().AllowTableScan().Select("RowKey").All(t.Context()) {
					assert.Check(t, err)
					if c.harm(i) {
						assert.Check(t, w.copies.Entities().DeleteUnconditional(t.Context(), row.Key))
					}
					i++
				}
				report, requests := w.rebuild(t, &patterns.JobOptions{Concurrency: 2})
				t.Logf("%s of %d: %.1f requests for 1,000 entities; %v", c.what, n, requests, report)
				if report.Written != int64(c.written) || requests > c.most {
					t.Errorf("%s: %.1f requests for 1,000 entities, want at most %.0f; %v", c.what, requests, c.most, report)
				}
			}
			assert.Check(t, harness.Clean(t.Context(), w.repo.Verify, nil))
			if marked, err := w.marked(t.Context()); marked != 0 || err != nil {
				t.Errorf("%d copies are marked, %v", marked, err)
			}
		})
	}
}

// marked counts the marked copies.
func (w *lateIndex) marked(ctx context.Context) (n int, err error) {
	rows, err := readStored(ctx, w.copies, "")
	for _, row := range rows {
		if row["_tpMark"] != "" {
			n++
		}
	}
	return n, err
}

// TestRebuildOfManyPartitions: for each page of entities, the rows of one partition of the index take a transaction to be marked for each 100, and
// another one to be settled. The number of partitions of the entities does not matter.
func TestRebuildOfManyPartitions(t *testing.T) {
	const n, constant = 2000, 12 // pages of entities: read, read again, and the scans of the comparison
	for _, c := range []struct{ partitions, groups int }{{1, 10}, {1, 1000}, {500, 10}, {2000, 1}} {
		t.Run(fmt.Sprintf("%d-%d", c.partitions, c.groups), func(t *testing.T) {
			w := newLateIndex(t, n, c.partitions, c.groups)
			const pages = n / 1000
			transactions := pages * c.groups * ((1000/c.groups + 99) / 100)
			options := &patterns.JobOptions{Concurrency: 1}
			report, _ := w.rebuild(t, options)
			got := w.requests.Count()
			if t.Logf("%d requests, %d transactions", got, transactions); report.Written != n || got < 2*transactions || got > 2*transactions+constant {
				t.Errorf("%d requests, want 2*%d + %d; %v", got, transactions, constant, report)
			}
			if report, _ = w.rebuild(t, options); report.Written != 0 || w.requests.Count() > constant || w.requests.Kinds()[storagetest.QueryEntities] != w.requests.Count() {
				t.Errorf("again: %v, %v", report, w.requests.Kinds())
			}
		})
	}
}

// TestRebuildOfLists: rows without properties, one for each value and entity, take as many requests as an index.
func TestRebuildOfLists(t *testing.T) {
	const n, want = 1000, 24
	requests := &storagetest.RequestCounter{}
	s := *storagetest.Simulator(t, nil)
	s.ClientOptions.PerRetryPolicies = append(s.ClientOptions.PerRetryPolicies, requests)
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, &s)}))
	bare := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Account().Table("People"), personSchema()))
	lists := indexentities.NewInTable("city", func(p *person) compoundkey.Part { return compoundkey.Int(int64(p.ID%20), 2) }, nil, nil)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("People"), personSchema(), lists))
	assert.Check(t, store.Create(t.Context()))
	for id := range n {
		p := ann()
		p.ID, p.Photo = id, nil
		assert.Check(t, bare.Insert(t.Context(), p))
	}
	for _, written := range []int64{n, 0} {
		requests.Reset()
		report, err := repo.Rebuild(t.Context(), nil)
		if err != nil || report.Written != written || report.Unchanged != n-written || requests.Count() > want {
			t.Errorf("%d requests, want at most %d; %v, %v", requests.Count(), want, report, err)
		}
	}
}

// TestRebuildResumesCopies: from each token of a Rebuild of an index over partitions another one does the rest, whether the index is new or most of it is
// there, and the counts of both are those of one run.
func TestRebuildResumesCopies(t *testing.T) {
	const n = 400
	step := 5
	if harness.Thorough() {
		step = 1
	}
	for what, missing := range map[string]int{"a new index": 1, "one copy in 3": 3} {
		t.Run(what, func(t *testing.T) {
			for stop := 1; ; stop += step {
				w := newLateIndex(t, n, 4, 1)
				if missing > 1 {
					w.rebuild(t, nil)
					for i := 0; i < n; i += missing {
						assert.Check(t, w.copies.Entities().DeleteUnconditional(t.Context(), tables.Key{Partition: "key_g0", Row: scattered(&person{ID: i})}))
					}
				}
				options := &patterns.JobOptions{Concurrency: 1}
				options.SmallPages(50)
				options.SmallRuns(50, 60)
				ctx, cancel := context.WithCancel(t.Context())
				told, token := 0, ""
				options.Progress = func(r tables.Progress) {
					if told++; told == stop && r.Resume != "" {
						token = r.Resume
						cancel()
					}
				}
				report, err := w.repo.Rebuild(ctx, options)
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if token != "" {
					options.Resume, options.Progress = token, nil
					report, err = w.repo.Rebuild(t.Context(), options)
				}
				if err != nil || report.Read != n || report.Written > int64((n+missing-1)/missing) || report.Written+report.Unchanged != n || report.Resume != "" {
					t.Errorf("stopped at %d: %v, %v", stop, report, err)
				}
				assert.Check(t, harness.Clean(t.Context(), w.repo.Verify, nil))
				if token == "" {
					break
				}
			}
		})
	}
}

// TestRebuildWithOtherBuilds: while builds without the index may write, all rows of the index stay marked, and readers follow them. Once that is over, a Rebuild
// settles what no such build can have under way.
func TestRebuildWithOtherBuilds(t *testing.T) {
	const n = 200
	s := storagetest.Simulator(t, nil)
	w, next := openLateIndex(t, s, n, 1, 1, true), openLateIndex(t, s, n, 1, 1, false)
	w.fill(t, n)
	for _, c := range []struct {
		what            string
		of              *lateIndex
		after           time.Duration
		written, marked int
	}{
		{"a new index", w, 0, n, n},
		{"again", w, 0, 0, n},
		{"with old marks", w, time.Minute, 0, n},
		{"without other builds", next, 0, n, 0},
		{"again without other builds", next, 0, 0, 0},
	} {
		s.Wait(c.after)
		report, _ := c.of.rebuild(t, nil)
		marked := assert.Must[int](t)(w.marked(t.Context()))
		if report.Written != int64(c.written) || marked != c.marked {
			t.Errorf("%s: %d are marked, want %d; %d written, want %d", c.what, marked, c.marked, report.Written, c.written)
		}
		if p := assert.Must[*person](t)(c.of.index.In("g0").Get(t.Context(), scattered(&person{ID: 7}))); p.ID != 7 {
			t.Errorf("%s: %+v", c.what, p)
		}
		assert.Check(t, harness.Clean(t.Context(), c.of.repo.Verify, nil))
	}
}
