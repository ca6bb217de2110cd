package denormalization_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestNestedWriteUnderWay: a department with effects of its own is written under its own intent. Where nobody knows what
// became of that, the employee's intent is left until it has arrived, and nobody acts for it before.
func TestNestedWriteUnderWay(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, nested)
	own := assert.Must[*process](t)(w.start(s))
	assert.Check(t, own.departments.Insert(ctx, &department{Site: "Sales", Name: "A"}))
	slow, faults := s.Faulty(storagetest.On(storagetest.Batch, storagetest.Once(storagetest.Always(
		harness.LateRequest{Network: s.ClientOptions.Transport, After: 200 * time.Millisecond}))))
	assert.Check(t, assert.Must[*process](t)(w.start(slow.WithRetries(-1))).employees.Insert(ctx, jones()))
	if len(faults.Met()) != 1 {
		t.Fatalf("faults: %v", faults.Met())
	}
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(own.queue, nil, nil))
	if n, err := worker.Drain(ctx); err != nil || n != 0 || worker.Stats().Failed != 0 {
		t.Fatalf("%d messages were visible (%v)", n, err)
	}
	time.Sleep(300 * time.Millisecond)
	assert.Check(t, w.drain(ctx, s))
	assert.Check(t, assert.Must[*state](t)(w.read(ctx, s)).checkCopies())
}

// TestLeaseOfAHolder: nothing is sent for holders once the lease has ended.
func TestLeaseOfAHolder(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := newOffices(t, s, 3)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := assert.Must[*officeProcess](t)(w.start(&counted))
	l := lease.New(t.Context(), time.Now(), time.Minute)
	ctx := l.Context(t.Context())
	l.End(lease.ErrLost)
	err := harness.ReconcileOne(ctx, p.city.Effect.Reconcile, &driver.Reconciliation{Key: officeKey("L"), Entity: &office{Code: "L", City: "London"}, Keys: []string{"*"}})
	if err == nil || errors.Is(err, tables.ErrNotFound) || counter.CountOf(storagetest.ReplaceEntity) != 0 {
		t.Fatalf("%v; %v", err, counter.Kinds())
	}
}
