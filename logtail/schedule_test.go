package logtail_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// skew is how far clocks are from the truth, late how long after its writer gave up a request arrives: together with half
	// of the window, less than the window by any clock.
	skew     = 7 * time.Second
	lateness = 15 * time.Second
)

// TestSchedule: three writers whose clocks differ, whose calls fail or arrive late, who die and come back with the entry they
// had, and a follower who dies between any two entries. Each entry that is stored is counted once.
func TestSchedule(t *testing.T) {
	seeds := 150
	if harness.Shortened() {
		seeds = 30
	}
	seen := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Pauses: []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, 70 * time.Second},
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage { return concurrentStage(t, s, seen) }})
	t.Log(seen)
	seen.MustHave(t, "appended", "unknown", "outside the window", "late", "deaths", "out of order", "restarts")
}

// followedLog is what a stage's actors share. One actor runs at a time.
type followedLog struct {
	t       testing.TB
	table   string
	network policy.Transporter
	seen    *harness.Log

	cursor string
	counts map[string]int
	newest time.Time
}

func concurrentStage(t testing.TB, s *storagetest.Service, seen *harness.Log) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	f := &followedLog{t: t, table: openLog(t, s, nil).Table().Name(), network: s.ClientOptions.Transport, seen: seen, counts: map[string]int{}}
	stage := explore.Stage{Actors: []explore.Actor{f.follow}}
	for i := range 3 {
		stage.Actors = append(stage.Actors, f.writer(i, rng.Uint64()))
	}
	stage.Check = f.check
	return stage
}

func (f *followedLog) open(s *storagetest.Service, skew time.Duration) *logtail.Log[claim] {
	return openTable(f.t, s, f.table, schemaAt(func() time.Time { return time.Now().Add(skew) }))
}

func (f *followedLog) writer(id int, seed uint64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, uint64(id)))
		injector := storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
			switch n := rng.Float64(); {
			case n < 0.05:
				f.seen.Add("deaths", 1)
				return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
			case n < 0.15:
				f.seen.Add("late", 1)
				return harness.LateRequest{Network: f.network, After: time.Duration(rng.Int64N(int64(lateness)))}
			case n < 0.3:
				faults := storagetest.FaultsOf(call.Kind)
				return faults[rng.IntN(len(faults))]
			}
			return nil
		})
		faulty, process := s.Faulty(injector)
		behind := time.Duration(rng.Int64N(int64(2*skew))) - skew
		l := f.open(faulty, behind)
		for i := range 4 {
			saved := claim{Employee: "223", Amount: id*100 + i}
			if err := l.Stamp(&saved); err != nil {
				return err
			}
			for {
				alive, cancel := process.Context(ctx)
				again := saved
				err := l.Append(alive, &again)
				cancel()
				if process.Dead() {
					faulty, process = s.Faulty(injector)
					l = f.open(faulty, behind)
					continue
				}
				if errors.Is(err, logtail.ErrOutsideWindow) {
					f.seen.Add("outside the window", 1)
					break
				}
				if err == nil {
					f.seen.Add("appended", 1)
					break
				}
				if errors.Is(err, tables.ErrUnknownOutcome) {
					f.seen.Add("unknown", 1)
				}
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Second))))
		}
		return nil
	}
}

// follow is a follower that dies now and then.
func (f *followedLog) follow(ctx context.Context, s *storagetest.Service) error {
	for range 12 {
		f.seen.Add("restarts", 1)
		if err := f.poll(ctx, f.open(s, 0), 3); err != nil {
			return err
		}
		time.Sleep(4 * time.Second)
	}
	return nil
}

// poll follows from the cursor, in one process for a while; most is how many entries it lives for.
func (f *followedLog) poll(ctx context.Context, l *logtail.Log[claim], most int) error {
	follower, err := l.Follower("223", f.cursor, nil)
	if err != nil {
		return err
	}
	for range 3 {
		for v, err := range follower.Poll(ctx) {
			if err != nil {
				return err
			}
			if v.LoggedAt.Before(f.newest) {
				f.seen.Add("out of order", 1)
			}
			f.newest = v.LoggedAt
			f.counts[v.LogID]++ // with the cursor, as one
			f.cursor = follower.Cursor()
			if most--; most == 0 {
				return nil
			}
		}
		time.Sleep(time.Second)
	}
	return nil
}

func (f *followedLog) check(ctx context.Context, s *storagetest.Service, errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return err
	}
	time.Sleep(2 * time.Minute) // what is late has arrived
	l := f.open(s, 0)
	if err := f.poll(ctx, l, 1000); err != nil {
		return err
	}
	stored := 0
	for v, err := range l.Between(ctx, "223", time.Time{}, time.Time{}) {
		if err != nil {
			return err
		}
		if stored++; f.counts[v.LogID] != 1 {
			return fmt.Errorf("entry %d of %v was yielded %d times", v.Amount, v.LoggedAt, f.counts[v.LogID])
		}
	}
	if stored != len(f.counts) {
		return fmt.Errorf("%d entries are stored, and %d were yielded", stored, len(f.counts))
	}
	return nil
}
