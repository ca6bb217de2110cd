package eventual_test

import (
	"context"
	"encoding/base64"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequeueThenPurge: of two entries of one message, as a delete that failed leaves them, one is requeued and one purged.
func TestRequeueThenPurge(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	whole := newQueue(t, s, nil)
	n := 0
	faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.DeleteMessage, storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
		n++
		if n == 1 {
			return storagetest.Before500
		}
		return nil
	})))
	q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
	assert.Must[string](t)(whole.Send(t.Context(), "big", large, nil))
	bad := map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { return errors.New("no") }}
	drain(t, q, bad)
	s.Wait(2 * time.Minute)
	drain(t, q, bad)
	es := entries(t, whole)
	if len(es) != 2 || es[0].ID != es[1].ID {
		t.Fatalf("%d entries", len(es))
	}
	first := es[0].EntryID
	assert.Must[int](t)(whole.Poison().Requeue(t.Context(), func(p eventual.PoisonMessage) bool { return p.EntryID == first }))
	assert.Must[int](t)(whole.Poison().Purge(t.Context(), nil)) // the duplicate
	handled := 0
	stats := drain(t, whole, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { handled++; return nil }})
	t.Logf("%+v, poison %d, queue %d", stats, len(entries(t, whole)), assert.Must[int](t)(whole.Length(t.Context())))
	if handled == 0 {
		t.Error("LOST: the requeued message was never handled and is on no queue")
	}
}

// TestRequeueFailsThenPurge: a Requeue fails after its put, and what is left is purged.
func TestRequeueFailsThenPurge(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	whole := newQueue(t, s, nil)
	assert.Must[string](t)(whole.Send(t.Context(), "big", large, nil))
	drain(t, whole, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { return errors.New("no") }})
	faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.DeleteMessage, storagetest.Before500))
	q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
	_, err := q.Poison().Requeue(t.Context(), nil)
	t.Log(err)
	s.Wait(2 * time.Minute)
	assert.Must[int](t)(whole.Poison().Purge(t.Context(), nil))
	handled := 0
	stats := drain(t, whole, map[string]eventual.Handler{"big": func(context.Context, *eventual.Message) error { handled++; return nil }})
	t.Logf("%+v, poison %d, queue %d", stats, len(entries(t, whole)), assert.Must[int](t)(whole.Length(t.Context())))
	if handled == 0 {
		t.Error("LOST")
	}
}

type myErr struct{ text string }

func (e *myErr) Error() string { return e.text }

// TestTypedNilError: an error that cannot say what it is is a failure like any other.
func TestTypedNilError(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, nil)
	assert.Must[string](t)(q.Send(t.Context(), "x", 1, nil))
	drain(t, q, map[string]eventual.Handler{"x": func(context.Context, *eventual.Message) error { var e *myErr; return e }})
}

// TestStepsOfOwnMessage: a message that a user's test has made has nowhere to keep what is done.
func TestStepsOfOwnMessage(t *testing.T) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
	}()
	m := &eventual.Message{Type: "x", Body: []byte(`1`)}
	_ = m.Steps(t.Context(), eventual.Step{Name: "a", Do: func(context.Context) error { return nil }})
}

// TestPanickingMatch: the batch of a match that panics appears again.
func TestPanickingMatch(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, &eventual.QueueOptions{VisibilityTimeout: time.Second})
		for range 3 {
			assert.Must[string](t)(q.Send(t.Context(), "x", 1, nil))
		}
		drain(t, q, map[string]eventual.Handler{"x": func(context.Context, *eventual.Message) error { return errors.New("no") }})
		func() {
			defer func() { recover() }()
			q.Poison().Purge(t.Context(), func(eventual.PoisonMessage) bool { panic("match") })
		}()
		time.Sleep(4 * time.Second) // in which nobody may renew
		if visible := entries(t, q); len(visible) != 3 {
			t.Errorf("of 3 entries, %d are visible after 4 s with a timeout of 1 s, beside %d goroutines", len(visible), runtime.NumGoroutine())
		}
	})
}

// TestStepsKeepsUnknownMembers: members of the envelope that this build does not know are written back.
func TestStepsKeepsUnknownMembers(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := newQueue(t, s, nil)
	assert.Check(t, assert.Err(storageQueue(q, "").EnqueueMessage(t.Context(), `{"v":1,"id":"a","type":"x","body":1,"trace":"later build's"}`, nil)))
	drain(t, q, map[string]eventual.Handler{"x": func(ctx context.Context, m *eventual.Message) error {
		_ = m.Steps(ctx, eventual.Step{Name: "a", Do: func(context.Context) error { return nil }})
		return errors.New("no")
	}})
	es := entries(t, q)
	if len(es) != 1 || !strings.Contains(decodeText(es[0].Original), "trace") {
		t.Errorf("gone: %s", decodeText(es[0].Original))
	}
}

// TestSlowGet: after a get that takes long, the first renewal still comes before the lease's end.
func TestSlowGet(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		whole := newQueue(t, s, nil)
		busy := 0
		faulty, _ := s.Faulty(storagetest.On(storagetest.GetMessages, storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
			if busy++; busy <= 1 {
				return storagetest.After("slow", func() { time.Sleep(21 * time.Second) })
			}
			return nil
		})))
		q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
		assert.Must[string](t)(whole.Send(t.Context(), "x", 1, nil))
		w := newWorker(t, q, map[string]eventual.Handler{"x": func(ctx context.Context, _ *eventual.Message) error {
			select {
			case <-time.After(90 * time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return nil
		}}, nil)
		w.Drain(t.Context())
		if n := w.Stats().LeasesLost; n > 0 {
			t.Errorf("%d leases lost, though the service has never refused anything", n)
		}
	})
}

// TestPoisonWhileUnsure: a message whose handler's write got no answer cannot be requeued before its visibility timeout is over.
func TestPoisonWhileUnsure(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	whole := newQueue(t, s, nil)
	faulty, _ := s.WithRetries(0).Faulty(storagetest.On(storagetest.InsertEntity, storagetest.Before500))
	q := assert.Must[*eventual.Queue](t)(openQueue(faulty, whole.Name(), nil))
	table := q.Account().Table(s.TableName(t))
	assert.Check(t, whole.Account().Table(table.Name()).Create(t.Context()))
	assert.Must[string](t)(whole.Send(t.Context(), "x", 1, nil))
	w := newWorker(t, q, map[string]eventual.Handler{"x": func(ctx context.Context, _ *eventual.Message) error {
		rows := assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](table))
		return rows.Insert(ctx, &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}})
	}}, &eventual.WorkerOptions{MaxDequeues: 1})
	w.Drain(t.Context())
	if es := entries(t, whole); len(es) == 1 {
		t.Error("the entry is visible at once: a Requeue starts the next handler while the write may be on its way")
	}
}

func decodeText(s string) string {
	if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
		return string(raw)
	}
	return s
}

// TestRollingDeploy: workers of an old build leave what only a newer one knows for some visibility timeouts.
func TestRollingDeploy(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		w := start(t, q, nil, nil)
		assert.Must[string](t)(q.Send(t.Context(), "new-type", 1, nil))
		time.Sleep(2 * time.Minute)
		w.stop(t)
		for _, e := range entries(t, q) {
			t.Errorf("poison %v after it was sent: %s", e.PoisonedAt.Sub(e.Sent).Round(time.Second), e.Reason)
		}
	})
}

// TestQueuesThatNobodyMade: a queue that is nil or the zero one is refused by NewWorker, not by a panic.
func TestQueuesThatNobodyMade(t *testing.T) {
	for what, q := range map[string]*eventual.Queue{"nil": nil, "zero": {}} {
		t.Run(what, func(t *testing.T) { harness.WantKind(t, assert.Err(eventual.NewWorker(q, nil, nil)), tables.ErrWiring) })
	}
}
