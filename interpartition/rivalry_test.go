package interpartition_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// rivalry is the world of one schedule: writers that move few entities between few keys, which they take from one another,
// and workers. Every process applies its effects at once or leaves them to the workers, as the seed says.
type rivalry struct {
	world
	entities int
	changes  int     // of each writer
	trouble  float64 // share of the calls that meet a fault
	deaths   float64 // share of the calls that a process dies of
	waive    lease.Rules
	network  policy.Transporter // past the schedule
	log      *rivalryLog

	mu      sync.Mutex
	refused map[string]bool // names whose writer was told that they were not written
}

// rivalryLog is what happened in all the schedules of a test.
type rivalryLog struct {
	mu                                sync.Mutex
	applied, refused, unknown         int
	deaths, faults, late              int
	handled, failed, lost, duplicates int64
}

func (l *rivalryLog) add(f func(l *rivalryLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

func (l *rivalryLog) String() string {
	return fmt.Sprintf("changes: %d applied, %d refused, %d unknown; calls: %d faults, %d late, %d deaths; workers: %d handled, %d failed, %d leases lost; %d duplicates in the end",
		l.applied, l.refused, l.unknown, l.faults, l.late, l.deaths, l.handled, l.failed, l.lost, l.duplicates)
}

// scheduleSeed is the seed of a stage: in a schedule, crypto/rand is seeded.
func scheduleSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

var (
	rivalEmails = []string{"", "a", "b", "c"}
	rivalBadges = []string{"", "x", "y"}
)

// stage makes the world and its actors.
func (r *rivalry) stage(t testing.TB, s *storagetest.Service) storagetest.Stage {
	rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 0))
	r.unique = rng.IntN(2) == 0
	r.world = *newWorld(t, s, r.kind)
	r.network, r.refused = s.ClientOptions.Transport, map[string]bool{}
	p := must[*process](t)(r.start(s))
	for id := range r.entities {
		if rng.IntN(4) == 0 {
			continue
		}
		e := &employee{Department: "Sales", ID: id, Name: "first", Email: rivalEmails[1+id], Badge: rivalBadges[id%len(rivalBadges)]}
		if err := p.repo.Insert(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var stage storagetest.Stage
	for id := range 3 {
		stage.Actors = append(stage.Actors, r.writer(id, rng.Uint64()))
	}
	for id := range 2 {
		stage.Workers = append(stage.Workers, r.worker(id == 0, rng.Uint64()))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return r.check(ctx, s)
	}
	return stage
}

// injector decides which calls of a process meet what.
func (r *rivalry) injector(seed, process uint64) storagetest.Injector {
	rng := mathrand.New(mathrand.NewPCG(seed, process))
	faults := storagetest.SweepFaults()
	return storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < r.deaths:
			r.log.add(func(l *rivalryLog) { l.deaths++ })
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < r.deaths+r.trouble/3:
			r.log.add(func(l *rivalryLog) { l.late++ })
			return late{r.network, lease.Margin(visibility) * 9 / 10}
		case n < r.deaths+r.trouble:
			r.log.add(func(l *rivalryLog) { l.faults++ })
			return faults[rng.IntN(len(faults))]
		}
		return nil
	})
}

// late is a fault: the connection is reset, and the request arrives all the same, later.
type late struct {
	network policy.Transporter
	after   time.Duration
}

func (l late) String() string { return "Late" }

func (l late) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	// The SDK may send the same request again meanwhile, so this one needs a body of its own.
	again := req.Clone(context.WithoutCancel(req.Context()))
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body.Close()
		again.Body = io.NopCloser(bytes.NewReader(body))
	}
	go func() {
		time.Sleep(l.after)
		if resp, err := l.network.Do(again); err == nil {
			resp.Body.Close()
		}
	}()
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// writer changes entities. A process that dies has a successor.
func (r *rivalry) writer(id int, seed uint64) storagetest.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		for process, done := uint64(1), 0; done < r.changes; process++ {
			faulty, faults := s.Faulty(r.injector(seed, process))
			own := r.world
			own.async = rng.IntN(2) == 0
			p, err := own.start(faulty)
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(lease.Waive(ctx, r.waive))
			for ; done < r.changes && !faults.Dead(); done++ {
				r.change(alive, p, rng, fmt.Sprintf("w%d.%d", id, done))
			}
			cancel()
		}
		return nil
	}
}

// change makes one change, or two that hand a key over from one entity to another.
func (r *rivalry) change(ctx context.Context, p *process, rng *mathrand.Rand, name string) {
	e := &employee{Department: "Sales", ID: rng.IntN(r.entities), Name: name,
		Email: rivalEmails[rng.IntN(len(rivalEmails))], Badge: rivalBadges[rng.IntN(len(rivalBadges))]}
	key := keyOf(e)
	edit := func(old *employee) error {
		old.Name, old.Email, old.Badge = e.Name, e.Email, e.Badge
		return nil
	}
	var err error
	switch rng.IntN(9) {
	case 0:
		err = p.repo.Insert(ctx, e)
	case 1:
		err = p.repo.Upsert(ctx, e)
	case 2:
		err = p.repo.DeleteUnconditional(ctx, key)
	case 3:
		_, err = p.repo.Update(ctx, key, edit)
	case 4:
		err = r.handOver(ctx, p, e, rng)
	case 5:
		err = readAnd(ctx, p, key, edit, p.repo.Delete)
	case 6:
		err = readAnd(ctx, p, key, edit, func(ctx context.Context, e *employee) error { return p.repo.Merge(ctx, e, "Name", "Email") })
	case 7:
		var found *employee
		if found, err = p.email.Get(ctx, "Sales", "a"); err == nil {
			edit(found)
			err = p.repo.Replace(ctx, found)
		}
	default:
		err = readAnd(ctx, p, key, edit, p.repo.Replace)
	}
	r.told(name, err)
}

func readAnd(ctx context.Context, p *process, key patterns.Key, edit func(*employee) error, write func(context.Context, *employee) error) error {
	e, err := p.repo.Get(ctx, key)
	if err != nil {
		return err
	}
	edit(e)
	return write(ctx, e)
}

// handOver takes another entity's email for e.
func (r *rivalry) handOver(ctx context.Context, p *process, e *employee, rng *mathrand.Rand) error {
	giver, err := p.repo.Get(ctx, patterns.Key{Partition: "Sales", Row: keyOf(&employee{ID: (e.ID + 1) % r.entities}).Row})
	if err != nil {
		return err
	}
	e.Email = giver.Email
	giver.Name, giver.Email = e.Name+"-giver", rivalEmails[rng.IntN(len(rivalEmails))]
	err = p.repo.Replace(ctx, giver)
	r.told(giver.Name, err)
	if err != nil {
		return err
	}
	return p.repo.Upsert(ctx, e)
}

// told notes what a writer was told of a change.
func (r *rivalry) told(name string, err error) {
	r.log.add(func(l *rivalryLog) {
		switch {
		case err == nil:
			l.applied++
		case outcomeUnknown(err):
			l.unknown++
		default:
			l.refused++
		}
	})
	if err != nil && !outcomeUnknown(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused[name] = true
	}
}

// worker carries out what writers left, by Run or by Drain. A process that dies has a successor.
func (r *rivalry) worker(runs bool, seed uint64) storagetest.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		for process := uint64(1); ctx.Err() == nil; process++ {
			faulty, faults := s.Faulty(r.injector(seed, process))
			p, err := r.start(faulty)
			if err != nil {
				return err
			}
			// One message at a time: handlers that draw random numbers side by side would not do so in the same order again.
			worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 1000,
				MinPoll: time.Second, MaxPoll: 2 * time.Second, RetryDelay: func(int) time.Duration { return time.Second }})
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(lease.Waive(ctx, r.waive))
			for alive.Err() == nil {
				if runs {
					_ = worker.Run(alive)
					continue
				}
				_, _ = worker.Drain(alive) // a poll that failed is repeated
				select {
				case <-time.After(time.Second):
				case <-alive.Done():
				}
			}
			cancel()
			r.log.add(func(l *rivalryLog) {
				st := worker.Stats()
				l.handled, l.failed, l.lost = l.handled+st.Handled, l.failed+st.Failed, l.lost+st.LeasesLost
			})
		}
		return nil
	}
}
