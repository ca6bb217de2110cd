package patterns_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// gate counts requests. While it is closed, it holds back reads of single rows or, with writes set, the writes after the first ones.
type gate struct {
	mu       sync.Mutex
	requests int
	writes   int           // so many writes pass a closed gate; 0 for all
	shut     chan struct{} // nil while requests pass
}

func (g *gate) Do(req *policy.Request) (*http.Response, error) {
	g.mu.Lock()
	g.requests++
	shut, raw := g.shut, req.Raw()
	holds := raw.Method == http.MethodGet && strings.Contains(raw.URL.Path, "PartitionKey=")
	if g.writes > 0 {
		holds = raw.Method != http.MethodGet && g.requests > g.writes
	}
	g.mu.Unlock()
	if shut != nil && holds {
		<-shut
	}
	return req.Next()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// count returns the requests since the last call.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.requests
	g.requests = 0
	return n
}

// gated is a store whose requests go through a gate.
func gated(t testing.TB, s *storagetest.Service, options *patterns.StoreOptions) (*patterns.Store, *gate) {
	g, behind, with := &gate{}, *s, patterns.StoreOptions{}
	if options != nil {
		with = *options
	}
	behind.ClientOptions.PerRetryPolicies = append(behind.ClientOptions.PerRetryPolicies, g)
	with.Account = storeAccount(t, &behind)
	return assert.Must[*patterns.Store](t)(patterns.Open("contoso", &with)), g
}

// mailNotes are notes of the mail addresses of persons.
func mailNotes(name string, table *tables.Table) *notes[person] {
	return &notes[person]{name: name, table: table, text: func(p *person) string { return p.Email }}
}

// notedPersons opens a repository of the store whose persons have notes in another table.
func notedPersons(t testing.TB, store *patterns.Store) (*patterns.Repository[person], *notes[person]) {
	t.Helper()
	noted := mailNotes("notes", store.Table("Notes"))
	return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), noted)), noted
}

// bob is another person than ann.
func bob() *person {
	p := ann()
	p.ID, p.Email = 8, "bob@contoso.com"
	return p
}

// TestReturnsBeforeClose: an insert returns after put, transaction and note, while the entity is still to be read again. Close waits for
// that, and bounds the wait by its context.
func TestReturnsBeforeClose(t *testing.T) {
	const want = 3
	store, g := gated(t, storagetest.Simulator(t, nil), nil)
	repo, _ := notedPersons(t, store)
	assert.Check(t, store.Create(t.Context()))
	g.close()
	g.count()
	ctx, cancel := context.WithCancel(t.Context())
	assert.Check(t, repo.Insert(ctx, ann()))
	cancel() // the caller's context ends with its request
	time.Sleep(10 * time.Millisecond)
	if n := g.count(); n != want+1 { // the read that is held back
		t.Errorf("%d requests, want %d", n, want+1)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := harness.Settle(short, store); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 intents") {
		t.Errorf("Close in the middle: %v", err)
	}
	g.open()
	assert.Check(t, harness.Settle(t.Context(), store))
	if n, err := eventual.Intents(store).Length(t.Context()); n != 0 || err != nil {
		t.Errorf("%d messages are left, %v", n, err)
	}
	g.count()
	assert.Check(t, repo.Insert(t.Context(), bob()))
	if n := g.count(); n != want+2 {
		t.Errorf("after Close: %d requests, want %d: it closes its intent before it returns", n, want+2)
	}
}

// TestReturnsBeforeSettling: an insert with an index in another partition returns after mark and transaction. Close waits until the copy is
// settled, and bounds the wait by its context. After Close, a change settles its copies before it returns.
func TestReturnsBeforeSettling(t *testing.T) {
	const want = 2
	store, g := gated(t, storagetest.Simulator(t, nil), nil)
	byEmail := interpartition.NewUnique("email", emailPart, nil)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), byEmail))
	assert.Check(t, store.Create(t.Context()))
	g.count()
	g.writes = want
	ctx, cancel := context.WithCancel(t.Context())
	g.close()
	assert.Check(t, repo.Insert(ctx, ann()))
	cancel()
	time.Sleep(10 * time.Millisecond)
	if n := g.count(); n != want+1 {
		t.Errorf("%d requests, want %d", n, want+1)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := harness.Settle(short, store); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close in the middle: %v", err)
	}
	g.open()
	assert.Check(t, harness.Settle(t.Context(), store))
	for _, p := range []*person{ann(), bob()} {
		if p.ID == bob().ID {
			g.count()
			assert.Check(t, repo.Insert(t.Context(), p))
			if n := g.count(); n != want+1 {
				t.Errorf("after Close: %d requests, want %d: it settles its copies before it returns", n, want+1)
			}
		}
		assert.Must[*person](t)(byEmail.Get(t.Context(), emailPart(p)))
		if n := g.count(); n != 1 {
			t.Errorf("%s: %d requests to read a settled copy", p.Email, n)
		}
	}
}

// TestWaitsForOwnClose: while the intent of a change is open, the next change of the same entity in this process is put on the queue and not
// committed; a change of another entity passes. At the limit of open intents a change closes its own.
func TestWaitsForOwnClose(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	store, g := gated(t, s, &patterns.StoreOptions{MaxOpen: 2})
	repo, noted := notedPersons(t, store)
	assert.Check(t, store.Create(t.Context()))
	g.close()
	june := ann()
	assert.Check(t, repo.Insert(t.Context(), june))
	g.count()
	june.Email = "june@contoso.com"
	done := make(chan error)
	go func() { done <- repo.Replace(t.Context(), june) }()
	assert.Check(t, repo.Insert(t.Context(), bob()))
	select {
	case err := <-done:
		t.Fatalf("the second change did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	other, _ := gated(t, s, nil)
	plain := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(other.Account().Table("Persons"), personSchema()))
	if seen := assert.Must[*person](t)(plain.Get(t.Context(), plain.KeyOf(june))); seen.Email == june.Email {
		t.Error("the second change is committed while the first intent is open")
	}
	g.open()
	assert.Check(t, <-done)
	if !noted.has(t, june.Email, annKey()) || noted.has(t, ann().Email, annKey()) {
		t.Error("the notes are not those of the second change")
	}
	assert.Check(t, harness.Settle(t.Context(), store))
}

// TestAsyncByPattern: of two patterns one follows at once, and the other when a worker comes to it. A pattern without effects that could be
// left to workers is refused: one of the partition, and an index in another partition.
func TestAsyncByPattern(t *testing.T) {
	store, g := gated(t, storagetest.Open(t), nil)
	table := store.Table("Notes")
	now, later := mailNotes("now", table), mailNotes("later", table)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), now, patterns.Async(later)))
	assert.Check(t, store.Create(t.Context()), repo.Insert(t.Context(), ann()))
	if !now.has(t, ann().Email, annKey()) || later.has(t, ann().Email, annKey()) {
		t.Error("before a worker runs, the notes are not those of the first pattern alone")
	}
	assert.Check(t, harness.DrainNow(t.Context(), eventual.Intents(store)))
	if !later.has(t, ann().Email, annKey()) {
		t.Error("the worker has left no note")
	}
	assert.Check(t, harness.Settle(t.Context(), store))
	if g.count() == 0 {
		t.Error("nothing was counted")
	}

	for name, p := range map[string]patterns.Pattern[person]{"of the partition": within{}, "an index elsewhere": interpartition.NewIndex("email", emailPart, nil)} {
		_, err := patterns.NewRepository(store.Table("Others"), personSchema(), patterns.Async(p))
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "without Async") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := patterns.NewRepository(store.Table("Others"), personSchema(), patterns.Async[person](nil)); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("nil: %v", err)
	}
}

// within is a pattern without effects outside.
type within struct{}

func (within) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "within", Copies: driver.Of(func(*person) ([]driver.Copy, error) { return nil, nil })}, nil
}
