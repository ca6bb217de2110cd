package largeentities_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	deadline   = 20 * time.Second
	visibility = 10 * time.Second
)

// scheduleWorld is the world of one schedule: writers, a reader, a sweeper that sweeps all the time, and maintenance runs.
type scheduleWorld struct {
	world
	log  *scheduleLog
	kept *harness.Log // of the maintenance runs
}

// scheduleLog is what happened in all the schedules of a test.
type scheduleLog struct {
	mu                                             sync.Mutex
	applied, refused, unknown, deaths, reads, gone int
	swept, young                                   int
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

func (r *scheduleWorld) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 0))
	r.open(t, s)
	stage := explore.Stage{
		Actors: []explore.Actor{r.writer(0, rng.Uint64()), r.writer(1, rng.Uint64()), r.reader(rng.Uint64()), r.sweeper(), r.keeper(s, rng.Uint64())},
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := r.sweep(ctx, s); err != nil {
			return err
		}
		if _, err := r.check(ctx, s); err != nil {
			return err
		}
		return nil
	}
	return stage
}

func (r *scheduleWorld) injector(seed, process uint64) storagetest.Injector {
	rng := mathrand.New(mathrand.NewPCG(seed, process))
	return storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < 0.02:
			r.log.add(func(l *scheduleLog) { l.deaths++ })
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < 0.1:
			faults := storagetest.FaultsOf(call.Kind)
			return faults[rng.IntN(len(faults))]
		}
		return nil
	})
}

// writer changes employees. A process that dies has a successor.
func (r *scheduleWorld) writer(id int, seed uint64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		for process, done := uint64(1), 0; done < 4; process++ {
			faulty, faults := s.Faulty(r.injector(seed, process))
			p, err := r.start(faulty)
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(ctx)
			for ; done < 4 && !faults.Dead(); done++ {
				err := r.change(alive, p, rng, string(rune('a'+id*4+done)))
				r.log.add(func(l *scheduleLog) {
					switch {
					case err == nil:
						l.applied++
					case harness.OutcomeUnknown(err):
						l.unknown++
					default:
						l.refused++
					}
				})
			}
			cancel()
		}
		return nil
	}
}

func (r *scheduleWorld) change(ctx context.Context, p *process, rng *mathrand.Rand, letter string) error {
	e := with(rng.IntN(2))
	values := [][]byte{nil, []byte(letter), large(letter)}
	e.Photo, e.CV = values[rng.IntN(3)], string(values[rng.IntN(3)])
	if rng.IntN(2) == 0 {
		e.Video = largeentities.NewStreamBytes(large(letter), nil)
	}
	switch rng.IntN(5) {
	case 0:
		return p.repo.Insert(ctx, e)
	case 1:
		return p.repo.Upsert(ctx, e)
	case 2:
		return p.repo.DeleteUnconditional(ctx, keyOf(e))
	case 3:
		old, err := p.repo.Get(ctx, keyOf(e))
		if err != nil {
			return err
		}
		old.Note = letter // keeps what it has, but for one
		old.Photo = large(letter)
		return p.repo.Merge(ctx, old, "Note", "Photo")
	}
	_, err := p.repo.Update(ctx, keyOf(e), func(old *employee) error {
		old.Photo, old.Note = e.Photo, letter
		return nil
	})
	return err
}

// reader reads all the time, and never meets anything but what was written.
func (r *scheduleWorld) reader(seed uint64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 2))
		p, err := r.start(s)
		if err != nil {
			return err
		}
		for range 12 {
			e, err := p.repo.Get(ctx, at(rng.IntN(2)))
			if errors.Is(err, tables.ErrNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("a reader: %w", err)
			}
			r.log.add(func(l *scheduleLog) { l.reads++ })
			stream, err := e.Video.Open(ctx)
			if err == nil {
				_, err = io.Copy(io.Discard, stream)
				stream.Close()
			}
			if errors.Is(err, tables.ErrConflict) {
				r.log.add(func(l *scheduleLog) { l.gone++ })
			} else if err != nil {
				return fmt.Errorf("a reader of a stream: %w", err)
			}
		}
		return nil
	}
}

// keeper verifies, repairs and rebuilds.
func (r *scheduleWorld) keeper(s *storagetest.Service, seed uint64) explore.Actor {
	trouble := &harness.Trouble{Faults: 0.08, Deaths: 0.02, Visibility: visibility, Network: s.ClientOptions.Transport, Log: r.kept}
	return harness.Keeper(trouble, seed, 2, r.start, harness.RepositoryJobs(func(p *process) *patterns.Repository[employee] { return p.repo }, time.Second)...)
}

// sweeper sweeps with the least grace that is allowed.
func (r *scheduleWorld) sweeper() explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		p, err := r.start(s)
		if err != nil {
			return err
		}
		for range 3 {
			for _, x := range p.properties() {
				report, err := x.Sweep(ctx, &largeentities.SweepOptions{Grace: 2 * deadline})
				if err != nil {
					return err
				}
				r.log.add(func(l *scheduleLog) { l.swept, l.young = l.swept+report.Deleted, l.young+report.Young })
			}
			time.Sleep(deadline / 2)
		}
		return nil
	}
}

// TestSchedule: writers, readers and a sweeper in as many orders as there are seeds, with faults, deaths, and stalls that
// are longer than a blob's deadline. No reader meets a pointer that leads nowhere, and in the end rows
// and blobs agree.
func TestSchedule(t *testing.T) {
	log, kept, seeds := &scheduleLog{}, &harness.Log{}, 150
	if harness.Shortened() {
		seeds = 40
	}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Steps: 20_000,
		Pauses: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, 4 * time.Second, visibility + 2*time.Second, deadline + time.Second, 2*deadline + time.Second},
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			r := &scheduleWorld{world: world{attempts: 40, logger: slog.New(slog.DiscardHandler), options: largeentities.Options{Deadline: deadline}}, log: log, kept: kept}
			return r.stage(t, s)
		}})
	t.Logf("%d applied, %d refused, %d unknown, %d deaths, %d reads, %d streams replaced, %d blobs swept, %d young", log.applied, log.refused, log.unknown, log.deaths, log.reads, log.gone, log.swept, log.young)
	t.Log(kept)
	kept.MustHave(t, "runs of Verify", "runs of Repair", "runs of Rebuild")
	for what, n := range map[string]int{"unknown outcomes": log.unknown, "deaths": log.deaths, "reads": log.reads, "swept blobs": log.swept, "young blobs": log.young} {
		if n == 0 {
			t.Errorf("no %s: the schedules show nothing of them", what)
		}
	}
}
