package eventual_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestQueueVerbs: create, create again, drop, drop again; they mean the same as a table's.
func TestQueueVerbs(t *testing.T) {
	for _, shards := range []int{1, 2} {
		s := storagetest.Open(t)
		name := s.QueueName(t)
		q := must[*eventual.Queue](t)(openQueue(s, name[len(name)-16:], &eventual.QueueOptions{Shards: shards}))
		ctx := t.Context()
		_, err := q.Send(ctx, "a", nil, nil)
		wantKind(t, err, tables.ErrMissingResource)
		_, err = q.Send(ctx, "a", large, nil)
		wantKind(t, err, tables.ErrMissingResource)
		_, err = q.Length(ctx)
		wantKind(t, err, tables.ErrMissingResource)
		_, err = newWorker(t, q, nil, nil).Drain(ctx)
		wantKind(t, err, tables.ErrMissingResource)
		wantKind(t, q.Drop(ctx), tables.ErrMissingResource)
		check(t, q.Create(ctx))
		wantKind(t, q.Create(ctx), tables.ErrExists)
		check(t, q.CreateIfMissing(ctx))
		must[string](t)(q.Send(ctx, "a", large, nil))
		check(t, q.Drop(ctx))
		wantKind(t, q.Drop(ctx), tables.ErrMissingResource)
	}
}

// TestCreateFinishes what another Create has begun, and still says that it was there.
func TestCreateFinishes(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := must[*eventual.Queue](t)(openQueue(s, "orders", &eventual.QueueOptions{Shards: 2}))
	_, err := storageQueue(q, "-0").Create(t.Context(), nil)
	check(t, err)
	wantKind(t, q.Create(t.Context()), tables.ErrExists)
	for range 20 {
		must[string](t)(q.Send(t.Context(), "nobody's", large, nil))
	}
	if st := drain(t, q, nil); st.Poisoned != 20 {
		t.Errorf("%+v", st)
	}
}

// TestNameOfDroppedQueue is taken for a while.
func TestNameOfDroppedQueue(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	q := must[*eventual.Queue](t)(openQueue(s, "orders", nil))
	check(t, q.Create(t.Context()))
	check(t, q.Drop(t.Context()))
	wantKind(t, q.Create(t.Context()), tables.ErrBeingDeleted)
	wantKind(t, q.CreateIfMissing(t.Context()), tables.ErrBeingDeleted)
	s.Wait(time.Minute)
	check(t, q.Create(t.Context()))
}

// TestLostAnswersOfVerbs: what the repeated request meets is taken for the work of the first.
func TestLostAnswersOfVerbs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, kind := range []storagetest.Kind{storagetest.CreateQueue, storagetest.DeleteQueue, storagetest.CreateContainer, storagetest.DeleteContainer} {
		faulty, faults := s.Faulty(storagetest.On(kind, storagetest.Once(storagetest.LostAnswer)))
		q := must[*eventual.Queue](t)(openQueue(faulty, "orders", nil))
		check(t, q.Create(t.Context()))
		check(t, q.Drop(t.Context()))
		if len(faults.Met()) != 1 {
			t.Errorf("%s: no fault", kind)
		}
		s.Wait(time.Minute)

		faulty, _ = s.WithRetries(0).Faulty(storagetest.On(kind, storagetest.Once(storagetest.LostAnswer)))
		q = must[*eventual.Queue](t)(openQueue(faulty, "orders", nil))
		err := errors.Join(q.Create(t.Context()), q.Drop(t.Context()))
		if !errors.Is(err, tables.ErrUnknownOutcome) {
			t.Errorf("%s: %v", kind, err)
		}
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
			wantKind(t, err, tables.ErrWiring)
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v; want %q", err, tc.says)
			}
		})
	}
	account := must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", nil))
	_, err := eventual.NewQueue(account, "orders", nil)
	wantKind(t, err, tables.ErrWiring)
	_, err = eventual.NewQueue(nil, "orders", nil)
	wantKind(t, err, tables.ErrWiring)
}

// TestDecodeShowsNoValue: errors go to logs.
func TestDecodeShowsNoValue(t *testing.T) {
	for body, v := range map[string]any{`{"Number":"top secret"}`: &order{}, `{"Number":12345678901234567890}`: &order{}, `{"Number":1.5e300}`: &order{}, `top secret`: &order{}} {
		err := (&eventual.Message{Type: "ship", Body: []byte(body)}).Decode(v)
		wantKind(t, err, tables.ErrInvalid)
		if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "123") || strings.Contains(text, "e300") || !strings.Contains(text, `"ship"`) {
			t.Error(text)
		}
	}
}
