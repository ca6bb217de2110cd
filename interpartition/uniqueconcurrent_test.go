package interpartition_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTwiceThePut: a put of an intent that the SDK repeats leaves a second message, which nobody renews. It must not appear
// while the writer is still at work, or a worker would free the writer's reservation.
func TestTwiceThePut(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		w := newWorld(t, s, kind{unique: true})
		began := time.Time{}
		opts := s
		opts = opts.WithTransport(func(inner policy.Transporter) policy.Transporter { return inner })
		opts.ClientOptions.Retry = policy.RetryOptions{MaxRetries: 10, RetryDelay: time.Second, MaxRetryDelay: 3 * time.Second}
		faulty, faults := opts.Faulty(storagetest.First(
			storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.LostAnswer)),
			storagetest.If(func(c storagetest.Call) bool {
				// the entity's partition is busy for 16 s; the visibility timeout is 10 s
				if c.Kind != storagetest.InsertEntity || c.Resource != w.table {
					return false
				}
				if began.IsZero() {
					began = time.Now()
				}
				return time.Since(began) < 16*time.Second
			}, storagetest.Throttled),
		))
		writer := harness.Must[*process](t)(w.start(faulty))
		other := harness.Must[*process](t)(w.start(s))
		ctx, cancel := context.WithCancel(t.Context())
		worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(other.queue, nil, &eventual.WorkerOptions{MaxPoll: time.Second}))
		var done sync.WaitGroup
		done.Go(func() { worker.Run(ctx) })
		var errA, errB error
		done.Go(func() { errA = writer.repo.Insert(t.Context(), jones()) })
		time.Sleep(13 * time.Second)
		concurrent := &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: "jonesj@contoso.com", Badge: "B-2"}
		errB = other.repo.Insert(t.Context(), concurrent)
		time.Sleep(60 * time.Second)
		cancel()
		done.Wait()
		t.Log(faults.Calls())
		t.Logf("writer: %v, concurrent writer: %v", errA, errB)
		_, a := other.repo.Get(t.Context(), keyOf(jones()))
		_, b := other.repo.Get(t.Context(), keyOf(concurrent))
		if a == nil && b == nil {
			es, _ := other.queue.Poison().Peek(t.Context(), 32)
			for _, e := range es {
				t.Log("poison:", e.Reason)
			}
			t.Error("two employees have one unique email")
		}
	})
}

// TestRefusedInsertHidesNoCopy: an Insert that is refused with ErrExists leaves the entity that is there in its unique index.
func TestRefusedInsertHidesNoCopy(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		w := newWorld(t, s, kind{unique: true})
		p := harness.Must[*process](t)(w.start(s))
		if err := p.repo.Insert(t.Context(), jones()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		var seen error
		faulty, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == w.table && c.Kind == storagetest.InsertEntity }, storagetest.Always(storagetest.After("look", func() {
			_, seen = p.email.In("Sales").Get(context.Background(), compoundkey.String("jonesj@contoso.com"))
		}))))
		q := harness.Must[*process](t)(w.start(faulty))
		err := q.repo.Insert(t.Context(), jones())
		if !errors.Is(err, tables.ErrExists) {
			t.Fatal(err)
		}
		if seen != nil {
			t.Errorf("while an insert is refused (%v), the entity that is there cannot be found: %v", err, seen)
		}
		dying, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == w.table && c.Kind == storagetest.InsertEntity }, storagetest.DiesBefore))
		q = harness.Must[*process](t)(w.start(dying))
		_ = q.repo.Insert(t.Context(), jones())
		if _, err := p.email.In("Sales").Verified().Get(t.Context(), compoundkey.String("jonesj@contoso.com")); err != nil {
			t.Errorf("after a crash: %v", err)
		}
	})
}

// TestReservationIsNotTakenOver: a second change of the same entity, which fails, does not free the key under the first one,
// which is still on its way. There is no fault and no crash.
func TestReservationIsNotTakenOver(t *testing.T) {
	for _, how := range []string{"insert", "badge"} {
		t.Run(how, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			w := newWorld(t, s, kind{unique: true})
			p := harness.Must[*process](t)(w.start(s))
			e := jones()
			e.Email = "old@contoso.com"
			if err := p.repo.Insert(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			third := &employee{Department: "Sales", ID: 9, Name: "Third", Email: "third@contoso.com", Badge: "B-9"}
			if err := p.repo.Insert(t.Context(), third); err != nil {
				t.Fatal(err)
			}
			var errB, errF error
			concurrent := &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: "new@contoso.com", Badge: "B-2"}
			slow, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == w.table && c.Kind == storagetest.ReplaceEntity }, storagetest.Once(storagetest.Always(storagetest.Before("concurrent", func() {
				b := jones()
				b.Email = "new@contoso.com"
				if how == "insert" {
					errB = p.repo.Insert(t.Context(), b) // somebody who does not know that she is there
				} else {
					v, err := p.repo.Get(t.Context(), keyOf(e))
					if err != nil {
						t.Error(err)
					}
					v.Email, v.Badge = "new@contoso.com", "B-9" // which is third's
					errB = p.repo.Replace(t.Context(), v)
				}
				errF = p.repo.Insert(t.Context(), concurrent)
			})))))
			a := harness.Must[*process](t)(w.start(slow))
			v := harness.Must[*employee](t)(a.repo.Get(t.Context(), keyOf(e)))
			v.Email = "new@contoso.com"
			errA := a.repo.Replace(t.Context(), v)
			t.Logf("B: %v", errB)
			t.Logf("A: %v, F: %v", errA, errF)
			if errA == nil && errF == nil {
				t.Error("two employees have one unique email, and nothing has failed")
			}
		})
	}
}

// TestReservationIsNotFilledByOthers: a slow holder does not fill the reservation of another change with what it has seen.
func TestReservationIsNotFilledByOthers(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{unique: true})
	p := harness.Must[*process](t)(w.start(s))
	e := jones()
	if err := p.repo.Insert(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	at, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	slow, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == w.table && c.Kind == storagetest.Batch }, storagetest.Once(storagetest.Always(storagetest.Before("stale", func() { at <- true; <-goOn })))))
	m := harness.Must[*process](t)(w.start(slow))
	go func() {
		v, err := m.repo.Get(t.Context(), keyOf(e))
		if err == nil {
			v.Name = "touched"
			err = m.repo.Replace(t.Context(), v)
		}
		ended <- err
	}()
	<-at
	change := func(p *process, email string) error {
		v, err := p.repo.Get(t.Context(), keyOf(e))
		if err != nil {
			return err
		}
		v.Email = email
		return p.repo.Replace(t.Context(), v)
	}
	if err := change(p, "c@contoso.com"); err != nil {
		t.Fatal(err)
	}
	var errF error
	x := harness.Must[*process](t)(w.start(must1(s.Faulty(storagetest.If(func(c storagetest.Call) bool { return c.Resource == w.table && c.Kind == storagetest.ReplaceEntity }, storagetest.Once(storagetest.Always(storagetest.Before("x", func() {
		goOn <- true
		t.Log("stale writer:", <-ended)
		errF = p.repo.Insert(t.Context(), &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: e.Email, Badge: "B-2"})
	}))))))))
	errX := change(x, e.Email)
	t.Logf("X: %v, F: %v", errX, errF)
	if errX == nil && errF == nil {
		t.Error("two employees have one unique email")
	}
}

func must1(s *storagetest.Service, _ *storagetest.Faults) *storagetest.Service { return s }

// TestRetakenKeyStays: a slow holder does not remove the key that its entity has given up and taken again meanwhile, or
// somebody else could take it.
func TestRetakenKeyStays(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{unique: true})
	p := harness.Must[*process](t)(w.start(s))
	e := jones()
	if err := p.repo.Insert(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	change := func(p *process, email string) error {
		v, err := p.repo.Get(t.Context(), keyOf(e))
		if err != nil {
			return err
		}
		v.Email = email
		return p.repo.Replace(t.Context(), v)
	}
	var errX, errF error
	batches := 0
	slow, _ := s.Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
		if c.Resource != w.table || c.Kind != storagetest.Batch {
			return nil
		}
		if batches++; batches != 3 { // 1 reserves, 2 fills, 3 removes the old key
			return nil
		}
		return storagetest.First(storagetest.Always(bothEnds{
			before: func() { errX = change(p, e.Email) }, // back to the first key, and done
			after: func() {
				errF = p.repo.Insert(t.Context(), &employee{Department: "Sales", ID: 224, Name: "Jim Jones", Email: e.Email, Badge: "B-2"})
			}})).Inject(c)
	}))
	m := harness.Must[*process](t)(w.start(slow))
	errM := change(m, "between@contoso.com")
	t.Logf("M: %v, X: %v, F: %v", errM, errX, errF)
	v, _ := p.repo.Get(t.Context(), keyOf(e))
	if errX == nil && errF == nil && v.Email == e.Email {
		t.Errorf("two employees have %s, and nothing has failed", v.Email)
	}
}

type bothEnds struct{ before, after func() }

func (bothEnds) String() string { return "both" }
func (b bothEnds) Meet(_ storagetest.Call, _ *http.Request, send storagetest.Send) (*http.Response, error) {
	b.before()
	resp, err := send()
	b.after()
	return resp, err
}
