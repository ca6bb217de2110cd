package patterns_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// damagedTable is a table of persons of one partition with an index, and what is done to its copies.
type damagedTable struct {
	repo     *patterns.Repository[person]
	bare     *patterns.Repository[person]
	store    *patterns.Store
	requests func() int64
	before   func(n int64, request *http.Request) // is called before each request
}

func newDamagedTable(t *testing.T, n int, pattern func(*patterns.Store) patterns.Pattern[person], more ...patterns.Pattern[person]) *damagedTable {
	t.Helper()
	w := &damagedTable{before: func(int64, *http.Request) {}}
	requests := new(atomic.Int64)
	a := harness.AccountWith(t, harness.Watching(harness.PerAttempt(func(r *http.Request) { w.before(requests.Add(1), r) })))
	name := storagetest.Open(t).TableName(t)
	store := assert.Must[*patterns.Store](t)(patterns.Open("jobs"+strings.ToLower(name[max(0, len(name)-20):]), &patterns.StoreOptions{Account: a}))
	table := store.Table(name)
	w.store, w.requests = store, requests.Load
	w.bare = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	w.repo = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), append(more, pattern(store))...))
	assert.Check(t, store.Create(t.Context()))
	_, err := w.repo.BulkNonAtomic(t.Context(), func(yield func(*person, error) bool) {
		for id := range n {
			p := ann()
			p.ID, p.Email, p.Photo = id, fmt.Sprintf("p%06d@contoso.com", id), nil
			if !yield(p, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err, harness.Settle(t.Context(), store))
	return w
}

// rows calls a function for the keys of the rows whose row keys have a prefix, by partition.
func (w *damagedTable) rows(t *testing.T, partition, prefix string, do func(keys []tables.Key)) {
	t.Helper()
	var keys []tables.Key
	for row, err := range w.repo.Table().Entities().Query().Partition(partition).Select("RowKey").All(t.Context()) {
		assert.Check(t, err)
		if strings.HasPrefix(row.Key.Row, prefix) {
			keys = append(keys, row.Key)
		}
	}
	for some := range slices.Chunk(keys, 100) {
		do(some)
	}
}

// remove deletes rows behind the library's back.
func (w *damagedTable) remove(t *testing.T, keys []tables.Key) {
	t.Helper()
	for _, key := range keys {
		deleteRaw(t, w.repo.Table(), key)
	}
}

func emailPart(p *person) compoundkey.Part { return compoundkey.String(p.Email) }

// TestRequestCountsOfRepair: what Repair sends for 100 findings of one partition beside the requests of Verify. It holds what
// docs/reference/costs.md says.
func TestRequestCountsOfRepair(t *testing.T) {
	const n = 100
	near := func(*patterns.Store) patterns.Pattern[person] { return emailIndex() }
	outside := func(*patterns.Store) patterns.Pattern[person] {
		return interpartition.NewUnique("email", emailPart, nil)
	}
	for _, c := range []struct {
		name    string
		want    int64
		pattern func(*patterns.Store) patterns.Pattern[person]
		harm    func(t *testing.T, w *damagedTable)
	}{
		{"missing", 8, near, func(t *testing.T, w *damagedTable) {
			w.rows(t, "red", "email_", func(keys []tables.Key) { w.remove(t, keys) })
		}},
		{"spurious", 1, near, func(t *testing.T, w *damagedTable) {
			w.rows(t, "red", "person_", func(keys []tables.Key) { w.remove(t, keys) })
		}},
		{"outside", 5, outside, func(t *testing.T, w *damagedTable) {
			w.rows(t, "email", "", func(keys []tables.Key) { w.remove(t, keys) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newDamagedTable(t, n, c.pattern)
			c.harm(t, w)
			counted := func(job anyJob) (requests int64, found []patterns.Finding) {
				before := w.requests()
				found, err := harness.Findings(hasty(t.Context()), job, &patterns.JobOptions{Lag: time.Millisecond})
				assert.Check(t, err)
				return w.requests() - before, found
			}
			verified, found := counted(harness.Tallied(w.repo.Verify))
			if len(found) != n {
				t.Fatalf("%d findings", len(found))
			}
			repaired, found := counted(harness.Tallied(w.repo.Repair))
			for _, f := range found {
				if !f.Repaired || f.NotRepaired != nil {
					t.Fatalf("not repaired: %v", f)
				}
			}
			if got := repaired - verified; got != c.want || len(found) != n {
				t.Errorf("%d requests for %d findings, want %d", got, len(found), c.want)
			}
			assert.Check(t, harness.Clean(t.Context(), w.repo.Verify, &patterns.JobOptions{Lag: time.Millisecond}))
		})
	}
}

// TestRepairTogether: a finding that cannot be repaired with the others of its partition is repaired alone, or says why not.
func TestRepairTogether(t *testing.T) {
	w := newDamagedTable(t, 12, func(*patterns.Store) patterns.Pattern[person] { return emailIndex() })
	ctx := t.Context()
	taken := func(id int) tables.Key {
		return tables.Key{Partition: "red", Row: fmt.Sprintf("email_p%06d@contoso.com", id)}
	}
	w.rows(t, "red", "email_", func(keys []tables.Key) { w.remove(t, keys) })
	// The key of the third is another row's, which Repair leaves as it is, and the fourth has changed since it was found.
	assert.Check(t, w.bare.Table().Entities().Insert(ctx, &tables.Entity{Key: taken(3)}))
	var once bool
	found, err := harness.Findings(ctx, w.repo.Repair, &patterns.JobOptions{Concurrency: 1, Progress: func(tables.Progress) {
		if once {
			return
		}
		once = true
		_, err := w.bare.Update(ctx, tables.Key{Partition: "red", Row: "person_0004"}, func(p *person) error { p.Name = "changed"; return nil })
		assert.Check(t, err)
	}})
	assert.Check(t, err)
	for _, f := range found {
		if is := f.Entity.Row == "person_0003"; f.Repaired == is || errors.Is(f.NotRepaired, tables.ErrDuplicate) != is {
			t.Errorf("%v", f)
		}
	}
	if len(found) != 12 {
		t.Errorf("%d findings", len(found))
	}
	assert.Check(t, w.bare.Table().Entities().DeleteUnconditional(ctx, taken(3)))
	assert.Must[patterns.RepairReport](t)(w.repo.Repair(ctx, nil))
	assert.Check(t, harness.Clean(ctx, w.repo.Verify, nil))
	if p := assert.Must[*person](t)(w.repo.Get(ctx, tables.Key{Partition: "red", Row: "person_0004"})); p.Name != "changed" {
		t.Errorf("%+v", p)
	}
}

// TestRepairHalfHealed: a concurrent writer repairs the first half of a set before any of Repair's requests, and changes an entity of the
// other half before the set is written, so that the set is refused. The rest is repaired.
func TestRepairHalfHealed(t *testing.T) {
	const requests = 12
	healedFirst := 0
	for at := range int64(requests) {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			if len(repairHalfHealed(t, at+1)) < 4 {
				healedFirst++
			}
		})
	}
	if healedFirst == 0 || healedFirst == requests {
		t.Errorf("in %d of %d runs the copies were healed before they were found", healedFirst, requests)
	}
}

func repairHalfHealed(t *testing.T, at int64) []patterns.Finding {
	ctx := t.Context()
	w := newDamagedTable(t, 4, func(*patterns.Store) patterns.Pattern[person] { return emailIndex() })
	w.rows(t, "red", "email_", func(keys []tables.Key) { w.remove(t, keys) })
	update := func(of *patterns.Repository[person], id int) {
		_, err := of.Update(ctx, tables.Key{Partition: "red", Row: fmt.Sprintf("person_%04d", id)}, func(p *person) error { p.Name = "changed"; return nil })
		assert.Check(t, err)
	}
	begin, healing, refused := w.requests(), false, false
	w.before = func(n int64, request *http.Request) {
		switch {
		case healing:
		case n == begin+at:
			healing = true
			update(w.repo, 0)
			update(w.repo, 1)
			healing = false
		case n > begin+at && !refused && strings.HasSuffix(request.URL.Path, "$batch"):
			refused, healing = true, true
			update(w.bare, 2)
			healing = false
		}
	}
	found, err := harness.Findings(ctx, w.repo.Repair, &patterns.JobOptions{Concurrency: 1})
	assert.Check(t, err)
	for _, f := range found {
		if !f.Repaired {
			t.Errorf("%v", f)
		}
	}
	assert.Check(t, harness.Clean(ctx, w.repo.Verify, nil))
	return found
}
