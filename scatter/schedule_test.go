package scatter_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scheduleWorld is one schedule's world: writers of the same numbers, a program that changes n, and a reader.
type scheduleWorld struct {
	table string
	seed  uint64
	log   *scheduleLog

	mu       sync.Mutex
	inserted map[string]int  // successes
	surely   map[string]bool // inserted, and nobody deletes
}

// scheduleLog is what happened in all schedules.
type scheduleLog struct {
	mu                                               sync.Mutex
	inserts, refused, unknown, deaths, faults, reads int
	epochs                                           int // the most in one schedule
}

func (l *scheduleLog) add(f func(l *scheduleLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

const scheduleNumbers = 24

// process opens the table through a network with faults; the process dies in some of them.
func (r *scheduleWorld) process(s *storagetest.Service, rng *mathrand.Rand) (spread, *storagetest.Faults, error) {
	faulty, calls := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < 0.02:
			r.log.add(func(l *scheduleLog) { l.deaths++ })
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < 0.1:
			r.log.add(func(l *scheduleLog) { l.faults++ })
			faults := storagetest.FaultsOf(call.Kind)
			return faults[rng.IntN(len(faults))]
		}
		return nil
	}))
	p, err := open(faulty, r.table, numbered(4, 2), nil)
	return p, calls, err
}

// actor does something for each number, in a new process after each death.
func (r *scheduleWorld) actor(seed uint64, do func(ctx context.Context, p spread, rng *mathrand.Rand, number int64) error) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, r.seed))
		for number := int64(0); number < scheduleNumbers; {
			p, faults, err := r.process(s, rng)
			if err != nil {
				return err
			}
			for ; number < scheduleNumbers && !faults.Dead(); number++ {
				if err := do(ctx, p, rng, number); err != nil && !faults.Dead() {
					return err
				}
			}
		}
		return nil
	}
}

// insert inserts a number that the other writers insert, too.
func (r *scheduleWorld) insert(ctx context.Context, p spread, rng *mathrand.Rand, number int64) error {
	e := &event{Number: number + int64(rng.IntN(3))}
	err := p.Insert(ctx, e)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.inserted[e.row()]++
		r.surely[e.row()] = true
		r.log.add(func(l *scheduleLog) { l.inserts++ })
	case harness.OutcomeUnknown(err):
		r.log.add(func(l *scheduleLog) { l.unknown++ })
	case errors.Is(err, tables.ErrExists):
		r.surely[e.row()] = true
		r.log.add(func(l *scheduleLog) { l.refused++ })
	}
	return nil
}

func (r *scheduleWorld) resize(ctx context.Context, p spread, rng *mathrand.Rand, _ int64) error {
	_, _ = p.Resize(ctx, 1+rng.IntN(7)) // whether it did shows in the record
	return nil
}

// read reads all, and holds it against what was there before it began.
func (r *scheduleWorld) read(ctx context.Context, p spread, _ *mathrand.Rand, number int64) error {
	if number%4 != 0 {
		return nil
	}
	r.mu.Lock()
	before := make([]string, 0, len(r.surely))
	for row := range r.surely {
		before = append(before, row)
	}
	r.mu.Unlock()
	rows, err := rowsOf(p.Range(ctx, compoundkey.All(), nil))
	if err != nil {
		return nil // a fault; what was read so far is in order, or the error says so
	}
	for _, row := range before {
		if !slices.Contains(rows, row) {
			return fmt.Errorf("row %s was there, and Range gives %v", row, rows)
		}
	}
	r.log.add(func(l *scheduleLog) { l.reads++ })
	return nil
}

// TestSchedule: writers of the same numbers, whose horizons differ, and a program that changes n again and again; calls fail,
// answers are lost, processes die.
func TestSchedule(t *testing.T) {
	log := &scheduleLog{}
	seeds := 150
	if harness.Shortened() {
		seeds = 15
	}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		r := &scheduleWorld{table: newTable(t, s), seed: harness.ScheduleSeed(), log: log, inserted: map[string]int{}, surely: map[string]bool{}}
		return explore.Stage{Actors: []explore.Actor{r.actor(1, r.insert), r.actor(2, r.insert), r.actor(3, r.resize), r.actor(4, r.read)},
			Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
				return errors.Join(append(errs, r.check(ctx, s))...)
			}}
	}})
	t.Logf("%d inserted, %d refused, %d unknown; %d reads; %d faults, %d deaths; up to %d epochs", log.inserts, log.refused, log.unknown, log.reads, log.faults, log.deaths, log.epochs)
	if log.inserts == 0 || log.refused == 0 || log.unknown == 0 || log.reads == 0 || log.faults == 0 || log.deaths == 0 || log.epochs < 4 {
		t.Error("the schedules show nothing of some of these")
	}
}

func (r *scheduleWorld) check(ctx context.Context, s *storagetest.Service) error {
	rows, err := placed(ctx, s, r.table, numbered(4, 2))
	if err != nil {
		return err
	}
	for row := range r.surely {
		if !slices.Contains(rows, row) {
			return fmt.Errorf("row %s was inserted, and is lost", row)
		}
	}
	for row, n := range r.inserted {
		if n > 1 {
			return fmt.Errorf("row %s was inserted %d times", row, n)
		}
	}
	p, err := open(s, r.table, numbered(4, 2), nil)
	if err != nil {
		return err
	}
	epochs, err := p.Epochs(ctx)
	r.log.add(func(l *scheduleLog) { l.epochs = max(l.epochs, len(epochs)) })
	return err
}
