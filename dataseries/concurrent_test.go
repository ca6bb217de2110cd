package dataseries_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTenWriters: ten writers add to one slot at the same time, while answers are lost. What is named counts once; what is
// not counts as often as its callers were told, or could not be told.
func TestTenWriters(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) { tenWriters(t, w, s, 1) })
}

// TestTenWritersInVirtualTime is the same for longer, on a network that takes its time.
func TestTenWritersInVirtualTime(t *testing.T) {
	each := 15
	if testing.Short() || race.Enabled {
		each = 4
	}
	for _, p := range places {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network := storagetest.Simulator(t, nil), &slow{rng: mathrand.New(mathrand.NewPCG(1, 2))}
				far := s.WithTransport(func(inner policy.Transporter) policy.Transporter { network.inner = inner; return network })
				tenWriters(t, (&world{place: p}).open(t, s), far, each)
			})
		})
	}
}

func tenWriters(t *testing.T, w *world, s *storagetest.Service, each int) {
	const writers = 10
	ctx := t.Context()
	w.attempts = 60
	var running sync.WaitGroup
	var said told
	broken := make([]error, writers)
	for id := range writers {
		running.Go(func() {
			lost := storagetest.If(storagetest.Call.Writes, storagetest.Randomly(0.2, uint64(id), storagetest.LostAnswer))
			faulty, _ := s.WithRetries(3).Faulty(lost) // repeated almost at once
			c, err := w.start(faulty)
			for i := 0; i < each && err == nil; i++ {
				added := c.Add(ctx, today, 9, 1)
				if said.add(added); !errors.Is(added, tables.ErrUnknownOutcome) {
					err = added
				}
				_, done := c.AddOnce(ctx, today, 8, 1, fmt.Sprint(id, "-", i))
				for errors.Is(done, tables.ErrUnknownOutcome) {
					_, done = c.AddOnce(ctx, today, 8, 1, fmt.Sprint(id, "-", i))
				}
				err = errors.Join(err, done)
			}
			broken[id] = err
		})
	}
	running.Wait()
	if err := errors.Join(broken...); err != nil {
		t.Fatal(err)
	}
	once, err := held(ctx, w, s, today, 8)
	if once != int64(writers*each) || err != nil {
		t.Errorf("AddOnce: %d of %d, %v", once, writers*each, err)
	}
	sum, err := held(ctx, w, s, today, 9)
	if err = errors.Join(err, said.allows(sum)); err != nil {
		t.Error(err)
	}
	t.Logf("AddOnce: %d of %d; Add: sum %d, %d applied, %d unknown", once, writers*each, sum, said.applied, said.unsure)
}

// scheduleLog is what happened in all schedules of a test.
type scheduleLog struct {
	mu                                     sync.Mutex
	applied, unknown, refused              int
	deaths, faults, late, again, conflicts int
}

func (l *scheduleLog) add(f func(l *scheduleLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// scheduleSeed is the seed of a stage: in a schedule, crypto/rand is seeded.
func scheduleSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// scheduleWorld is one schedule: writers that add to one slot, by name or without, whose calls fail, arrive late, or are their
// last.
type scheduleWorld struct {
	world
	trouble float64
	network policy.Transporter // past the schedule
	log     *scheduleLog
	said    told // of the additions without a name
}

const writerChanges = 3

func (r *scheduleWorld) injector(rng *mathrand.Rand) storagetest.Injector {
	return storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < r.trouble/5:
			r.log.add(func(l *scheduleLog) { l.deaths++ })
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < r.trouble/2:
			r.log.add(func(l *scheduleLog) { l.late++ })
			return harness.LateRequest{Network: r.network, After: time.Duration(rng.IntN(5000)) * time.Millisecond}
		case n < r.trouble:
			r.log.add(func(l *scheduleLog) { l.faults++ })
			faults := storagetest.FaultsOf(call.Kind)
			return faults[rng.IntN(len(faults))]
		}
		return nil
	})
}

// writer adds; a process that dies has a successor, who repeats what has a name.
func (r *scheduleWorld) writer(id int, seed uint64, named bool) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		for done := 0; done < writerChanges; {
			faulty, faults := s.Faulty(r.injector(rng))
			c, err := r.start(faulty)
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(ctx)
			for done < writerChanges && !faults.Dead() {
				if named {
					counted, err := c.AddOnce(alive, today, 8, 1, fmt.Sprint(id, "-", done))
					if r.note(err); err == nil {
						done++
						if !counted {
							r.log.add(func(l *scheduleLog) { l.again++ })
						}
					}
				} else {
					err := c.Add(alive, today, 9, 1)
					if faults.Dead() && err != nil {
						err = storagetest.ErrDied // nobody hears it
					}
					r.note(err)
					r.said.add(err)
					done++
				}
			}
			cancel()
		}
		return nil
	}
}

func (r *scheduleWorld) note(err error) {
	r.log.add(func(l *scheduleLog) {
		switch {
		case err == nil:
			l.applied++
		case errors.Is(err, tables.ErrUnknownOutcome):
			l.unknown++
		case errors.Is(err, tables.ErrConflict):
			l.conflicts++
		default:
			l.refused++
		}
	})
}

// TestSchedule: concurrent writers in many orders of their calls, which fail, arrive late or are their process's last. In the end every
// operation with a name has counted once, and of the others none that was refused, and all that were confirmed.
func TestSchedule(t *testing.T) {
	seeds := 300
	if testing.Short() || race.Enabled {
		seeds = 60
	}
	if race.Enabled {
		seeds = 40
	}
	log := &scheduleLog{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Pauses: []time.Duration{time.Millisecond, time.Second},
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 1))
			r := &scheduleWorld{world: world{place: places[rng.IntN(len(places))], attempts: 10}, trouble: []float64{0, 0.1, 0.3}[rng.IntN(3)], log: log}
			r.network = s.ClientOptions.Transport
			r.open(t, s)
			var stage explore.Stage
			const named = 3
			for id := range 2 * named {
				stage.Actors = append(stage.Actors, r.writer(id, rng.Uint64(), id < named))
			}
			stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
				time.Sleep(10 * time.Second) // what is late has arrived
				once, err := held(ctx, &r.world, s, today, 8)
				if once != named*writerChanges {
					err = errors.Join(err, fmt.Errorf("AddOnce: %d of %d", once, named*writerChanges))
				}
				sum, readErr := held(ctx, &r.world, s, today, 9)
				return errors.Join(err, readErr, r.said.allows(sum), errors.Join(errs...))
			}
			return stage
		}})
	t.Logf("additions: %d applied, %d of them before, %d unknown, %d conflicts, %d refused; calls: %d deaths, %d faults, %d late",
		log.applied, log.again, log.unknown, log.conflicts, log.refused, log.deaths, log.faults, log.late)
	for what, n := range map[string]int{"unknown outcomes": log.unknown, "deaths": log.deaths, "late requests": log.late, "repetitions": log.again} {
		if n == 0 {
			t.Errorf("no %s: the schedules show nothing of them", what)
		}
	}
}

// TestLostRaces: who loses too often is told so, and nothing was added.
func TestLostRaces(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx := t.Context()
		concurrent := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		w.attempts = 3
		writes := storagetest.If(storagetest.Call.Writes, storagetest.Always(storagetest.Before("a concurrent writer", func() {
			if err := concurrent.Add(ctx, today, 9, 1); err != nil {
				t.Error(err)
			}
		})))
		faulty, _ := s.Faulty(writes)
		c := assert.Must[*dataseries.Counter[int64]](t)(w.start(faulty))
		_, once := c.AddOnce(ctx, today, 9, 100, "once")
		for _, err := range []error{c.Add(ctx, today, 9, 100), once} {
			if !errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome) {
				t.Errorf("error is %v", err)
			}
		}
		w.attempts = 1
		_, first := assert.Must[*dataseries.Counter[int64]](t)(w.start(faulty)).AddOnce(ctx, tables.Key{Partition: "p"}, 9, 100, "once")
		if first != nil {
			t.Errorf("without a concurrent writer: %v", first)
		}
		if n, err := held(ctx, w, s, today, 9); n != 7 || err != nil {
			t.Errorf("the slot holds %d, %v", n, err)
		}
	})
}
