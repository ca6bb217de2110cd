package composition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// client is an entity with effects in another table, in blobs, and in a handler.
type client struct {
	tables.Meta
	City, ID, Email string
}

const (
	outage        = time.Hour
	retryInterval = 5*time.Minute + time.Minute // the longest postponement, and the longest poll of an idle worker
)

// TestOutageOfAnHour: while a service that the effects of changes need is down for an hour, changes go on, no message is poisoned, and each
// is logged once. Within one retry interval after the outage all effects are applied.
func TestOutageOfAnHour(t *testing.T) {
	for name, down := range map[string]func(storagetest.Call) bool{
		"the members' table": func(c storagetest.Call) bool { return strings.EqualFold(c.Resource, "Providers") },
		"the members' table, and the queue's updates": func(c storagetest.Call) bool {
			return strings.EqualFold(c.Resource, "Providers") || c.Kind == storagetest.UpdateMessage && c.Index%2 == 0
		},
	} {
		for _, mode := range []storagetest.Mode{storagetest.Throttled, storagetest.LostAnswer, storagetest.NotSent} {
			t.Run(fmt.Sprintf("%s %v", name, mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newOutage(t, down, mode).run(t) })
			})
		}
	}
}

// TestOutageOfAnIndex: while the table of an index is down, changes are refused, and nothing is written. Afterwards they go on, and readers are right
// at once.
func TestOutageOfAnIndex(t *testing.T) {
	for _, mode := range []storagetest.Mode{storagetest.Throttled, storagetest.LostAnswer, storagetest.NotSent} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, ctx := newOutage(t, func(c storagetest.Call) bool { return strings.EqualFold(c.Resource, "ClientIndex") }, mode), t.Context()
				c := &client{City: "Oslo", ID: "1", Email: "1@example.com"}
				assert.Check(t, o.repo.Insert(ctx, c))
				o.pass(time.Minute)
				o.down.Set(true)
				changed := *c
				changed.Email = "1@example.org"
				harness.WantKind(t, o.repo.Replace(ctx, &changed), tables.ErrUnavailable)
				harness.WantKind(t, o.repo.Insert(ctx, &client{City: "Oslo", ID: "2", Email: "2@example.com"}), tables.ErrUnavailable)
				o.down.Set(false)
				check := func(email string, is bool) {
					t.Helper()
					if _, err := o.byEmail.Get(ctx, email); is && err != nil || !is && !errors.Is(err, tables.ErrNotFound) {
						t.Errorf("%s: %v", email, err)
					}
				}
				check("1@example.com", true)
				check("1@example.org", false)
				check("2@example.com", false)
				assert.Check(t, o.repo.Replace(ctx, &changed))
				check("1@example.com", false)
				check("1@example.org", true)
				assert.Check(t, harness.Clean(ctx, o.repo.Verify, nil), harness.Settle(ctx, o.store))
			})
		})
	}
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(line)
}

// having returns the lines with a text.
func (l *lines) having(text string) (found string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			found += line
		}
	}
	return found
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.all.Bytes(), []byte(text))
}

type outageOf struct {
	service *storagetest.Service
	down    *storagetest.Toggle
	log     *lines
	store   *patterns.Store
	repo    *patterns.Repository[client]
	byEmail *interpartition.Unique[client, string]
	called  atomic.Int64
}

func newOutage(t *testing.T, down func(storagetest.Call) bool, mode storagetest.Mode) *outageOf {
	t.Helper()
	o := &outageOf{service: storagetest.Simulator(t, nil), down: storagetest.NewToggle(storagetest.If(down, mode)), log: &lines{}}
	faulty, _ := o.service.WithRetries(0).Faulty(o.down)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(faulty.ConnectionString, &tables.AccountOptions{
		ClientOptions: faulty.ClientOptions, Logger: slog.New(slog.NewTextHandler(o.log, nil))}))
	o.store = assert.Must[*patterns.Store](t)(patterns.Open("outage", &patterns.StoreOptions{Account: account}))
	o.byEmail = interpartition.NewUnique("email", func(c *client) string { return c.Email },
		&interpartition.Options[client]{Table: o.store.Table("ClientIndex")})
	o.repo = assert.Must[*patterns.Repository[client]](t)(patterns.NewRepository(o.store.Table("Clients"), patterns.Schema[client]{
		Key: func(c *client) tables.Key {
			return tables.Key{Partition: c.City, Row: compoundkey.Join("client", compoundkey.String(c.ID))}
		}, Prefix: "client"}, o.byEmail,
		relationships.NewMembers("provider", o.store.Table("Providers"), func(c *client) (tables.Key, bool) {
			return tables.Key{Partition: "providers", Row: c.Email[strings.Index(c.Email, "@"):]}, true
		}),
		eventual.OnCommit("welcome", func(context.Context, eventual.Commit[client]) error { o.called.Add(1); return nil }, &eventual.OutboxOptions{Ordered: true})))
	if err := o.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// pass lets time pass on the service and in the program, step by step.
func (o *outageOf) pass(d time.Duration) {
	const step = 10 * time.Second
	for ; d > 0; d -= step {
		o.service.Clock.Advance(step)
		time.Sleep(step)
	}
}

func (o *outageOf) run(t *testing.T) {
	ctx, stop := t.Context(), assert.Must[func() error](t)(o.store.Start(t.Context()))
	clients := make([]*client, 12)
	for i := range clients {
		clients[i] = &client{City: "Oslo", ID: fmt.Sprint(i), Email: fmt.Sprintf("%d@example.com", i)}
		if err := o.repo.Insert(ctx, clients[i]); err != nil {
			t.Fatal(err)
		}
	}
	o.pass(time.Minute)
	o.down.Set(true)
	for i, c := range clients {
		c.Email = fmt.Sprintf("%d@example.org", i)
		if err := o.repo.Replace(ctx, c); err != nil {
			t.Fatal(err)
		}
		o.pass(outage / time.Duration(len(clients)))
	}
	o.down.Set(false)
	o.pass(retryInterval)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	poisoned := assert.Must[int](t)(eventual.Intents(o.store).Poison().Length(t.Context()))
	left := assert.Must[int](t)(eventual.Intents(o.store).Length(t.Context()))
	if poisoned+left > 0 {
		t.Errorf("%d messages are poisoned and %d left:\n%s", poisoned, left, o.log.having("message_poisoned"))
	}
	for i, c := range clients {
		if got, err := o.byEmail.Get(t.Context(), c.Email); err != nil || got.ID != c.ID {
			t.Errorf("client %d: %v, %v", i, got, err)
		}
		if _, err := o.byEmail.Get(t.Context(), fmt.Sprintf("%d@example.com", i)); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("the old copy of client %d: %v", i, err)
		}
	}
	if found, err := harness.Findings(t.Context(), o.repo.Verify, nil); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if n := o.log.count("event=message_postponed"); n == 0 || n > 2*len(clients) {
		t.Errorf("%d lines about %d messages", n, len(clients))
	}
	if n := o.called.Load(); n < int64(2*len(clients)) {
		t.Errorf("the handler was called %d times for %d changes", n, 2*len(clients))
	}
}
