package eventual_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// outboxSchedule has writers of two sales, and workers.
type outboxSchedule struct {
	harness.Trouble
	destination
	names   [2]string
	options *eventual.OutboxOptions
	async   bool
	ordered bool // the destination must not go back

	withoutLock bool // the outbox is not Ordered all the same
	mostOpen    int
	inserted    atomic.Int64
	changes     int // of each writer
}

func (r *outboxSchedule) open(s *storagetest.Service) (*patterns.Store, *patterns.Repository[sale], error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, nil, err
	}
	// The handler makes a request of its own, during which others write, and which can fail.
	outbox := r.outbox(r.options, func(ctx context.Context) error {
		_, err := account.Table(r.names[0]).Entities().Get(ctx, saleKey("template"))
		if errors.Is(err, tables.ErrNotFound) {
			return nil
		}
		return err
	})
	if r.async {
		outbox = patterns.Async(outbox)
	}
	return salesWith(s, r.names, r.mostOpen, outbox)
}

func (r *outboxSchedule) openQueue(s *storagetest.Service) (*eventual.Queue, error) {
	store, _, err := r.open(s)
	if err != nil {
		return nil, err
	}
	return eventual.Intents(store), nil
}

// stage makes the world and its actors.
func (r *outboxSchedule) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
	r.names, r.changes, r.async, r.mostOpen = saleNames(t, s), 4, rng.IntN(3) == 0, []int{-1, 64}[rng.IntN(2)]
	r.ordered = rng.IntN(2) == 0 && r.Waive == 0
	if r.Waive != 0 {
		r.changes = 2 // so that no later change hides what is missing
	}
	r.options = &eventual.OutboxOptions{On: eventual.Inserts | eventual.Updates | eventual.Deletes, Ordered: r.ordered && !r.withoutLock}
	r.Faults, r.Deaths, r.Visibility, r.Network = trouble, trouble/5, outboxVisibility, s.ClientOptions.Transport
	store, _, err := r.open(s)
	assert.Check(t, err)
	eventual.Intents(store)
	assert.Check(t, store.Create(t.Context()))
	var stage explore.Stage
	for range 3 {
		stage.Actors = append(stage.Actors, r.writer(rng.Uint64()))
	}
	for range 2 {
		stage.Workers = append(stage.Workers, r.Worker(rng.Uint64(), harness.Workers{Open: r.openQueue, Concurrency: 1}))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		time.Sleep(outboxVisibility) // what is late has arrived
		err := harness.Drain(ctx, s, outboxVisibility, r.openQueue)
		_, repo, startErr := r.open(s)
		if err := errors.Join(append(errs, err, startErr)...); err != nil {
			return err
		}
		r.Log.Add(called, int64(r.calls))
		if r.ordered && r.went != nil {
			return r.went
		}
		return r.follows(ctx, repo)
	}
	return stage
}

const called = "calls of the handler"

func (r *outboxSchedule) writer(seed uint64) explore.Actor {
	rng, done := mathrand.New(mathrand.NewPCG(seed, 0)), 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		store, repo, err := r.open(s)
		if err != nil {
			return false, err
		}
		for ; done < r.changes && !dead(); done++ {
			r.Log.Told(r.change(ctx, repo, rng))
		}
		if !dead() {
			_ = harness.Settle(ctx, store)
		}
		return done == r.changes, nil
	})
}

// change inserts, raises or deletes sales. Each insert has a thousand of its own.
func (r *outboxSchedule) change(ctx context.Context, repo *patterns.Repository[sale], rng *mathrand.Rand) error {
	key := saleKey([]string{"a", "b"}[rng.IntN(2)])
	switch rng.IntN(6) {
	case 0:
		return repo.DeleteUnconditional(ctx, key)
	case 1:
		return replaceBoth(ctx, repo)
	}
	_, err := repo.Update(ctx, key, func(v *sale) error { v.Total++; return nil })
	if errors.Is(err, tables.ErrNotFound) {
		return repo.Insert(ctx, saleOf(key.Row, int(1000*r.inserted.Add(1))))
	}
	return err
}

// schedules runs so many schedules, in which some rules are not enforced.
func outboxSchedules(t *testing.T, seeds int, waive lease.Rules, withoutLock bool) *harness.Log {
	t.Helper()
	log := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Pauses: harness.Pauses(outboxVisibility),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			r := &outboxSchedule{Trouble: harness.Trouble{Log: log, Waive: waive}, withoutLock: withoutLock}
			return r.stage(t, s)
		}})
	t.Log(log)
	return log
}

// TestScheduleOnCommit: three writers and two workers, whose calls fail or arrive late, who pause and die. In the end the last call for
// each entity was with its last state, and with Ordered no call was with an earlier state than one before it.
func TestScheduleOnCommit(t *testing.T) {
	log := outboxSchedules(t, harness.Seeds(1000), 0, false)
	log.MustHave(t, called, harness.Unknown, harness.Lost, harness.Deaths)
}

// TestScheduleOnCommitCanFail: without the closing read, the schedules find a destination that was left with an earlier state; without
// the lock, one that goes back.
func TestScheduleOnCommitCanFail(t *testing.T) {
	const reread, lock = "reread", "lock"
	switch os.Getenv(careless) {
	case reread:
		outboxSchedules(t, 200, lease.Reread, false)
		return
	case lock:
		outboxSchedules(t, 60, 0, true)
		return
	}
	for without, finds := range map[string]string{reread: `the last call for sale [^\n]*`, lock: `[ab] went back from [^\n]*`} {
		cmd := exec.CommandContext(t.Context(), assert.Must[string](t)(os.Executable()), "-test.run=^TestScheduleOnCommitCanFail$")
		cmd.Env = append(os.Environ(), careless+"="+without)
		out, err := cmd.CombinedOutput()
		said := regexp.MustCompile(finds).FindString(string(out))
		if err == nil || said == "" {
			t.Fatalf("a missing %s was not caught: %v\n%s", without, err, out)
		}
		t.Log(fmt.Sprint("as expected: ", said))
	}
}
