package harness

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// Trouble is what befalls the processes of a schedule.
type Trouble struct {
	Faults float64 // share of the calls that meet a fault; a third of them arrive late
	Deaths float64 // share of the calls that a process dies of
	// Visibility is how long a message is hidden: late requests arrive just before its holder's lease ends.
	Visibility time.Duration
	Waive      lease.Rules        // what nobody keeps to
	Network    policy.Transporter // past the schedule
	Log        *Log
}

// ScheduleSeed is the seed of a stage: in a schedule, crypto/rand is seeded.
func ScheduleSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Pauses are mostly none, sometimes a time in which holders renew, and sometimes one in which messages appear again.
func Pauses(visibility time.Duration) []time.Duration {
	return []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, 3 * time.Second, 4 * time.Second, visibility + 2*time.Second}
}

// injector decides which calls of a process meet what.
func (x *Trouble) injector(seed, process uint64) storagetest.Injector {
	rng := mathrand.New(mathrand.NewPCG(seed, process))
	return storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < x.Deaths:
			x.Log.Add(Deaths, 1)
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < x.Deaths+x.Faults/3:
			x.Log.Add(Late, 1)
			return LateRequest{Network: x.Network, After: lease.Margin(x.Visibility) * 9 / 10}
		case n < x.Deaths+x.Faults:
			x.Log.Add(Faults, 1)
			faults := storagetest.FaultsOf(call.Kind)
			return faults[rng.IntN(len(faults))]
		}
		return nil
	})
}

// Life is one process. It ends when there is nothing left to do, done, or when its calls say that it is dead.
type Life func(ctx context.Context, s *storagetest.Service, dead func() bool) (done bool, err error)

// lives are processes one after another: one that dies has a successor.
func (x *Trouble) lives(ctx context.Context, s *storagetest.Service, seed uint64, live Life) error {
	for process := uint64(1); ; process++ {
		faulty, faults := s.Faulty(x.injector(seed, process))
		alive, cancel := faults.Context(lease.Waive(ctx, x.Waive))
		done, err := live(alive, faulty, faults.Dead)
		cancel()
		if done || err != nil {
			return err
		}
	}
}

// Actor is somebody whose processes meet trouble.
func (x *Trouble) Actor(seed uint64, live Life) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error { return x.lives(ctx, s, seed, live) }
}

// Workers is how the workers of a schedule are.
type Workers struct {
	// Open opens the queue, for each process again.
	Open func(*storagetest.Service) (*eventual.Queue, error)
	// Concurrency is how many messages one handles at a time. Handlers that draw random numbers side by side do not do so in
	// the same order in each run of a seed.
	Concurrency int
	// Runs has it use Run in place of Drain.
	Runs bool
}

// Worker is one that carries out what writers left, whose processes meet trouble.
func (x *Trouble) Worker(seed uint64, w Workers) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		return x.lives(ctx, s, seed, func(alive context.Context, s *storagetest.Service, _ func() bool) (bool, error) {
			if ctx.Err() != nil {
				return true, nil
			}
			queue, err := w.Open(s)
			if err != nil {
				return false, err
			}
			worker, err := eventual.NewWorker(queue, nil, &eventual.WorkerOptions{Concurrency: w.Concurrency, MaxDequeues: 1000,
				MinPoll: time.Second, MaxPoll: 2 * time.Second, RetryDelay: oneSecond})
			if err != nil {
				return false, err
			}
			for alive.Err() == nil {
				if w.Runs {
					_ = worker.Run(alive)
					continue
				}
				_, _ = worker.Drain(alive) // a poll that failed is repeated
				select {
				case <-time.After(time.Second):
				case <-alive.Done():
				}
			}
			x.Log.worked(worker.Stats())
			return ctx.Err() != nil, nil
		})
	}
}

func oneSecond(int) time.Duration { return time.Second }
