package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweepOfRefusedBodies: a body that the service does not delete is a failure with its reason, and the others are deleted.
func TestSweepOfRefusedBodies(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	refusing, faults := s.Faulty(storagetest.On(storagetest.DeleteBlob, storagetest.Once(storagetest.Refusal{Status: 412, Code: "LeaseIdMissing"})))
	q := newQueue(t, s, nil)
	for range 2 {
		assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
	}
	s.Wait(24 * time.Hour)
	assert.Check(t, assert.Err(eventual.QueueService(q.Account()).NewQueueClient(q.Name()).ClearMessages(t.Context(), nil)))
	r := sweepClaims(t, assert.Must[*eventual.Queue](t)(openQueue(refusing, q.Name(), nil)))
	if r.Listed != 2 || r.Failed != 1 || r.Deleted != 1 || r.Young != 0 || !errors.Is(r.LastFailure, tables.ErrRefused) {
		t.Errorf("%+v after %v", r, faults.Met())
	}
	wantClaims(t, q, 1)
	assert.Equal(t, sweepClaims(t, q), (eventual.SweepReport{Listed: 1, Deleted: 1}), "after the lease")
}

// TestBodyRefused: while the service refuses to read the body of a message, the message is neither taken for handled nor deleted.
func TestBodyRefused(t *testing.T) {
	for _, refusal := range []storagetest.Refusal{{Status: 409, Code: "BlobArchived"}, {Status: 404}, {Status: 404, Code: "ContainerNotFound"}, {Status: 409, Code: "OfANewerVersion"}} {
		t.Run(fmt.Sprint(refusal), func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			q := newQueue(t, s, nil)
			assert.Must[string](t)(q.Send(t.Context(), "big", large, nil))
			refusing, faults := s.Faulty(storagetest.On(storagetest.GetBlob, storagetest.Once(refusal)))
			got := 0
			handlers := map[string]eventual.Handler{"big": func(_ context.Context, m *eventual.Message) error {
				var body string
				got++
				return m.Decode(&body)
			}}
			drain(t, assert.Must[*eventual.Queue](t)(openQueue(refusing, q.Name(), nil)), handlers)
			for _, call := range faults.Calls() {
				if got == 0 && call.Kind == storagetest.DeleteBlob {
					t.Errorf("%v was sent", call)
				}
			}
			for range 3 {
				s.Wait(time.Hour)
				drain(t, q, handlers)
			}
			assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil))
			if drain(t, q, handlers); got != 1 {
				t.Errorf("the message was handled %d times", got)
			}
		})
	}
}
