package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ticket is an entity that is closed once.
type ticket struct {
	tables.Meta
	Team, ID string
	Closed   bool
}

// closed is the event that a ticket was closed.
type closed struct{ Ticket, By string }

// desk is a process with tickets and their events.
type ticketDesk struct {
	store   *patterns.Store
	tickets *patterns.Repository[ticket]
	events  *eventual.Events[closed]
}

func openDesk(s *storagetest.Service, names [2]string, handle func(context.Context, eventual.Event[closed]) error) (*ticketDesk, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	d := &ticketDesk{}
	if d.store, err = patterns.Open(names[1], &patterns.StoreOptions{Account: account, MaxOpen: -1}); err != nil {
		return nil, err
	}
	table := d.store.Table(names[0])
	if d.tickets, err = patterns.NewRepository(table, patterns.Schema[ticket]{Prefix: "ticket", Key: func(v *ticket) tables.Key {
		return tables.Key{Partition: v.Team, Row: compoundkey.Join("ticket", compoundkey.String(v.ID))}
	}}); err != nil {
		return nil, err
	}
	d.events, err = eventual.NewEvents(table, "closed", handle, nil)
	return d, err
}

// end closes a ticket, and says so in the same transaction.
func (d *ticketDesk) end(ctx context.Context, v *ticket) error {
	v.Closed = true
	x := d.tickets.Table().NewTransaction()
	d.tickets.StageReplace(x, v)
	d.events.Stage(x, v.Team, closed{Ticket: v.ID, By: "june"})
	_, err := x.Commit(ctx)
	return err
}

// heard collects the events that were handled.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) handle(_ context.Context, e eventual.Event[closed]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprint(e.Partition, " ", e.Body.Ticket, " ", e.Body.By, " ", e.ID != ""))
	return nil
}

// TestEvents: an event is handled after its transaction, again after a failure, and not if the transaction is refused.
func TestEvents(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	var h heard
	fails := errors.New("not now")
	d := assert.Must[*ticketDesk](t)(openDesk(s, saleNames(t, s), func(ctx context.Context, e eventual.Event[closed]) error {
		return errors.Join(h.handle(ctx, e), fails)
	}))
	v := &ticket{Team: "red", ID: "1"}
	assert.Check(t, d.store.Create(ctx), d.tickets.Insert(ctx, v))
	stale := *v
	assert.Check(t, d.end(ctx, v)) // an error of the handler is not one of the change
	harness.WantKind(t, d.end(ctx, &stale), tables.ErrConflict)
	fails = nil
	drainIntents(t, d.store)
	if want := []string{"red 1 june true", "red 1 june true"}; !slices.Equal(h.all, want) {
		t.Errorf("%q, want %q", h.all, want)
	}
	drainIntents(t, d.store)
	rows := 0
	for range d.tickets.Table().Entities().Query().Partition("red").All(ctx) {
		rows++
	}
	if rows != 1 || len(h.all) != 2 {
		t.Errorf("%d rows after %d calls, want the ticket alone", rows, len(h.all))
	}
	_, err := eventual.NewEvents[closed](d.tickets.Table(), "other", nil, nil)
	harness.WantKind(t, err, tables.ErrWiring)
}

// TestEventsSweep breaks a transaction with an event at every storage call, in every way: the event is handled if and only if the ticket
// is closed.
func TestEventsSweep(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 240, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		names := saleNames(t, s)
		var h heard
		d := assert.Must[*ticketDesk](t)(openDesk(s, names, h.handle))
		assert.Check(t, d.store.Create(t.Context()), d.tickets.Insert(t.Context(), &ticket{Team: "red", ID: "1"}))
		key := tables.Key{Partition: "red", Row: "ticket_1"}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				d, err := openDesk(s, names, h.handle)
				if err != nil {
					return err
				}
				v, err := d.tickets.Get(ctx, key)
				if err != nil || v.Closed {
					return err
				}
				return d.end(ctx, v)
			},
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				s.Clock.Advance(2 * time.Minute)
				d, err := openDesk(s, names, h.handle)
				if err != nil {
					return err
				}
				worker, err := eventual.NewWorker(eventual.Intents(d.store), nil, nil)
				if err == nil {
					_, err = worker.Drain(ctx)
				}
				return err
			},
			Check: func(ctx context.Context, _ *storagetest.Service, _ storagetest.Ending) error {
				v, err := d.tickets.Get(ctx, key)
				if err != nil {
					return err
				}
				if v.Closed != (len(h.all) > 0) {
					return fmt.Errorf("closed %v, and heard %q", v.Closed, h.all)
				}
				return nil
			},
		}
	}})
}

// TestOnCommitKinds: the handler is called after the chosen kinds of change only.
func TestOnCommitKinds(t *testing.T) {
	for on, want := range map[eventual.ChangeKinds][]string{
		eventual.Inserts: {"a 1", "b 1"}, eventual.Updates: {"a 2"}, eventual.Deletes: {"a gone"}, 0: {"a 1", "a 2", "b 1"},
	} {
		ctx := t.Context()
		var x commits
		_, repo := newSales(t, storagetest.Simulator(t, nil), eventual.OnCommit("calls", x.handle, &eventual.OutboxOptions{On: on}))
		a := saleOf("a", 1)
		assert.Check(t, repo.Insert(ctx, a), repo.Upsert(ctx, saleOf("b", 1)))
		assert.Check(t, repo.Upsert(ctx, saleOf("a", 2)), repo.DeleteUnconditional(ctx, saleKey("a")))
		if got, _ := x.take(); !slices.Equal(got, want) {
			t.Errorf("%b: %q, want %q", on, got, want)
		}
	}
}
