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

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// gate counts requests, and holds reads of single rows back until it is opened.
type gate struct {
	mu       sync.Mutex
	requests int
	shut     chan struct{} // nil while reads pass
}

func (g *gate) Do(req *policy.Request) (*http.Response, error) {
	g.mu.Lock()
	g.requests++
	shut := g.shut
	g.mu.Unlock()
	if raw := req.Raw(); shut != nil && raw.Method == http.MethodGet && strings.Contains(raw.URL.Path, "PartitionKey=") {
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
	g, behind := &gate{}, *s
	behind.ClientOptions.PerRetryPolicies = append(behind.ClientOptions.PerRetryPolicies, g)
	return harness.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, &behind), "contoso", options)), g
}

// personsOf opens a repository of the store with an index in another partition.
func personsOf(t testing.TB, store *patterns.Store, unique bool) (*patterns.Repository[person], *interpartition.Index[person]) {
	t.Helper()
	byEmail := interpartition.NewIndex("email", func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }, &interpartition.Options[person]{ByPartition: true, Unique: unique})
	repo := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), byEmail))
	harness.Check(t, store.Create(t.Context()))
	return repo, byEmail
}

// TestReturnsBeforeClose: an insert returns after put, transaction and copy, with Unique after the reservation too, while the entity is
// still to be read again. Close waits for that, and bounds the wait by its context.
func TestReturnsBeforeClose(t *testing.T) {
	for _, unique := range []bool{false, true} {
		store, g := gated(t, storagetest.Simulator(t, nil), nil)
		repo, _ := personsOf(t, store, unique)
		want := 3
		if unique {
			want = 4
		}
		g.close()
		g.count()
		ctx, cancel := context.WithCancel(t.Context())
		harness.Check(t, repo.Insert(ctx, ann()))
		cancel() // the caller's context ends with its request
		time.Sleep(10 * time.Millisecond)
		if n := g.count(); n != want+1 { // the read that is held back
			t.Errorf("unique %v: %d requests, want %d", unique, n, want+1)
		}
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := store.Close(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 intents") {
			t.Errorf("Close in the middle: %v", err)
		}
		g.open()
		harness.Check(t, store.Close(t.Context()))
		if n, err := eventual.Intents(store).Length(t.Context()); n != 0 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
		g.count()
		bob := ann()
		bob.ID, bob.Email = 8, "bob@contoso.com"
		harness.Check(t, repo.Insert(t.Context(), bob))
		if n := g.count(); n != want+2 {
			t.Errorf("after Close: %d requests, want %d: it closes its intent before it returns", n, want+2)
		}
	}
}

// TestWaitsForOwnClose: while the intent of a change is open, the next change of the same entity in this process is put on the queue and not
// committed; a change of another entity passes. At the limit of open intents a change closes its own.
func TestWaitsForOwnClose(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	store, g := gated(t, s, &patterns.StoreOptions{MaxOpen: 2})
	repo, byEmail := personsOf(t, store, false)
	g.close()
	june := ann()
	harness.Check(t, repo.Insert(t.Context(), june))
	g.count()
	june.Email = "june@contoso.com"
	done := make(chan error)
	go func() { done <- repo.Replace(t.Context(), june) }()
	bob := ann()
	bob.ID, bob.Email = 8, "bob@contoso.com"
	harness.Check(t, repo.Insert(t.Context(), bob))
	select {
	case err := <-done:
		t.Fatalf("the second change did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	other, _ := gated(t, s, nil)
	plain := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(other.Account().Table("Persons"), personSchema()))
	if seen := harness.Must[*person](t)(plain.Get(t.Context(), plain.KeyOf(june))); seen.Email == june.Email {
		t.Error("the second change is committed while the first intent is open")
	}
	g.open()
	harness.Check(t, <-done)
	found := harness.Must[*person](t)(byEmail.In(june.Team).Get(t.Context(), compoundkey.String("june@contoso.com")))
	if found.Email != june.Email {
		t.Errorf("found %q", found.Email)
	}
	harness.Check(t, store.Close(t.Context()))
}

// TestAsyncByPattern: of two indexes one follows at once, and the other when a worker comes to it. A pattern without effects outside is
// refused.
func TestAsyncByPattern(t *testing.T) {
	store, g := gated(t, storagetest.Open(t), nil)
	now := interpartition.NewIndex("now", func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }, &interpartition.Options[person]{ByPartition: true, Unique: true})
	later := interpartition.NewIndex("later", func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }, &interpartition.Options[person]{ByPartition: true})
	repo := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), now, patterns.Async(later)))
	harness.Check(t, store.Create(t.Context()), repo.Insert(t.Context(), ann()))
	partition, key := ann().Team, compoundkey.String(ann().Email)
	harness.Must[*person](t)(now.In(partition).Get(t.Context(), key))
	if _, err := later.In(partition).Get(t.Context(), key); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the other index: %v", err)
	}
	harness.Check(t, harness.DrainNow(t.Context(), eventual.Intents(store)))
	harness.Must[*person](t)(later.In(partition).Get(t.Context(), key))
	harness.Check(t, store.Close(t.Context()))
	if g.count() == 0 {
		t.Error("nothing was counted")
	}

	_, err := patterns.NewRepository(store.Table("Others"), personSchema(), patterns.Async(within{}))
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "without Async") {
		t.Errorf("a pattern of the partition: %v", err)
	}
	if _, err := patterns.NewRepository(store.Table("Others"), personSchema(), patterns.Async[person](nil)); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("nil: %v", err)
	}
}

// within is a pattern without effects outside.
type within struct{}

func (within) Attach(driver.Host[person]) (driver.Implementation[person], error) {
	return driver.Implementation[person]{Name: "within", Copies: func(*person) ([]driver.Copy, error) { return nil, nil }}, nil
}
