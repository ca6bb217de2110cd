package eventual_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestRenewal: a handler may take as long as it likes; its message stays hidden from other workers.
func TestRenewal(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, &eventual.QueueOptions{VisibilityTimeout: 10 * time.Second})
		var calls atomic.Int64
		handlers := map[string]eventual.Handler{"slow": func(ctx context.Context, _ *eventual.Message) error {
			calls.Add(1)
			select {
			case <-time.After(5 * time.Minute):
			case <-ctx.Done():
				t.Error(context.Cause(ctx))
			}
			return nil
		}}
		assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
		quick := &eventual.WorkerOptions{MaxPoll: time.Second}
		a, b := start(t, q, handlers, quick), start(t, q, handlers, quick)
		time.Sleep(6 * time.Minute)
		a.stop(t)
		b.stop(t)
		if n := assert.Must[int](t)(q.Length(t.Context())); n != 0 || calls.Load() != 1 || a.Stats().Handled+b.Stats().Handled != 1 {
			t.Errorf("%d calls, %d left, %+v, %+v", calls.Load(), n, a.Stats(), b.Stats())
		}
	})
}

// TestRenewalSurvivesTrouble: failures of the service that end before the term does are no loss.
func TestRenewalSurvivesTrouble(t *testing.T) {
	for _, fault := range []storagetest.Mode{storagetest.Before500, storagetest.Throttled, storagetest.NotSent} {
		t.Run(fault.String(), func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				name := newQueue(t, s, nil).Name()
				faulty, faults := s.WithRetries(0).Faulty(storagetest.On(storagetest.UpdateMessage, storagetest.Times(5, storagetest.Always(fault))))
				q := assert.Must[*eventual.Queue](t)(openQueue(faulty, name, &eventual.QueueOptions{VisibilityTimeout: 30 * time.Second}))
				assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
				r := start(t, q, map[string]eventual.Handler{"slow": func(ctx context.Context, _ *eventual.Message) error {
					time.Sleep(2 * time.Minute)
					return ctx.Err()
				}}, nil)
				time.Sleep(3 * time.Minute)
				r.stop(t)
				if st := r.Stats(); st.Handled != 1 || st.LeasesLost != 0 || len(faults.Met()) != 5 {
					t.Errorf("%+v, %d faults", st, len(faults.Met()))
				}
			})
		})
	}
}

// TestLostLease: a handler whose message another process has taken, or may have, is told, sends nothing more, and what
// it returns does not count.
func TestLostLease(t *testing.T) {
	take := func(t *testing.T, q *eventual.Queue) { // the message's time is over; another worker gets it
		client := storageQueue(q, "")
		for range 200 {
			got, err := client.DequeueMessage(t.Context(), nil)
			assert.Check(t, err)
			if len(got.Messages) > 0 {
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("the message does not appear")
	}
	for name, tc := range map[string]struct {
		concurrent func(t *testing.T, q *eventual.Queue)
		fault      storagetest.Injector
		within     time.Duration
	}{
		"renewals fail":         {concurrent: take, fault: storagetest.On(storagetest.UpdateMessage, storagetest.Throttled), within: 25 * time.Second},
		"renewal's answer lost": {concurrent: take, fault: storagetest.On(storagetest.UpdateMessage, storagetest.Once(storagetest.LostAnswer)), within: 25 * time.Second},
		"deleted": {concurrent: func(t *testing.T, q *eventual.Queue) {
			assert.Check(t, assert.Err(storageQueue(q, "").ClearMessages(t.Context(), nil)))
		}, within: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				whole := newQueue(t, s, nil)
				faults := tc.fault
				if faults == nil {
					faults = storagetest.Times(0, storagetest.Throttled)
				}
				faulty, calls := s.WithRetries(0).Faulty(faults)
				log := &logged{}
				q := log.queue(t, faulty, whole.Name(), &eventual.QueueOptions{VisibilityTimeout: 30 * time.Second})
				assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
				began := time.Now()
				lost := make(chan time.Duration, 1)
				r := start(t, q, map[string]eventual.Handler{"slow": func(ctx context.Context, _ *eventual.Message) error {
					<-ctx.Done()
					assert.ErrorIs(t, context.Cause(ctx), eventual.ErrLeaseLost, "the cause")
					lost <- time.Since(began)
					assert.Error(t, assert.Err(q.Send(ctx, "late", nil, nil)), "a request is sent after the lease is lost")
					return nil
				}}, &eventual.WorkerOptions{StopTimeout: time.Hour})
				time.Sleep(time.Second)
				r.cancel() // it polls no more: else it may get the message again itself, as it should
				tc.concurrent(t, whole)
				if took := <-lost; took > tc.within+time.Second {
					t.Errorf("told after %v", took)
				}
				r.stop(t)
				if st := r.Stats(); st.LeasesLost != 1 || st.Handled != 0 || st.Failed != 0 {
					t.Errorf("%+v", st)
				}
				for _, c := range calls.Calls() {
					if c.Kind == storagetest.DeleteMessage {
						t.Error("the message of another holder is deleted")
					}
				}
				assert.Contains(t, log.String(), "lease lost", "log")
			})
		})
	}
}

// TestDoneAsRenewalIsDue: a renewal that has waited for the message's deletion is not sent, and does not make a handled message
// count as lost.
func TestDoneAsRenewalIsDue(t *testing.T) {
	const messages = 100
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		name := newQueue(t, s, nil).Name()
		slow, _ := s.Faulty(storagetest.On(storagetest.DeleteMessage, storagetest.Always(storagetest.After("answer late", func() { time.Sleep(time.Second) }))))
		q := assert.Must[*eventual.Queue](t)(openQueue(slow, name, &eventual.QueueOptions{VisibilityTimeout: 10 * time.Second}))
		for range messages {
			assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
		}
		r := start(t, q, map[string]eventual.Handler{"slow": func(context.Context, *eventual.Message) error {
			time.Sleep(4500 * time.Millisecond) // a renewal is due after 5 s
			return nil
		}}, &eventual.WorkerOptions{Concurrency: messages})
		time.Sleep(time.Minute)
		r.stop(t)
		if st := r.Stats(); st.Handled != messages || st.LeasesLost != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestGracefulStop: handlers get their time, and a message that is not done by then is shown to others at once.
func TestGracefulStop(t *testing.T) {
	for name, tc := range map[string]struct {
		takes             time.Duration
		stops             time.Duration
		handled, released int64
	}{
		"done in time": {takes: 20 * time.Second, stops: 20 * time.Second, handled: 1},
		"cut short":    {takes: time.Hour, stops: 30 * time.Second, released: 1},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				q := newQueue(t, s, &eventual.QueueOptions{VisibilityTimeout: 10 * time.Second})
				assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
				r := start(t, q, map[string]eventual.Handler{"slow": func(ctx context.Context, _ *eventual.Message) error {
					select {
					case <-time.After(tc.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}}, nil)
				time.Sleep(time.Millisecond)
				began := time.Now()
				r.stop(t)
				if took := time.Since(began); took < tc.stops-time.Second || took > tc.stops+time.Second {
					t.Errorf("took %v", took)
				}
				st := r.Stats()
				if st.Handled != tc.handled || st.Released != tc.released || st.Failed != 0 || st.LeasesLost != 0 {
					t.Errorf("%+v", st)
				}
				got, err := storageQueue(q, "").DequeueMessage(t.Context(), nil)
				assert.Check(t, err)
				assert.Equal(t, int64(len(got.Messages)), tc.released, "visible messages")
			})
		})
	}
}

// TestStopDuringPoll: messages that a poll brings after the end are given back, not handled and not kept.
func TestStopDuringPoll(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		whole := newQueue(t, s, nil)
		assert.Must[string](t)(whole.Send(t.Context(), "a", nil, nil))
		var r *running
		faulty, _ := s.Faulty(storagetest.On(storagetest.GetMessages, storagetest.Once(storagetest.Always(storagetest.After("stop", func() {
			r.cancel()
			time.Sleep(time.Second)
		})))))
		q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
		handlers := map[string]eventual.Handler{"a": func(context.Context, *eventual.Message) error { t.Error("handled"); return nil }}
		ctx, cancel := context.WithCancel(t.Context())
		r = &running{Worker: newWorker(t, q, handlers, nil), cancel: cancel, ended: make(chan error, 1)}
		assert.Check(t, r.Run(ctx))
		got, err := storageQueue(whole, "").DequeueMessage(t.Context(), nil)
		assert.Check(t, err)
		if len(got.Messages) != 1 || r.Stats().Released != 1 {
			t.Errorf("%d messages are visible, %+v", len(got.Messages), r.Stats())
		}
	})
}

// TestDrainStops with its context, as Run does, and says so.
func TestDrainStops(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		assert.Must[string](t)(q.Send(t.Context(), "slow", nil, nil))
		w := newWorker(t, q, map[string]eventual.Handler{"slow": func(ctx context.Context, _ *eventual.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}}, &eventual.WorkerOptions{StopTimeout: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		n, err := w.Drain(ctx)
		if n != 0 || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 62*time.Second || w.Stats().Released != 1 {
			t.Errorf("%d, %v, after %v, %+v", n, err, time.Since(began), w.Stats())
		}
	})
}
