package composition

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestEverythingSchedules: concurrent writers insert, change and delete the same items, with all patterns at once, calls go wrong, processes die,
// workers carry on, and maintenance runs go through all items meanwhile, in seeded orders. When all have ended, all that is kept agrees with the items.
func TestEverythingSchedules(t *testing.T) {
	log, seeds := &harness.Log{}, max(20, harness.Seeds(60))
	if harness.Shortened() {
		seeds = 5
	}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Steps: 80_000, Pauses: harness.Pauses(visibility),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage { return concurrentStage(t, s, log) }})
	t.Log(log)
	log.MustHave(t, harness.Applied, harness.Handled)
	if !harness.Shortened() {
		for _, job := range jobs() {
			log.MustHave(t, "runs of "+job.Name)
		}
	}
}

func concurrentStage(t testing.TB, s *storagetest.Service, log *harness.Log) explore.Stage {
	o := newOffice(t, s)
	trouble := &harness.Trouble{Faults: 0.02, Deaths: 0.01, Visibility: visibility, Network: s.ClientOptions.Transport, Log: log}
	workers := harness.Workers{Concurrency: 1, Open: func(s *storagetest.Service) (*eventual.Queue, error) {
		d, err := o.open(s)
		if err != nil {
			return nil, err
		}
		return d.queue, nil
	}}
	seed := harness.ScheduleSeed()
	var stage explore.Stage
	for n := range uint64(3) {
		stage.Actors = append(stage.Actors, trouble.Actor(seed+n, o.career(seed+n, log)))
	}
	stage.Actors = append(stage.Actors, harness.Keeper(trouble, seed+3, 3, o.open, jobs()...))
	stage.Workers = append(stage.Workers, trouble.Worker(seed+10, workers))
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		time.Sleep(2 * visibility) // until what is late has arrived
		if err := errors.Join(append(errs, o.drain(ctx, s))...); err != nil {
			return err
		}
		return o.checkFinal(ctx, s)
	}
	return stage
}

// career is a process that changes items that others change as well.
func (o *office) career(seed uint64, log *harness.Log) harness.Life {
	rng, changes := mathrand.New(mathrand.NewPCG(seed, 1)), 4
	return func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		d, err := o.open(s)
		if err != nil {
			return false, err
		}
		for ; changes > 0 && !dead(); changes-- {
			v := d.itemOf(1+rng.IntN(2), states[rng.IntN(len(states))])
			if rng.IntN(3) == 0 {
				err = d.items.DeleteUnconditional(ctx, plainKey(v))
			} else {
				err = d.items.Upsert(ctx, v)
			}
			if !dead() {
				log.Told(err)
			}
		}
		return changes == 0, nil
	}
}

var states = []string{"a", "b", "c"}

// checkFinal checks that all that the patterns store equals what follows from the items.
func (o *office) checkFinal(ctx context.Context, s *storagetest.Service) error {
	d, err := o.open(s)
	if err != nil {
		return err
	}
	var now, before []*item
	for id := 1; id <= 2; id++ {
		got, err := d.items.Get(ctx, plainKey(d.itemOf(id, "a")))
		if err != nil && !errors.Is(err, tables.ErrNotFound) {
			return err
		}
		for _, state := range states {
			if v := d.itemOf(id, state); err == nil && got.Name == v.Name {
				now = append(now, v)
			} else {
				before = append(before, v)
			}
		}
	}
	if err := errors.Join(d.consistent(ctx, now, before), clean(ctx, d.items), d.swept(ctx, s)); err != nil {
		return fmt.Errorf("of %d items: %w", len(now), err)
	}
	return nil
}
