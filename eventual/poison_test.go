package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func failing(context.Context, *eventual.Message) error { return errors.New("no") }

// poisoned is a queue on whose poison queue n messages "fails" stand, numbered from 0.
func poisoned(t testing.TB, s *storagetest.Service, n int, o *eventual.QueueOptions) *eventual.Queue {
	t.Helper()
	q := newQueue(t, s, o)
	for i := range n {
		assert.Must[string](t)(q.Send(t.Context(), "fails", order{Number: i}, nil))
	}
	w := newWorker(t, q, map[string]eventual.Handler{"fails": failing}, &eventual.WorkerOptions{MaxDequeues: 1})
	assert.Must[int](t)(w.Drain(t.Context()))
	assert.Equal(assert.Fatal(t), assert.Must[int](t)(q.Poison().Length(t.Context())), n, "entries")
	return q
}

func is(number int) func(eventual.PoisonMessage) bool {
	return func(e eventual.PoisonMessage) bool {
		return strings.Contains(string(e.Body()), fmt.Sprintf(`"Number":%d}`, number))
	}
}

// TestRequeue puts back what matches, as it was, and leaves the rest where others can see it.
func TestRequeue(t *testing.T) {
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			q := poisoned(t, storagetest.Open(t), 40, &eventual.QueueOptions{Shards: shards})
			examined := 0
			n := assert.Must[int](t)(q.Poison().Requeue(t.Context(), func(e eventual.PoisonMessage) bool { examined++; return is(7)(e) || is(39)(e) }))
			if n != 2 || examined != 40 {
				t.Errorf("%d requeued, %d looked at", n, examined)
			}
			assert.Equal(t, len(entries(t, q)), 32, "visible entries")
			assert.Equal(t, assert.Must[int](t)(q.Poison().Length(t.Context())), 38, "entries left")
			var mu sync.Mutex
			var got []int
			drain(t, q, map[string]eventual.Handler{"fails": func(_ context.Context, m *eventual.Message) error {
				var o order
				assert.Equal(t, m.Dequeues, 1, "delivery")
				err := m.Decode(&o)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, o.Number)
				return err
			}})
			slices.Sort(got)
			assert.Slices(t, got, []int{7, 39}, "handled")
			assert.Equal(t, assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil)), 38, "requeued")
		})
	}
}

// TestPurge deletes what matches.
func TestPurge(t *testing.T) {
	q := poisoned(t, storagetest.Open(t), 5, nil)
	assert.Must[string](t)(q.Send(t.Context(), "fails", large, nil))
	w := newWorker(t, q, map[string]eventual.Handler{"fails": failing}, &eventual.WorkerOptions{MaxDequeues: 1})
	assert.Must[int](t)(w.Drain(t.Context()))
	wantClaims(t, q, 1)
	assert.Equal(t, assert.Must[int](t)(q.Poison().Purge(t.Context(), is(3))), 1, "purged")
	if left := entries(t, q); len(left) != 5 || slices.ContainsFunc(left, is(3)) {
		t.Errorf("%+v", left)
	}
	assert.Equal(t, assert.Must[int](t)(q.Poison().Purge(t.Context(), nil)), 5, "purged")
	wantClaims(t, q, 1) // another entry may be of the same message
	if r := sweepClaims(t, q); r.Young != 1 {
		t.Errorf("%+v of a body that is new", r)
	}
	assert.Len(t, entries(t, q), 0)
}

// TestLargeEntries: a message that nearly fills its own leaves no room for an entry around it; the entry goes into a blob.
func TestLargeEntries(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	body := strings.Repeat("x", 48_900)
	assert.Must[string](t)(q.Send(t.Context(), "nobody's", body, nil))
	wantClaims(t, q, 0)
	drain(t, q, nil)
	wantClaims(t, q, 1)
	e := entries(t, q)
	if len(e) != 1 || e[0].Reason != `no handler for messages of type "nobody's"; give one to NewWorker` || string(e[0].Body()) != `"`+body+`"` {
		t.Fatalf("%+v", e)
	}
	assert.Equal(t, assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil)), 1, "requeued")
	wantClaims(t, q, 0)
	if stats := drain(t, q, map[string]eventual.Handler{"nobody's": func(context.Context, *eventual.Message) error { return nil }}); stats.Handled != 1 {
		t.Errorf("%+v", stats)
	}
}

// TestForeignEntries: what others put on the poison queue can be looked at, and put back as it is; an entry of ours that
// is spoiled stays, and is not in the way.
func TestForeignEntries(t *testing.T) {
	q := poisoned(t, storagetest.Open(t), 1, nil)
	client := storageQueue(q, "-poison")
	for _, text := range []string{"hello", `{"id":"A7","type":"ship","body":1}`, `{"id":"A8","type":"tablepatterns.poison","body":"x"}`} {
		assert.Check(t, assert.Err(client.EnqueueMessage(t.Context(), text, nil)))
	}
	seen := map[string]string{}
	for _, e := range entries(t, q) {
		seen[e.Type+"|"+string(e.Body())] = e.Reason
	}
	for want, reason := range map[string]string{"fails|" + `{"Number":0}`: "no", "ship|1": "not known", "|": "the entry cannot be read"} {
		assert.Contains(t, seen[want], reason, "%q", want)
	}
	n, err := q.Poison().Requeue(t.Context(), nil)
	if n != 3 || err == nil || !strings.Contains(err.Error(), "entry A8: the message is not an entry that a worker has put on the poison queue") {
		t.Errorf("%d, %v", n, err)
	}
	assert.Equal(t, assert.Must[int](t)(q.Length(t.Context())), 3, "messages")
	assert.Equal(t, assert.Must[int](t)(q.Poison().Purge(t.Context(), nil)), 1, "purged")
}

// TestRoundIsBounded: a message that fails again while it is requeued is not requeued again.
func TestRoundIsBounded(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := poisoned(t, s, 10, nil)
		r := start(t, q, map[string]eventual.Handler{"fails": failing}, &eventual.WorkerOptions{MaxDequeues: 1, MaxPoll: 100 * time.Millisecond})
		n := assert.Must[int](t)(q.Poison().Requeue(t.Context(), func(eventual.PoisonMessage) bool { time.Sleep(2 * time.Second); return true }))
		assert.Equal(t, n, 10, "requeued")
		time.Sleep(time.Minute)
		r.stop(t)
		assert.Equal(t, assert.Must[int](t)(q.Poison().Length(t.Context())), 10, "entries")
		assert.Equal(t, len(entries(t, q)), 10, "visible entries")
	})
}

// TestLongRounds: entries that appear again, since a look at all takes longer than they are hidden, are looked at once.
func TestLongRounds(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := poisoned(t, s, 70, &eventual.QueueOptions{VisibilityTimeout: 10 * time.Second})
		examined := map[string]int{}
		n := assert.Must[int](t)(q.Poison().Requeue(t.Context(), func(e eventual.PoisonMessage) bool {
			examined[e.ID]++
			time.Sleep(2 * time.Second)
			return is(69)(e)
		}))
		if n != 1 || len(examined) != 70 {
			t.Errorf("%d requeued, %d looked at", n, len(examined))
		}
		for id, times := range examined {
			assert.Equal(t, times, 1, "times %s is looked at", id)
		}
		assert.Equal(t, len(entries(t, q)), 32, "visible entries")
	})
}

// TestPeekHidesNothing, and takes no number that makes no sense.
func TestPeekHidesNothing(t *testing.T) {
	q := poisoned(t, storagetest.Open(t), 3, nil)
	for range 2 {
		assert.Equal(t, len(assert.Must[[]eventual.PoisonMessage](t)(q.Poison().Peek(t.Context(), 2))), 2, "entries")
		assert.Equal(t, len(assert.Must[[]eventual.PoisonMessage](t)(q.Poison().Peek(t.Context(), 1000))), 3, "entries")
	}
	harness.WantKind(t, assert.Err(q.Poison().Peek(t.Context(), 0)), tables.ErrInvalid)
}

// TestPoisonQueueIsMissing: without a place for it a message stays where it is, and the log says why.
func TestPoisonQueueIsMissing(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		q := newQueue(t, s, nil)
		assert.Check(t, assert.Err(storageQueue(q, "-poison").Delete(t.Context(), nil)))
		assert.Must[string](t)(q.Send(t.Context(), "fails", nil, nil))
		log := &logged{}
		r := start(t, log.queue(t, s, q.Name(), nil), map[string]eventual.Handler{"fails": failing}, &eventual.WorkerOptions{MaxPoll: time.Second})
		time.Sleep(5 * time.Minute)
		if n := assert.Must[int](t)(q.Length(t.Context())); n != 1 || r.Stats().Poisoned != 0 || !strings.Contains(log.String(), "QueueNotFound") {
			t.Errorf("%d messages, %+v, log: %s", n, r.Stats(), log)
		}
		assert.Check(t, q.CreateIfMissing(t.Context()))
		time.Sleep(5 * time.Minute)
		r.stop(t)
		if e := entries(t, q); len(e) != 1 || !strings.HasPrefix(e[0].Reason, "the message was delivered ") {
			t.Errorf("%+v", e)
		}
	})
}
