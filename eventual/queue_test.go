package eventual_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestQueueVerbs: create, create again, drop, drop again; they mean the same as a table's.
func TestQueueVerbs(t *testing.T) {
	for _, shards := range []int{1, 2} {
		s := storagetest.Open(t)
		name := s.QueueName(t)
		q := assert.Must[*eventual.Queue](t)(openQueue(s, name[len(name)-16:], &eventual.QueueOptions{Shards: shards}))
		ctx := t.Context()
		harness.WantKind(t, assert.Err(q.Send(ctx, "a", nil, nil)), tables.ErrMissingResource)
		harness.WantKind(t, assert.Err(q.Send(ctx, "a", large, nil)), tables.ErrMissingResource)
		harness.WantKind(t, assert.Err(q.Length(ctx)), tables.ErrMissingResource)
		harness.WantKind(t, assert.Err(newWorker(t, q, nil, nil).Drain(ctx)), tables.ErrMissingResource)
		harness.WantKind(t, q.Drop(ctx), tables.ErrMissingResource)
		assert.Check(t, q.Create(ctx))
		harness.WantKind(t, q.Create(ctx), tables.ErrExists)
		assert.Check(t, q.CreateIfMissing(ctx))
		assert.Must[string](t)(q.Send(ctx, "a", large, nil))
		assert.Check(t, q.Drop(ctx))
		harness.WantKind(t, q.Drop(ctx), tables.ErrMissingResource)
	}
}

// TestCreateFinishes what another Create has begun, and still says that it was there.
func TestCreateFinishes(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, "orders", &eventual.QueueOptions{Shards: 2}))
	assert.Check(t, assert.Err(storageQueue(q, "-0").Create(t.Context(), nil)))
	harness.WantKind(t, q.Create(t.Context()), tables.ErrExists)
	for range 20 {
		assert.Must[string](t)(q.Send(t.Context(), "nobody's", large, nil))
	}
	if st := drain(t, q, nil); st.Poisoned != 20 {
		t.Errorf("%+v", st)
	}
}

// TestNameOfDroppedQueue is taken for a while.
func TestNameOfDroppedQueue(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, "orders", nil))
	assert.Check(t, q.Create(t.Context()))
	assert.Check(t, q.Drop(t.Context()))
	harness.WantKind(t, q.Create(t.Context()), tables.ErrBeingDeleted)
	harness.WantKind(t, q.CreateIfMissing(t.Context()), tables.ErrBeingDeleted)
	s.Wait(time.Minute)
	assert.Check(t, q.Create(t.Context()))
}

// TestLostAnswersOfVerbs: what the repeated request meets is taken for the work of the first.
func TestLostAnswersOfVerbs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, kind := range []storagetest.Kind{storagetest.CreateQueue, storagetest.DeleteQueue, storagetest.CreateContainer, storagetest.DeleteContainer} {
		faulty, faults := s.Faulty(storagetest.On(kind, storagetest.Once(storagetest.LostAnswer)))
		q := assert.Must[*eventual.Queue](t)(openQueue(faulty, "orders", nil))
		assert.Check(t, q.Create(t.Context()))
		assert.Check(t, q.Drop(t.Context()))
		assert.Equal(t, len(faults.Met()), 1, "%s: faults met", kind)
		s.Wait(time.Minute)

		faulty, _ = s.WithRetries(0).Faulty(storagetest.On(kind, storagetest.Once(storagetest.LostAnswer)))
		q = assert.Must[*eventual.Queue](t)(openQueue(faulty, "orders", nil))
		assert.ErrorIs(t, errors.Join(q.Create(t.Context()), q.Drop(t.Context())), tables.ErrUnknownOutcome, kind)
		_ = q.Drop(t.Context())
		s.Wait(time.Minute)
	}
}

// TestRefusedQueues: what cannot work is refused before any request.
func TestRefusedQueues(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for name, tc := range map[string]struct {
		name string
		o    *eventual.QueueOptions
		says string
	}{
		"short":            {"ab", nil, "3 to 63"},
		"no room":          {strings.Repeat("a", 57), nil, "64 characters"},
		"upper case":       {"Orders", nil, "lower-case"},
		"hyphens":          {"a--b", nil, "two in a row"},
		"shards":           {"orders", &eventual.QueueOptions{Shards: -1}, "Shards is -1"},
		"too many":         {"orders", &eventual.QueueOptions{Shards: 1001}, "Shards is 1001"},
		"short visibility": {"orders", &eventual.QueueOptions{VisibilityTimeout: time.Millisecond}, "1ms"},
		"half seconds":     {"orders", &eventual.QueueOptions{VisibilityTimeout: 1500 * time.Millisecond}, "whole seconds"},
		"long visibility":  {"orders", &eventual.QueueOptions{VisibilityTimeout: 8 * 24 * time.Hour}, "192h"},
		"container":        {"orders", &eventual.QueueOptions{ClaimContainer: "no_claims"}, "no_claims"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openQueue(s, tc.name, tc.o)
			harness.WantKind(t, err, tables.ErrWiring)
			assert.Contains(t, err.Error(), tc.says)
		})
	}
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", nil))
	harness.WantKind(t, assert.Err(eventual.NewQueue(account, "orders", nil)), tables.ErrWiring)
	harness.WantKind(t, assert.Err(eventual.NewQueue(nil, "orders", nil)), tables.ErrWiring)
}

// TestDecodeShowsNoValue: errors go to logs.
func TestDecodeShowsNoValue(t *testing.T) {
	for body, v := range map[string]any{`{"Number":"top secret"}`: &order{}, `{"Number":12345678901234567890}`: &order{}, `{"Number":1.5e300}`: &order{}, `top secret`: &order{}} {
		err := (&eventual.Message{Type: "ship", Body: []byte(body)}).Decode(v)
		harness.WantKind(t, err, tables.ErrInvalid)
		if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "123") || strings.Contains(text, "e300") || !strings.Contains(text, `"ship"`) {
			t.Error(text)
		}
	}
}
