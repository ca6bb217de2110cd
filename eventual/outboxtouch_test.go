package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestOnCommitIgnoresTouches: Rebuild and Repair, which write entities again to add rows of a new index, do not call the handler, and
// neither does Upgrade, which writes them in a new version.
func TestOnCommitIgnoresTouches(t *testing.T) {
	type job = harness.RepositoryJob[tally.Report]
	version := func(n int) *heterogeneous.Type[sale] {
		o := &heterogeneous.TypeOptions{}
		if n > 1 {
			o.Steps = []heterogeneous.Step{heterogeneous.From(1, func(old *sale) (*sale, error) { return old, nil })}
		}
		return heterogeneous.NewType[sale]("Sale", n, o)
	}
	for name, of := range map[string]func(*patterns.Repository[sale], *heterogeneous.Type[sale]) job{
		"Rebuild": func(r *patterns.Repository[sale], _ *heterogeneous.Type[sale]) job { return harness.Tallied(r.Rebuild) },
		"Repair":  func(r *patterns.Repository[sale], _ *heterogeneous.Type[sale]) job { return harness.Tallied(r.Repair) },
		"Upgrade": func(_ *patterns.Repository[sale], v *heterogeneous.Type[sale]) job { return harness.Tallied(v.Upgrade) },
	} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Open(t)
			var x commits
			names := saleNames(t, s)
			store, before, err := salesOf(s, names, eventual.OnCommit("calls", x.handle, nil), version(1))
			assert.Check(t, err)
			assert.Check(t, store.Create(t.Context()))
			assert.Check(t, before.Insert(t.Context(), saleOf("a", 1)))
			x.want(t, "Insert", "a 1")
			second := version(2)
			byEmail := intrapartition.NewUnique("email", func(v *sale) string { return v.Email }, nil)
			store, repo, err := salesOf(s, names, eventual.OnCommit("calls", x.handle, nil), second, byEmail)
			assert.Check(t, err)
			old := assert.Must[*sale](t)(repo.Get(t.Context(), saleKey("a"))).WriteID()
			if report, err := of(repo, second)(t.Context(), nil); err != nil || report.Failed > 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if assert.Must[*sale](t)(repo.Get(t.Context(), saleKey("a"))).WriteID() == old {
				t.Error("the job has not written the entity")
			}
			drainIntents(t, store)
			x.want(t, name)
		})
	}
}

var errNoPaper = errors.New("no paper")

// TestOnCommitOrdered: a call that fails holds up the later ones for its entity, and none of another entity, until it succeeds.
func TestOnCommitOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storagetest.Simulator(t, nil)
		var x commits
		outbox := eventual.OnCommit("calls", x.handle, &eventual.OutboxOptions{Ordered: true})
		store, repo := newSales(t, s, outbox)
		printer := false
		x.fail = func(c eventual.Commit[sale]) error {
			if c.Key.Row == "a" && !printer {
				return errNoPaper
			}
			return nil
		}
		assert.Check(t, repo.Insert(t.Context(), saleOf("a", 1)))
		x.want(t, "the first change", "a 1")
		assert.Check(t, repo.Insert(t.Context(), saleOf("b", 1)))
		x.want(t, "another entity", "b 1")
		v := assert.Must[*sale](t)(repo.Get(t.Context(), saleKey("a")))
		v.Total = 2
		assert.Check(t, repo.Replace(t.Context(), v))
		x.want(t, "a change after one whose call has failed")
		stats := drainIntents(t, store)
		if calls, ids := x.take(); stats.Poisoned != 1 || ids != 1 || len(calls) != 5 || calls[0] != "a 2" {
			t.Errorf("%+v, calls %q for %d changes", stats, calls, ids)
		}
		for _, p := range entries(t, eventual.Intents(store)) {
			assert.Contains(t, p.Reason, "no paper")
		}
		printer = true
		assert.Must[int](t)(eventual.Intents(store).Poison().Requeue(t.Context(), func(p eventual.PoisonMessage) bool { return strings.Contains(p.Reason, "no paper") }))
		drainIntents(t, store)
		x.want(t, "the first change, requeued", "a 2")
		s.Wait(2 * time.Minute) // the second change has waited, and was not poisoned
		drainIntents(t, store)
		x.want(t, "the second change", "a 2")

		printer = false
		assert.Check(t, repo.Upsert(t.Context(), saleOf("a", 3)))
		x.want(t, "a call that will be purged", "a 3")
		drainIntents(t, store)
		assert.Must[int](t)(eventual.Intents(store).Poison().Purge(t.Context(), func(eventual.PoisonMessage) bool { return true }))
		x.take()
		printer = true
		assert.Check(t, outbox.Unlock(t.Context(), saleKey("a")))
		assert.Check(t, repo.Upsert(t.Context(), saleOf("a", 4)))
		x.want(t, "a change after Unlock", "a 4")
		harness.WantKind(t, outbox.Unlock(t.Context(), saleKey("a")), tables.ErrNotFound)
	})
}

// TestOnCommitOrderedNested: a handler of an ordered outbox that changes its own entity, or that is called for two entities and changes the
// other one each time, waits for no call for ever; workers make the calls that could not be made at once.
func TestOnCommitOrderedNested(t *testing.T) {
	for name, other := range map[string]func(key string) string{
		"its own":   func(key string) string { return key },
		"the other": func(key string) string { return map[string]string{"a": "b", "b": "a"}[key] },
	} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the handler's context %v", name, own), func(t *testing.T) {
				storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
					var x commits
					var repo *patterns.Repository[sale]
					var changed sync.Map
					handle := func(ctx context.Context, c eventual.Commit[sale]) error {
						x.note(c)
						if _, again := changed.LoadOrStore(c.Key.Row, true); again {
							return nil
						}
						if !own {
							ctx = t.Context()
						}
						_, err := repo.Update(ctx, saleKey(other(c.Key.Row)), func(v *sale) error { v.Total += 10; return nil })
						return err
					}
					var store *patterns.Store
					store, repo = newSales(t, s, eventual.OnCommit("calls", handle, &eventual.OutboxOptions{Ordered: true}))
					changed.Store("a", true) // while they are inserted
					changed.Store("b", true)
					assert.Check(t, errors.Join(repo.Insert(t.Context(), saleOf("a", 1)), repo.Insert(t.Context(), saleOf("b", 1))))
					x.take()
					changed.Clear()
					var both sync.WaitGroup
					for _, id := range []string{"a", "b"} {
						both.Go(func() {
							assert.Check(t, assert.Err(repo.Update(t.Context(), saleKey(id), func(v *sale) error { v.Total++; return nil })))
						})
					}
					both.Wait()
					for range 10 {
						time.Sleep(2 * time.Minute)
						drainIntents(t, store)
					}
					calls, ids := x.take()
					if ids != 4 || !slices.Contains(calls, "a 12") || !slices.Contains(calls, "b 12") {
						t.Errorf("calls %q for %d changes, want one at least for each of 4", calls, ids)
					}
					if n, err := eventual.Intents(store).Poison().Length(t.Context()); n != 0 || err != nil {
						t.Errorf("%d intents are poisoned, %v", n, err)
					}
				})
			})
		}
	}
}

// TestOnCommitOfHotEntity: an entity that changes during every call of a slow handler has no failed delivery and goes to no poison queue,
// and the handler gets its last state.
func TestOnCommitOfHotEntity(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		const changes = 75 // more than MaxDequeues times Schema.MaxAttempts, which are 5 and 10
		names := saleNames(t, s)
		_, other, err := salesOf(s, names)
		assert.Check(t, err)
		var x commits
		x.fail = func(c eventual.Commit[sale]) error {
			if c.Entity.Total >= changes {
				return nil
			}
			_, err := other.Update(t.Context(), c.Key, func(v *sale) error { v.Total++; return nil })
			return err
		}
		store, repo, err := salesOf(s, names, patterns.Async(eventual.OnCommit("calls", x.handle, nil)))
		assert.Check(t, err)
		assert.Check(t, store.Create(t.Context()))
		assert.Check(t, repo.Insert(t.Context(), saleOf("a", 0)))
		var stats eventual.WorkerStats
		deliveries := 0
		for range 20 {
			more := drainIntents(t, store)
			stats.Handled, stats.Failed, stats.Poisoned = stats.Handled+more.Handled, stats.Failed+more.Failed, stats.Poisoned+more.Poisoned
			deliveries += int(more.Released)
			time.Sleep(6 * time.Minute)
		}
		calls, ids := x.take()
		if last := fmt.Sprint("a ", changes); !slices.Contains(calls, last) || ids != 1 || len(calls) != changes+1 {
			t.Errorf("%d calls for %d changes, want %d with the last state", len(calls), ids, changes+1)
		}
		if stats.Failed != 0 || stats.Poisoned != 0 || stats.Handled != 1 || deliveries < 6 {
			t.Errorf("%+v, and %d deliveries were postponed", stats, deliveries)
		}
	})
}
