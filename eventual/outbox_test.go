package eventual_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// sale is an entity with an outbox.
type sale struct {
	tables.Meta
	Shop, ID, Email string
	Total           int
}

func saleOf(id string, total int) *sale {
	return &sale{Shop: "shop", ID: id, Email: id + "@contoso.com", Total: total}
}

func saleKey(id string) tables.Key { return tables.Key{Partition: "shop", Row: id} }

// commits notes the calls of a handler. fail, if set, is what the handler does first.
type commits struct {
	mu    sync.Mutex
	ids   map[string]int
	calls []string
	fail  func(c eventual.Commit[sale]) error
}

func (x *commits) handle(_ context.Context, c eventual.Commit[sale]) error {
	if fail := x.note(c); fail != nil {
		return fail(c)
	}
	return nil
}

// note notes a call, and returns what the handler does.
func (x *commits) note(c eventual.Commit[sale]) func(eventual.Commit[sale]) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ids == nil {
		x.ids = map[string]int{}
	}
	x.ids[c.ID]++
	state := "gone"
	if c.Entity != nil {
		state = fmt.Sprint(c.Entity.Total)
	}
	x.calls = append(x.calls, c.Key.Row+" "+state)
	return x.fail
}

// take returns the calls since the last take, in order of their text, and how many IDs they had.
func (x *commits) take() (calls []string, ids int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	calls, ids = x.calls, len(x.ids)
	slices.Sort(calls)
	x.calls, x.ids = nil, nil
	return calls, ids
}

// want fails unless these were the calls since the last take, each for a change of its own.
func (x *commits) want(t testing.TB, what string, calls ...string) {
	t.Helper()
	if got, ids := x.take(); !slices.Equal(got, calls) || ids != len(calls) {
		t.Errorf("%s: calls %q for %d changes, want %q", what, got, ids, calls)
	}
}

// salesOf opens a repository of sales in a store of the service's account, as each process does. names are those of its table and queue.
func salesOf(s *storagetest.Service, names [2]string, all ...patterns.Pattern[sale]) (*patterns.Store, *patterns.Repository[sale], error) {
	return salesWith(s, names, -1, all...)
}

// salesWith is salesOf with so many intents that are closed in the background.
func salesWith(s *storagetest.Service, names [2]string, mostOpen int, all ...patterns.Pattern[sale]) (*patterns.Store, *patterns.Repository[sale], error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, nil, err
	}
	store, err := patterns.Open(names[1], &patterns.StoreOptions{Account: account, MaxOpen: mostOpen, Intents: eventual.IntentQueue(&eventual.QueueOptions{VisibilityTimeout: time.Minute}, nil)})
	if err != nil {
		return nil, nil, err
	}
	repo, err := patterns.NewRepository(store.Table(names[0]), patterns.Schema[sale]{Key: func(v *sale) tables.Key { return tables.Key{Partition: v.Shop, Row: v.ID} }}, all...)
	return store, repo, err
}

// saleNames are names for one test.
func saleNames(t testing.TB, s *storagetest.Service) [2]string {
	queue := s.QueueName(t)
	return [2]string{s.TableName(t), "q" + queue[len(queue)-16:]}
}

// newSales is salesOf with the table and the queue.
func newSales(t testing.TB, s *storagetest.Service, all ...patterns.Pattern[sale]) (*patterns.Store, *patterns.Repository[sale]) {
	t.Helper()
	store, repo, err := salesOf(s, saleNames(t, s), all...)
	assert.Check(t, err)
	eventual.Intents(store)
	assert.Check(t, store.Create(t.Context()))
	return store, repo
}

// drainIntents handles the intents that are visible.
func drainIntents(t testing.TB, store *patterns.Store) eventual.WorkerStats {
	t.Helper()
	return drain(t, eventual.Intents(store), nil)
}

// TestOnCommit: every verb, transactions and bulk changes call the handler once for each change, with the entity as changed; a delete
// does so with the option only. Jobs that write entities again do not.
func TestOnCommit(t *testing.T) {
	for _, async := range []bool{false, true} {
		for _, options := range []*eventual.OutboxOptions{nil, {On: eventual.Inserts | eventual.Updates | eventual.Deletes}, {On: eventual.Inserts | eventual.Updates | eventual.Deletes, Ordered: true}} {
			t.Run(fmt.Sprintf("async=%v %+v", async, options), func(t *testing.T) {
				var x commits
				var outbox patterns.Pattern[sale] = eventual.OnCommit("calls", x.handle, options)
				if async {
					outbox = patterns.Async(outbox)
				}
				store, repo := newSales(t, storagetest.Open(t), outbox)
				verbs(t, &x, store, repo, options)
			})
		}
	}
}

// verbs makes changes of each kind.
func verbs(t *testing.T, x *commits, store *patterns.Store, repo *patterns.Repository[sale], options *eventual.OutboxOptions) {
	t.Helper()
	ctx := t.Context()
	wants := func(what string, calls ...string) {
		t.Helper()
		drainIntents(t, store)
		x.want(t, what, calls...)
	}
	gone := func(calls ...string) []string {
		if options == nil {
			return nil
		}
		return calls
	}
	v := saleOf("a", 1)
	assert.Check(t, repo.Insert(ctx, v))
	wants("Insert", "a 1")
	v.Total = 2
	assert.Check(t, repo.Replace(ctx, v))
	wants("Replace", "a 2")
	assert.Check(t, repo.Upsert(ctx, saleOf("a", 3)))
	wants("Upsert", "a 3")
	v = assert.Must[*sale](t)(repo.Get(ctx, saleKey("a")))
	v.Total = 4
	assert.Check(t, repo.Merge(ctx, v, "Total"))
	wants("Merge", "a 4")
	assert.Must[*sale](t)(repo.Update(ctx, saleKey("a"), func(*sale) error { return nil }))
	wants("Update that changes nothing", "a 4")
	assert.ErrorIs(t, repo.Insert(ctx, saleOf("a", 9)), tables.ErrExists)
	wants("a refused Insert")
	assert.Check(t, repo.DeleteUnconditional(ctx, saleKey("a")))
	wants("Delete", gone("a gone")...)

	tx := repo.Table().NewTransaction()
	for i, id := range []string{"b", "c", "d"} {
		repo.StageInsert(tx, saleOf(id, i))
	}
	assert.Check(t, assert.Err(tx.Commit(ctx)))
	wants("a transaction", "b 0", "c 1", "d 2")
	bulk := func(verb tables.BulkVerb, sales ...*sale) {
		t.Helper()
		report, err := repo.BulkNonAtomic(ctx, func(yield func(*sale, error) bool) {
			for _, v := range sales {
				if !yield(v, nil) {
					return
				}
			}
		}, &tables.BulkOptions{Verb: verb})
		if err != nil || report.Failed > 0 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	bulk(tables.BulkUpsert, saleOf("b", 5), saleOf("e", 6))
	wants("a bulk upsert", "b 5", "e 6")

	for _, job := range []harness.RepositoryJob[tally.Report]{harness.Tallied(repo.Rebuild), harness.Tallied(repo.Repair), harness.Tallied(repo.Verify)} {
		if report, err := job(ctx, nil); err != nil || report.Failed > 0 {
			t.Errorf("%+v, %v", report, err)
		}
	}
	wants("jobs")
	var all []*sale
	for v, err := range repo.Query().Partition("shop").All(ctx) {
		assert.Check(t, err)
		all = append(all, v)
	}
	bulk(tables.BulkDelete, all...)
	wants("a bulk delete", gone("b gone", "c gone", "d gone", "e gone")...)
}

// TestOnCommitFails: what the handler returns does not fail the change. A worker calls it again with the same ID, and in the end the intent
// is on the poison queue with the reason. A panic is an error with a stack.
func TestOnCommitFails(t *testing.T) {
	for _, several := range []bool{false, true} {
		var x commits
		store, repo := newSales(t, storagetest.Open(t), eventual.OnCommit("calls", x.handle, nil))
		x.fail = func(c eventual.Commit[sale]) error {
			if c.Key.Row == "b" {
				return nil
			}
			panic("no paper")
		}
		tx := repo.Table().NewTransaction()
		repo.StageInsert(tx, saleOf("a", 1))
		if several {
			repo.StageInsert(tx, saleOf("b", 1))
		}
		assert.Check(t, assert.Err(tx.Commit(t.Context())))
		if stats := drainIntents(t, store); stats.Poisoned != 1 {
			t.Errorf("%+v", stats)
		}
		calls, ids := x.take()
		as := slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return call != "a 1" })
		if want := 1 + len(calls) - len(as); len(as) != 6 || several != (len(calls) > len(as)) || ids != min(want, 2) {
			t.Errorf("%d IDs, calls %q", ids, calls)
		}
		poisoned := entries(t, eventual.Intents(store))
		if len(poisoned) != 1 || !strings.Contains(poisoned[0].Reason, "no paper") || !strings.Contains(poisoned[0].Reason, "calls") || !strings.Contains(poisoned[0].Stack, "outbox_test.go") {
			t.Fatalf("%+v", poisoned)
		}
		x.fail = nil
		assert.Must[int](t)(eventual.Intents(store).Poison().Requeue(t.Context(), func(eventual.PoisonMessage) bool { return true }))
		if stats := drainIntents(t, store); stats.Handled != 1 {
			t.Errorf("%+v", stats)
		}
	}
}

// TestOnCommitHidesTheHandlersKind: an error of the library that the handler returns is not one about this entity.
func TestOnCommitHidesTheHandlersKind(t *testing.T) {
	var x commits
	var log logged
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: log.logger()}))
	store := assert.Must[*patterns.Store](t)(patterns.Open("kinds", &patterns.StoreOptions{Account: account}))
	repo := assert.Must[*patterns.Repository[sale]](t)(patterns.NewRepository(store.Table("Sales"), patterns.Schema[sale]{Key: func(v *sale) tables.Key { return saleKey(v.ID) }}, eventual.OnCommit("calls", x.handle, nil)))
	assert.Check(t, store.Create(t.Context()))
	x.fail = func(eventual.Commit[sale]) error {
		return &tables.Error{Op: "Insert", Table: "Others", Kind: tables.ErrDuplicate}
	}
	assert.Check(t, repo.Insert(t.Context(), saleOf("a", 1)))
	assert.Check(t, harness.Settle(t.Context(), store))
	if text := log.String(); !strings.Contains(text, "the handler of OnCommit failed") || !strings.Contains(text, "pattern=calls") || strings.Contains(text, "decide which entity") {
		t.Error(text)
	}
}

// TestOnCommitRequests: an outbox costs the requests of an intent. A lock costs 3.
func TestOnCommitRequests(t *testing.T) {
	byEmail := func() patterns.Pattern[sale] {
		return interpartition.NewIndex("email", func(v *sale) string { return v.Email }, &interpartition.Options[sale]{ByPartition: true})
	}
	for _, c := range []struct {
		name            string
		want            int
		outbox, byEmail bool
		options         *eventual.OutboxOptions
		async           bool
	}{
		{name: "an index", want: 3, byEmail: true},
		{name: "an index and an outbox", want: 6, byEmail: true, outbox: true},
		{name: "an outbox", want: 4, outbox: true},
		{name: "an asynchronous outbox", want: 3, outbox: true, async: true},
		{name: "an ordered outbox", want: 7, outbox: true, options: &eventual.OutboxOptions{Ordered: true}},
	} {
		s := storagetest.Simulator(t, nil)
		var requests storagetest.RequestCounter
		counted := *s
		counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), &requests)
		var x commits
		var all []patterns.Pattern[sale]
		if c.byEmail {
			all = append(all, byEmail())
		}
		if outbox := eventual.OnCommit("calls", x.handle, c.options); c.async {
			all = append(all, patterns.Async(patterns.Pattern[sale](outbox)))
		} else if c.outbox {
			all = append(all, outbox)
		}
		_, repo := newSales(t, &counted, all...)
		before := requests.Count()
		assert.Check(t, repo.Insert(t.Context(), saleOf("a", 1)))
		assert.Equal(t, requests.Count()-before, c.want, "%s: requests", c.name)
		v := assert.Must[*sale](t)(repo.Get(t.Context(), saleKey("a")))
		before = requests.Count()
		assert.Check(t, repo.Delete(t.Context(), v))
		if n := requests.Count() - before; !c.byEmail && n != 1 {
			t.Errorf("%s: %d requests for a delete that calls nobody", c.name, n)
		}
	}
}

// TestOnCommitNotCommitted: a worker does not call the handler for a change whose writer died before the commit, unless the entity was
// written since. A writer does not call it for a change that was refused after it had reserved a key.
func TestOnCommitNotCommitted(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	var x commits
	names := saleNames(t, s)
	open := func(s *storagetest.Service) (*patterns.Store, *patterns.Repository[sale]) {
		store, repo, err := salesOf(s, names, eventual.OnCommit("calls", x.handle, nil),
			interpartition.NewUnique("email", func(v *sale) string { return v.Email }, &interpartition.Options[sale]{ByPartition: true}))
		assert.Check(t, err)
		return store, repo
	}
	store, repo := open(s)
	assert.Check(t, store.Create(t.Context()))
	assert.Check(t, repo.Insert(t.Context(), saleOf("a", 1)))
	x.want(t, "Insert", "a 1")
	for _, writtenSince := range []bool{false, true} {
		dying, _ := s.Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
			if c.Kind == storagetest.Batch || c.Kind == storagetest.ReplaceEntity {
				return storagetest.DiesBefore
			}
			return nil
		}))
		_, theirs := open(dying)
		v := assert.Must[*sale](t)(repo.Get(t.Context(), saleKey("a")))
		v.Total++
		assert.ErrorIs(assert.Fatal(t), theirs.Replace(t.Context(), v), storagetest.ErrDied, "the writer did not die")
		if writtenSince {
			assert.Must[*sale](t)(repo.Update(t.Context(), saleKey("a"), func(v *sale) error { v.Total = 7; return nil }))
			x.want(t, "Update", "a 7")
		}
		s.Wait(time.Minute + time.Second)
		if stats := drainIntents(t, store); stats.Handled != 1 {
			t.Errorf("%+v", stats)
		}
		if writtenSince {
			x.want(t, "an intent of which nobody knows", "a 7")
		} else {
			x.want(t, "an intent without a change")
		}
	}
	again := saleOf("a", 9)
	again.Email = "other@contoso.com"
	assert.ErrorIs(t, repo.Insert(t.Context(), again), tables.ErrExists)
	x.want(t, "a refused change with a reservation")
}

// TestOnCommitCallsAgain: if the entity changes during a call, the handler is called again with the later state and the same ID.
func TestOnCommitCallsAgain(t *testing.T) {
	var x commits
	_, repo := newSales(t, storagetest.Open(t), eventual.OnCommit("calls", x.handle, nil))
	x.fail = func(c eventual.Commit[sale]) error {
		if c.Entity.Total > 1 {
			return nil
		}
		c.Entity.Total = 2 // the handler has a copy
		return repo.Replace(t.Context(), c.Entity)
	}
	v := saleOf("a", 1)
	assert.Check(t, repo.Insert(t.Context(), v))
	calls, ids := x.take()
	if want := []string{"a 1", "a 2", "a 2"}; !slices.Equal(calls, want) || ids != 2 || v.Total != 1 {
		t.Errorf("calls %q with %d IDs, and the caller's value has total %d", calls, ids, v.Total)
	}
}
