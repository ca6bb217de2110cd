package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// order is a body.
type order struct {
	Number int
	Note   string `json:",omitempty"`
}

// TestHandled: what is sent arrives once, as it was, over one storage queue and over several.
func TestHandled(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			q := newQueue(t, storagetest.Open(t), &eventual.QueueOptions{Shards: shards})
			sent := map[string]int{}
			for i := range 50 {
				sent[assert.Must[string](t)(q.Send(t.Context(), "ship", order{Number: i, Note: "<&>\x00\u2028"}, nil))] = i
			}
			assert.Equal(t, assert.Must[int](t)(q.Length(t.Context())), 50, "messages")
			var mu sync.Mutex
			w := newWorker(t, q, map[string]eventual.Handler{"ship": func(_ context.Context, m *eventual.Message) error {
				var o order
				if err := m.Decode(&o); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if n, ok := sent[m.ID]; !ok || n != o.Number || o.Note != "<&>\x00\u2028" || m.Dequeues != 1 || time.Since(m.Sent) > time.Hour {
					t.Errorf("%+v arrived as %+v", m, o)
				}
				delete(sent, m.ID)
				return nil
			}}, nil)
			if n := assert.Must[int](t)(w.Drain(t.Context())); n != 50 || len(sent) != 0 {
				t.Errorf("%d handled, %d left", n, len(sent))
			}
			assert.Equal(t, assert.Must[int](t)(q.Length(t.Context())), 0, "messages left")
		})
	}
}

// TestFailures: each of the ways to fail ends on the poison queue with its reason, and none is in the way of the others.
func TestFailures(t *testing.T) {
	s, log := storagetest.Open(t), &logged{}
	q := log.queue(t, s, newQueue(t, s, nil).Name(), nil)
	ctx := t.Context()
	for _, messageType := range []string{"fails", "panics", "exits", "nobody's", "fine"} {
		assert.Must[string](t)(q.Send(ctx, messageType, messageType, nil))
	}
	foreign := storageQueue(q, "")
	for _, text := range []string{"hello, world", `{"v":7,"type":"fine"}`, `{"body":1}`, `{"type":"fine","id":"../x","claim":{"blob":"../x","length":1,"sha256":""}}`,
		`{"type":"fine","id":"big","claim":{"blob":"big","length":99999999,"sha256":""}}`} {
		assert.Check(t, assert.Err(foreign.EnqueueMessage(ctx, text, nil)))
	}
	var fine atomic.Int64
	w := newWorker(t, q, map[string]eventual.Handler{
		"fails":  func(context.Context, *eventual.Message) error { return errors.New("no such address") },
		"panics": func(context.Context, *eventual.Message) error { panic("out of paper") },
		"exits":  func(context.Context, *eventual.Message) error { runtime.Goexit(); return nil },
		"fine":   func(context.Context, *eventual.Message) error { fine.Add(1); return nil },
	}, &eventual.WorkerOptions{RetryDelay: atOnce})
	if n := assert.Must[int](t)(w.Drain(ctx)); n != 1 || fine.Load() != 1 {
		t.Errorf("%d handled", n)
	}
	reasons := map[string]bool{}
	for _, e := range entries(t, q) {
		reasons[e.Type+": "+e.Reason] = true
		if e.Dequeues != 5 || e.ID == "" || e.Queue != q.Name() || e.Shard != 0 || e.PoisonedAt.IsZero() || e.Original == "" {
			t.Errorf("%+v", e)
		}
		if (e.Type == "panics") != strings.Contains(e.Stack, "worker_test.go") {
			t.Errorf("stack of %q: %s", e.Type, e.Stack)
		}
	}
	for _, want := range []string{"fails: no such address", "panics: panic: out of paper", "exits: the handler ended its goroutine with runtime.Goexit; return an error instead",
		`nobody's: no handler for messages of type "nobody's"; give one to NewWorker`, ": the message is neither the JSON of an envelope nor base64 of it; send messages with Queue.Send",
		": the envelope has version 7, and this build reads version 1; run workers of the newer build", ": the envelope has no member type; name the type of a handler",
		"fine: the message's claim names the body of another message; only Queue.Send makes claims", "fine: the message's claim says 99999999 bytes; a body has at most 16777216"} {
		if !reasons[want] {
			t.Errorf("no entry %q among %v", want, reasons)
		}
	}
	if s := w.Stats(); s.Poisoned != 9 || s.Failed != 9*5 || s.Handled != 1 || s.InFlight != 0 || len(reasons) != 9 {
		t.Errorf("%+v, %d reasons", s, len(reasons))
	}
	assert.Equal(t, assert.Must[int](t)(q.Length(ctx)), 0, "messages left")
	if text := log.String(); strings.Contains(text, "hello") || !strings.Contains(text, "message poisoned") {
		t.Errorf("log: %s", text)
	}
}

// TestLimitIsCheckedFirst: a message that kills each worker that touches it does not kill the next.
func TestLimitIsCheckedFirst(t *testing.T) {
	s := storagetest.Open(t)
	q := newQueue(t, s, &eventual.QueueOptions{VisibilityTimeout: time.Second})
	assert.Must[string](t)(q.Send(t.Context(), "kills", nil, nil))
	handlers := map[string]eventual.Handler{"kills": func(context.Context, *eventual.Message) error { t.Error("called"); return nil }}
	client := storageQueue(q, "")
	for range 3 {
		got, err := client.DequeueMessage(t.Context(), nil)
		assert.Check(t, err)
		// Visible again, as it would be in time.
		_, err = client.UpdateMessage(t.Context(), *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, *got.Messages[0].MessageText, nil)
		assert.Check(t, err)
	}
	w := newWorker(t, q, handlers, &eventual.WorkerOptions{MaxDequeues: 3})
	assert.Must[int](t)(w.Drain(t.Context()))
	if e := entries(t, q); len(e) != 1 || e[0].Reason != "the message was delivered 4 times, and MaxDequeues is 3; requeue it when the cause of its failures is gone" || e[0].Type != "kills" {
		t.Errorf("%+v", e)
	}
}

// TestRetryDelay: a failed message waits longer each time.
func TestRetryDelay(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		assert.Must[string](t)(q.Send(t.Context(), "fails", nil, nil))
		var at []time.Duration
		began := time.Now()
		r := start(t, q, map[string]eventual.Handler{"fails": func(context.Context, *eventual.Message) error {
			at = append(at, time.Since(began))
			return errors.New("again")
		}}, &eventual.WorkerOptions{MaxPoll: 100 * time.Millisecond})
		time.Sleep(time.Minute)
		r.stop(t)
		assert.Len(assert.Fatal(t), at, 5, "deliveries")
		for i, least := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 6 * time.Second} {
			if wait := at[i+1] - at[i]; wait < least || wait > time.Duration(1<<i)*time.Second+200*time.Millisecond {
				t.Errorf("waited %v after delivery %d", wait, i+1)
			}
		}
	})
}

// TestIdlePolls: a worker with nothing to do asks ever more rarely.
func TestIdlePolls(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		counting, counter := harness.CountedService(s)
		name := newQueue(t, s, nil).Name()
		r := start(t, assert.Must[*eventual.Queue](t)(openQueue(counting, name, nil)), nil, nil)
		time.Sleep(10 * time.Minute)
		r.stop(t)
		polls := counter.CountOf(storagetest.GetMessages)
		// 10 while it doubles to a minute, and then 1 a minute, less up to a quarter.
		if polls < 17 || polls > 25 || polls != counter.Count() || int64(polls) != r.Stats().EmptyPolls {
			t.Errorf("%d polls, %d requests, %+v", polls, counter.Count(), r.Stats())
		}
	})
}

// TestWake: an idle worker of the same process hears of a message at once.
func TestWake(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		handled := make(chan time.Time, 1)
		r := start(t, q, map[string]eventual.Handler{"ring": func(context.Context, *eventual.Message) error { handled <- time.Now(); return nil }}, nil)
		time.Sleep(5 * time.Minute)
		sent := time.Now()
		assert.Must[string](t)(q.Send(t.Context(), "ring", nil, nil))
		if took := (<-handled).Sub(sent); took > time.Millisecond {
			t.Errorf("took %v", took)
		}
		r.stop(t)
	})
}

// TestDelay: a delayed message is not there before its time.
func TestDelay(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		handled := make(chan time.Time, 1)
		r := start(t, q, map[string]eventual.Handler{"later": func(context.Context, *eventual.Message) error { handled <- time.Now(); return nil }}, nil)
		sent := time.Now()
		assert.Must[string](t)(q.Send(t.Context(), "later", nil, &eventual.SendOptions{Delay: 90*time.Second + time.Millisecond}))
		if took := (<-handled).Sub(sent); took < 91*time.Second || took > 152*time.Second {
			t.Errorf("took %v", took)
		}
		r.stop(t)
	})
}

// TestConcurrency: no more handlers run than there are slots, over all shards, and messages are not hoarded.
func TestConcurrency(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, &eventual.QueueOptions{Shards: 3})
		for i := range 60 {
			assert.Must[string](t)(q.Send(t.Context(), "work", order{Number: i}, nil))
		}
		var now, most, total atomic.Int64
		r := start(t, q, map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error {
			n := now.Add(1)
			defer now.Add(-1)
			if n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			total.Add(1)
			return nil
		}}, &eventual.WorkerOptions{Concurrency: 4})
		time.Sleep(20 * time.Second)
		if most.Load() != 4 || total.Load() < 56 {
			t.Errorf("%d at a time, %d in all", most.Load(), total.Load())
		}
		r.stop(t)
	})
}

// TestRefusedWorkers: what cannot work is refused when it is made.
func TestRefusedWorkers(t *testing.T) {
	q := assert.Must[*eventual.Queue](t)(openQueue(storagetest.Simulator(t, nil), "orders", nil))
	fine := func(context.Context, *eventual.Message) error { return nil }
	for name, make := range map[string]func() (*eventual.Worker, error){
		"no queue": func() (*eventual.Worker, error) { return eventual.NewWorker(nil, nil, nil) },
		"own type": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, map[string]eventual.Handler{"tablepatterns.intent": fine}, nil)
		},
		"no type": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, map[string]eventual.Handler{"": fine}, nil)
		},
		"nil handler": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, map[string]eventual.Handler{"a": nil}, nil)
		},
		"negative": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, nil, &eventual.WorkerOptions{Concurrency: -1})
		},
		"polls": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, nil, &eventual.WorkerOptions{MinPoll: 2, MaxPoll: 1})
		},
		"stop timeout": func() (*eventual.Worker, error) {
			return eventual.NewWorker(q, nil, &eventual.WorkerOptions{StopTimeout: -1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.WantKind(t, assert.Err(make()), tables.ErrWiring)
		})
	}
}

// TestRunsOnceAtATime: two calls of Run would halve neither's work, and blur what Stop waits for.
func TestRunsOnceAtATime(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		r := start(t, q, nil, nil)
		time.Sleep(time.Second)
		harness.WantKind(t, r.Run(t.Context()), tables.ErrWiring)
		harness.WantKind(t, assert.Err(r.Drain(t.Context())), tables.ErrWiring)
		r.stop(t)
		assert.Must[int](t)(r.Drain(t.Context()))
	})
}

// TestPollErrors: they do not end Run, and end Drain.
func TestPollErrors(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		name := newQueue(t, s, nil).Name()
		toggle := storagetest.NewToggle(storagetest.On(storagetest.GetMessages, storagetest.Throttled))
		faulty, faults := s.WithRetries(0).Faulty(toggle)
		log := &logged{}
		q := log.queue(t, faulty, name, nil)
		toggle.Set(true)
		harness.WantKind(t, assert.Err(newWorker(t, q, nil, nil).Drain(t.Context())), tables.ErrUnavailable)

		var handled atomic.Bool
		before := len(faults.Calls())
		r := start(t, q, map[string]eventual.Handler{"a": func(context.Context, *eventual.Message) error { handled.Store(true); return nil }}, nil)
		time.Sleep(10 * time.Minute)
		if n := len(faults.Calls()) - before; n < 15 || n > 30 {
			t.Errorf("%d polls in trouble", n)
		}
		assert.Must[string](t)(q.Send(t.Context(), "a", nil, nil))
		toggle.Set(false)
		time.Sleep(time.Minute)
		if !handled.Load() || !strings.Contains(log.String(), "poll failed") || r.Stats().FailedPolls < 15 {
			t.Errorf("handled: %v, %+v", handled.Load(), r.Stats())
		}
		r.stop(t)
	})
}

// TestNoGoroutineIsLeft by a worker that has returned.
func TestNoGoroutineIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	q := newQueue(t, storagetest.Simulator(t, nil), &eventual.QueueOptions{Shards: 2})
	for i := range 40 {
		assert.Must[string](t)(q.Send(t.Context(), []string{"fine", "fails"}[i%2], nil, nil))
	}
	handlers := map[string]eventual.Handler{"fine": func(context.Context, *eventual.Message) error { return nil }}
	r := start(t, q, handlers, &eventual.WorkerOptions{MinPoll: time.Millisecond, MaxPoll: time.Millisecond})
	for r.Stats().Handled < 20 {
		time.Sleep(time.Millisecond)
	}
	r.stop(t)
	drain(t, q, handlers)
}

// TestDrainGoesOn: what a handler sends is handled in the same Drain, and a message that fails for good ends it.
func TestDrainGoesOn(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), &eventual.QueueOptions{Shards: 2})
	assert.Must[string](t)(q.Send(t.Context(), "countdown", 5, nil))
	var seen []int
	stats := drain(t, q, map[string]eventual.Handler{"countdown": func(ctx context.Context, m *eventual.Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		seen = append(seen, n)
		if n == 0 {
			return errors.New("zero")
		}
		_, err := q.Send(ctx, "countdown", n-1, nil)
		return err
	}})
	if !slices.Equal(seen, []int{5, 4, 3, 2, 1, 0, 0, 0, 0, 0}) || stats.Handled != 5 || stats.Poisoned != 1 {
		t.Errorf("%v, %+v", seen, stats)
	}
}
