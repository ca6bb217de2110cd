package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// outboxVisibility is the visibility timeout of the stores of salesOf.
const outboxVisibility = time.Minute

// destination is where the handlers of all processes of a run write: what was called with which state, and the state that came last. With
// it a test knows for each committed state whether there was a call with it, or with a later one.
type destination struct {
	mu     sync.Mutex
	newest map[string]int // by ID of the sale: the total of the last call with an entity
	ended  map[int]bool   // thousands that others have followed: each insert has a thousand of its own
	last   map[string]int // the total of the last call, -1 for none
	went   error          // the first step back
	calls  int
}

// outbox returns the pattern of one process. before, if set, is what the handler does first.
func (d *destination) outbox(options *eventual.OutboxOptions, before func(context.Context) error) patterns.Pattern[sale] {
	return eventual.OnCommit("calls", func(ctx context.Context, c eventual.Commit[sale]) error {
		if before != nil {
			if err := before(ctx); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err // a process that has died calls nobody
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.last == nil {
			d.last, d.ended, d.newest = map[string]int{}, map[int]bool{}, map[string]int{}
		}
		total := -1
		if c.Entity != nil {
			total = c.Entity.Total
		}
		if total >= 0 {
			d.forward(c.Key.Row, total)
		}
		d.last[c.Key.Row] = total
		d.calls++
		return nil
	}, options)
}

// forward notes a step back: to a lower total of the same thousand, or to an earlier thousand.
func (d *destination) forward(id string, total int) {
	before, called := d.newest[id]
	if called && before/1000 != total/1000 {
		d.ended[before/1000] = true
	}
	if d.went == nil && (before/1000 == total/1000 && total < before || d.ended[total/1000]) {
		d.went = fmt.Errorf("%s went back from %d to %d", id, before, total)
	}
	d.newest[id] = total
}

// follows returns an error unless the destination holds the sales as they are.
func (d *destination) follows(ctx context.Context, repo *patterns.Repository[sale]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	stored := map[string]int{}
	for v, err := range repo.Query().Partition("shop").All(ctx) {
		if err != nil {
			return err
		}
		stored[v.ID] = v.Total
	}
	for id, total := range stored {
		if last, called := d.last[id]; !called || last != total {
			return fmt.Errorf("the last call for sale %s was with %d (%v), and it has %d", id, last, called, total)
		}
	}
	for id, last := range d.last {
		if _, there := stored[id]; !there && last >= 0 {
			return fmt.Errorf("the last call for sale %s was with %d, and it is gone", id, last)
		}
	}
	return nil
}

// outboxSweep is an operation on sales a and b, which exist with totals of 1. workers is false for a system that has none.
func outboxSweep(floor int, options *eventual.OutboxOptions, async, workers bool, operate func(context.Context, *patterns.Repository[sale]) error) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: floor, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		d, names := &destination{}, saleNames(t, s)
		open := func(s *storagetest.Service) (*patterns.Store, *patterns.Repository[sale], error) {
			outbox := d.outbox(options, nil)
			if async {
				outbox = patterns.Async(outbox)
			}
			return salesOf(s, names, outbox)
		}
		store, repo, err := open(s)
		assert.Check(t, err)
		eventual.Intents(store)
		assert.Check(t, store.Create(t.Context()))
		for _, id := range []string{"a", "b"} {
			assert.Check(t, repo.Insert(t.Context(), saleOf(id, 1)))
		}
		assert.Check(t, harness.DrainNow(t.Context(), eventual.Intents(store)))
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				_, repo, err := open(s)
				if err == nil {
					err = operate(ctx, repo)
				}
				return err
			},
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				if !workers {
					return nil
				}
				return harness.Drain(ctx, s, outboxVisibility, func(s *storagetest.Service) (*eventual.Queue, error) {
					store, _, err := open(s)
					if err != nil {
						return nil, err
					}
					return eventual.Intents(store), nil
				})
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				_, repo, err := open(s)
				if err == nil {
					err = d.follows(ctx, repo)
				}
				if options != nil && options.Ordered && err == nil {
					err = d.went
				}
				return err
			},
		}
	}}
}

// replaceBoth replaces both sales in a transaction.
func replaceBoth(ctx context.Context, repo *patterns.Repository[sale]) error {
	tx := repo.Table().NewTransaction()
	for _, id := range []string{"a", "b"} {
		v, err := repo.Get(ctx, saleKey(id))
		if err != nil {
			return err
		}
		v.Total++
		repo.StageReplace(tx, v)
	}
	_, err := tx.Commit(ctx)
	return err
}

// TestSweepOnCommit breaks every storage call of changes with an outbox, in every way: whatever breaks, the last call for each entity is
// with its last state. So there was a call after each commit, also of a change whose caller got no answer.
func TestSweepOnCommit(t *testing.T) {
	all := &eventual.OutboxOptions{On: eventual.Inserts | eventual.Updates | eventual.Deletes}
	for name, c := range map[string]storagetest.SweepCase{
		"Insert": outboxSweep(120, nil, false, true, func(ctx context.Context, repo *patterns.Repository[sale]) error {
			return repo.Insert(ctx, saleOf("c", 5))
		}),
		"Update": outboxSweep(152, all, false, true, func(ctx context.Context, repo *patterns.Repository[sale]) error {
			_, err := repo.Update(ctx, saleKey("a"), func(v *sale) error { v.Total++; return nil })
			return err
		}),
		"Delete": outboxSweep(152, all, false, true, func(ctx context.Context, repo *patterns.Repository[sale]) error {
			err := repo.DeleteUnconditional(ctx, saleKey("a"))
			if errors.Is(err, tables.ErrNotFound) {
				return nil
			}
			return err
		}),
		"Transaction":         outboxSweep(244, all, false, true, replaceBoth),
		"async Transaction":   outboxSweep(180, all, true, true, replaceBoth),
		"ordered Transaction": outboxSweep(420, &eventual.OutboxOptions{On: eventual.Inserts | eventual.Updates | eventual.Deletes, Ordered: true}, false, true, replaceBoth),
	} {
		if c.Every = 1; !harness.Thorough() {
			if c.Every = 7; c.Floor > 400 { // a process waits for the lock of one that has died
				c.Every = 29
			}
		}
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

// careless makes this test binary run sweeps in a world that breaks a rule.
const careless = "EVENTUAL_CARELESS"

// TestSweepOnCommitCanFail: without workers the sweeps find committed changes without a call.
func TestSweepOnCommitCanFail(t *testing.T) {
	if os.Getenv(careless) != "" {
		c := outboxSweep(0, nil, false, false, replaceBoth)
		c.Callers = []storagetest.Caller{storagetest.ProcessDies}
		storagetest.Sweep(t, c)
		return
	}
	cmd := exec.CommandContext(t.Context(), assert.Must[string](t)(os.Executable()), "-test.run=^TestSweepOnCommitCanFail$", "-test.v")
	cmd.Env = append(os.Environ(), careless+"=1")
	out, err := cmd.CombinedOutput()
	said := regexp.MustCompile(`sweep TestSweepOnCommitCanFail: [^\n]*[1-9]\d* divergences`).FindString(string(out))
	if err == nil || said == "" {
		t.Fatalf("an outbox without workers was not caught: %v\n%s", err, out)
	}
	t.Log("as expected: " + said)
}
