package denormalization_test

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
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// game is what the writers of a schedule do.
type game int

const (
	apart    game = iota // each employee has a department of his own, takes it up, changes and leaves
	handover             // two employees take over one department from one another, in both orders
	rivalry              // both take what they like
)

// rivals is the world of one schedule.
type rivals struct {
	world
	game    game
	changes int     // of each writer
	trouble float64 // share of the calls that meet a fault
	waive   lease.Rules
	network policy.Transporter // past the schedule
	log     *rivalLog
	budgets map[string]*attempts
}

// rivalLog is what happened in all the schedules of a test.
type rivalLog struct {
	mu                           sync.Mutex
	applied, refused, unknown    int
	deaths, faults, late, unheld int
	handled, failed, lost        int64
}

func (l *rivalLog) add(f func(l *rivalLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

func (l *rivalLog) String() string {
	return fmt.Sprintf("changes: %d applied, %d refused, %d unknown; calls: %d faults, %d late, %d deaths; workers: %d handled, %d failed, %d leases lost; %d departments without the manager who names them, all in rivalry",
		l.applied, l.refused, l.unknown, l.faults, l.late, l.deaths, l.handled, l.failed, l.lost, l.unheld)
}

// scheduleSeed is the seed of a stage: in a schedule, crypto/rand is seeded.
func scheduleSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// rivalPauses are mostly none, sometimes a time in which holders renew, and sometimes one in which messages appear again.
func rivalPauses() []time.Duration {
	return []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond, 3 * time.Second, 4 * time.Second, visibility + 2*time.Second}
}

// site is where a department is: with New, one is in its managers' partition and one is not.
func (r *rivals) site(name string) string {
	if name == "B" && r.placement != inPartition {
		return "Marketing"
	}
	return "Sales"
}

func newRivals(waive lease.Rules, log *rivalLog) *rivals {
	rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 1))
	return &rivals{game: game(rng.IntN(3)), changes: 3, trouble: []float64{0, 0.05, 0.15}[rng.IntN(3)], waive: waive, log: log,
		world: world{placement: placements()[rng.IntN(len(placements()))]}}
}

// stage makes the world and its actors.
func (r *rivals) stage(t testing.TB, s *storagetest.Service) storagetest.Stage {
	rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 0))
	r.world = *newWorld(t, s, r.placement)
	r.network, r.budgets = s.ClientOptions.Transport, map[string]*attempts{}
	p := must[*process](t)(r.start(s))
	for i, name := range []string{"A", "B"} {
		r.budgets[name] = &attempts{}
		check(t, p.departments.Insert(t.Context(), &department{Site: r.site(name), Name: name}))
		check(t, p.employees.Insert(t.Context(), &employee{Site: "Sales", ID: i + 1, Name: "first"}))
	}
	seeds := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()}
	stage := storagetest.Stage{Actors: []storagetest.Actor{r.actor(seeds[0], r.spend)}}
	switch r.game {
	case apart:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.change(1, "A")), r.actor(seeds[2], r.change(2, "B")))
	case handover:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.handOver()))
	case rivalry:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.change(1, "A", "B")), r.actor(seeds[2], r.change(2, "A", "B")))
	}
	for range 2 {
		stage.Workers = append(stage.Workers, r.worker(rng.Uint64()))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		return errors.Join(append(errs, r.check(ctx, s))...)
	}
	return stage
}

// injector decides which calls of a process meet what.
func (r *rivals) injector(seed, process uint64) storagetest.Injector {
	rng := mathrand.New(mathrand.NewPCG(seed, process))
	faults, deaths := storagetest.SweepFaults(), r.trouble/5
	return storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < deaths:
			r.log.add(func(l *rivalLog) { l.deaths++ })
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < deaths+r.trouble/3:
			r.log.add(func(l *rivalLog) { l.late++ })
			return late{r.network, lease.Margin(visibility) * 9 / 10}
		case n < deaths+r.trouble:
			r.log.add(func(l *rivalLog) { l.faults++ })
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

// actor does a number of changes. A process that dies has a successor.
func (r *rivals) actor(seed uint64, do func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error) storagetest.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		for process, done := uint64(1), 0; done < r.changes; process++ {
			faulty, faults := s.Faulty(r.injector(seed, process))
			p, err := r.start(faulty)
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(lease.Waive(ctx, r.waive))
			for done < r.changes && !faults.Dead() {
				if err := do(alive, p, rng, done); err == nil || r.game != handover {
					done++ // a handover goes on when a step is surely done
				}
			}
			cancel()
		}
		return nil
	}
}

func (r *rivals) told(err error) error {
	r.log.add(func(l *rivalLog) {
		switch {
		case err == nil:
			l.applied++
		case outcomeUnknown(err):
			l.unknown++
		default:
			l.refused++
		}
	})
	return err
}

// spend changes the departments' budgets.
func (r *rivals) spend(ctx context.Context, p *process, _ *mathrand.Rand, n int) error {
	name := []string{"A", "B"}[n%2]
	_, err := p.departments.Update(ctx, departmentKey(r.site(name), name), func(d *department) error { d.Budget++; return nil })
	r.budgets[name].add(err)
	return r.told(err)
}

// change makes a change of one employee, who may manage some of the departments.
func (r *rivals) change(id int, names ...string) func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		e := &employee{Site: "Sales", ID: id, Name: fmt.Sprintf("e%d.%d", id, n), Email: fmt.Sprintf("e%d.%d", id, n%2)}
		if i := rng.IntN(len(names) + 1); i < len(names) {
			e.ManagesSite, e.Manages = r.site(names[i]), names[i]
		}
		switch rng.IntN(5) {
		case 0:
			return r.told(p.employees.DeleteUnconditional(ctx, e.key()))
		case 1:
			return r.told(p.employees.Upsert(ctx, e))
		case 2:
			return r.told(p.employees.Insert(ctx, e))
		default:
			_, err := p.employees.Update(ctx, e.key(), func(old *employee) error {
				old.Name, old.Email, old.ManagesSite, old.Manages = e.Name, e.Email, e.ManagesSite, e.Manages
				return nil
			})
			return r.told(err)
		}
	}
}

// handOver has one employee start and the other one stop managing department B, in either order. Each step is repeated
// until it is surely done.
func (r *rivals) handOver() func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	step, newFirst, inited := 0, false, false
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		if !inited {
			newFirst, inited = rng.IntN(2) == 0, true
		}
		for ; step < 2; step++ {
			starts := (step == 0) == newFirst
			id, name := 1+n%2, "B"
			if !starts {
				id, name = 2-n%2, ""
			}
			_, err := p.employees.Update(ctx, employeeKey("Sales", id), func(e *employee) error {
				e.Name, e.ManagesSite, e.Manages = fmt.Sprintf("e%d.%d", id, n), r.site("B"), name
				return nil
			})
			if r.told(err) != nil {
				return err
			}
		}
		step, inited = 0, false
		return nil
	}
}

// worker carries out what writers left. A process that dies has a successor.
func (r *rivals) worker(seed uint64) storagetest.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		for process := uint64(1); ctx.Err() == nil; process++ {
			faulty, faults := s.Faulty(r.injector(seed, process))
			p, err := r.start(faulty)
			if err != nil {
				return err
			}
			worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 2, MaxDequeues: 1000,
				RetryDelay: func(int) time.Duration { return time.Second }})
			if err != nil {
				return err
			}
			alive, cancel := faults.Context(lease.Waive(ctx, r.waive))
			for alive.Err() == nil {
				_, _ = worker.Drain(alive) // a poll that failed is repeated
				select {
				case <-time.After(time.Second):
				case <-alive.Done():
				}
			}
			cancel()
			r.log.add(func(l *rivalLog) {
				st := worker.Stats()
				l.handled, l.failed, l.lost = l.handled+st.Handled, l.failed+st.Failed, l.lost+st.LeasesLost
			})
		}
		return nil
	}
}

// check lets workers carry out what is left, and holds the departments against the employees.
func (r *rivals) check(ctx context.Context, s *storagetest.Service) error {
	time.Sleep(visibility) // what is late has arrived
	if err := r.drain(ctx, s); err != nil {
		return err
	}
	found, err := r.read(ctx, s)
	if err != nil {
		return err
	}
	for name, said := range r.budgets {
		if n := found.departments[departmentKey(r.site(name), name)].Budget; n < said.least || n > said.most {
			return fmt.Errorf("department %s has a budget of %d after %d to %d changes", name, n, said.least, said.most)
		}
	}
	if r.game != rivalry {
		return found.agree()
	}
	return r.checkRivalry(ctx, s, found)
}

// checkRivalry: a department has the details, as they are, of one who names it. It may have none when another one who did has
// stopped; then it has those of the next who is written.
func (r *rivals) checkRivalry(ctx context.Context, s *storagetest.Service, found *state) error {
	for range 2 {
		unheld := 0
		for key, d := range found.departments {
			e := found.employees[employeeKey(d.ManagerSite, d.ManagerID)]
			if d.ManagerID == 0 {
				if d.ManagerEmail != "" || d.ManagerName != "" {
					return fmt.Errorf("department %s is half cleared", d.Name)
				}
				for _, e := range found.employees {
					if departmentKey(e.ManagesSite, e.Manages) == key {
						unheld++
					}
				}
				continue
			}
			if e == nil || departmentKey(e.ManagesSite, e.Manages) != key || e.Name != d.ManagerName || e.Email != d.ManagerEmail {
				return fmt.Errorf("department %s has %d %q %q, and the employee is %+v", d.Name, d.ManagerID, d.ManagerName, d.ManagerEmail, e)
			}
		}
		r.log.add(func(l *rivalLog) { l.unheld += unheld })
		if unheld == 0 {
			return nil
		}
		p, err := r.start(s)
		if err != nil {
			return err
		}
		for _, e := range found.employees {
			if err := p.employees.Upsert(ctx, &employee{Site: e.Site, ID: e.ID, Name: e.Name, Email: e.Email, ManagesSite: e.ManagesSite, Manages: e.Manages}); err != nil {
				return err
			}
		}
		if err := r.drain(ctx, s); err != nil {
			return err
		}
		if found, err = r.read(ctx, s); err != nil {
			return err
		}
	}
	return errors.New("writing the employees again gives them no department")
}
