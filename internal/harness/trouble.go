package harness

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// Trouble configures the faults that the processes of a schedule meet.
type Trouble struct {
	Faults float64 // share of the calls that meet a fault; for a third of the faults, the request arrives late
	Deaths float64 // share of the calls at which the process dies
	// Visibility is the visibility timeout of messages: a late request arrives just before its sender's lease ends.
	Visibility time.Duration
	Waive      lease.Rules        // these rules are not enforced
	Network    policy.Transporter // sends late requests past the schedule
	Log        *Log
}

// ScheduleSeed returns the seed of a stage: in a schedule, crypto/rand is seeded.
func ScheduleSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Pauses returns lengths of pauses: most are zero, some are long enough for holders to renew their leases,
// and some are long enough for messages to reappear.
func Pauses(visibility time.Duration) []time.Duration {
	return []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, 3 * time.Second, 4 * time.Second, visibility + 2*time.Second}
}

// injector decides which call of a process meets which fault.
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

// Life is one process. It returns done as true when no work remains. When dead reports that a fault has
// killed the process, it returns false.
type Life func(ctx context.Context, s *storagetest.Service, dead func() bool) (done bool, err error)

// lives runs processes one after another: when one dies, the next one starts.
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

// Actor returns an actor whose processes meet faults.
func (x *Trouble) Actor(seed uint64, live Life) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error { return x.lives(ctx, s, seed, live) }
}

// Workers configures the workers of a schedule.
type Workers struct {
	// Open opens the queue, once for each process.
	Open func(*storagetest.Service) (*eventual.Queue, error)
	// Concurrency is how many messages a worker handles at once. Concurrent handlers draw random numbers in a different
	// order in each run of a seed.
	Concurrency int
	// Runs makes the worker use Run instead of Drain.
	Runs bool
}

// Worker returns a worker that finishes the work of dead writers, and whose processes meet faults.
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
				_, _ = worker.Drain(alive) // ignore an error: a later call polls again
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

// patient is a worker that never poisons a message.
var patient = eventual.WorkerOptions{MaxDequeues: 1000, RetryDelay: oneSecond}

// DrainNow makes a worker handle the messages that are visible now. A message whose handling fails is hidden
// for a second.
func DrainNow(ctx context.Context, queue *eventual.Queue) error {
	return drainBy(ctx, queue, patient)
}

func drainBy(ctx context.Context, queue *eventual.Queue, options eventual.WorkerOptions) error {
	worker, err := eventual.NewWorker(queue, nil, &options)
	if err != nil {
		return err
	}
	_, err = worker.Drain(ctx)
	return err
}

// emptyRounds limits PoisonAll; each round takes a second.
const emptyRounds = 120

// PoisonAll makes a worker, which poisons a message after two failures, handle every message of a queue, including hidden ones, and returns when the
// queue is empty. Concurrent writers of one row hide their messages for a second after too many conflicts, so DrainNow would return too early.
func PoisonAll(ctx context.Context, s *storagetest.Service, queue *eventual.Queue) error {
	options := eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: func(int) time.Duration { return 0 }}
	for range emptyRounds {
		if err := drainBy(ctx, queue, options); err != nil {
			return err
		}
		if n, err := queue.Length(ctx); err != nil || n == 0 {
			return err
		}
		s.Wait(time.Second)
	}
	return errNotEmpty
}

// errNotEmpty means that messages are left: their handling fails again and again, or their holder renews
// them.
var errNotEmpty = errors.New("the queue still has messages after all rounds")

// drainRounds limits Drain: handling a message may enqueue others.
const drainRounds = 10

// Drain makes every message visible and makes workers handle them, each in a new process, until no message is
// left.
func Drain(ctx context.Context, s *storagetest.Service, visibility time.Duration, open func(*storagetest.Service) (*eventual.Queue, error)) error {
	for range drainRounds {
		s.Wait(visibility + time.Second)
		queue, err := open(s)
		if err != nil {
			return err
		}
		if err := DrainNow(ctx, queue); err != nil {
			return err
		}
		if n, err := queue.Length(ctx); err != nil || n == 0 {
			return err
		}
	}
	return errNotEmpty
}
