package patterns_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// tenantIn makes the repository of a tenant's table.
func tenantIn(store *patterns.Store, table string) (*patterns.Repository[person], *notes[person], error) {
	in := store.RunTimeTable(store.Account().Table(table))
	noted := mailNotes("notes", in)
	repo, err := patterns.NewRepository(in, personSchema(), noted)
	return repo, noted, err
}

// dieInTenant has a process insert a person in a tenant's table and die before it has written the note.
func dieInTenant(t *testing.T, s *storagetest.Service, p *person) {
	t.Helper()
	inserts := 0
	dead, _ := s.Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
		if c.Kind == storagetest.InsertEntity {
			if inserts++; inserts == 2 {
				return storagetest.DiesBefore
			}
		}
		return nil
	}))
	repo, _, err := tenantIn(assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, dead)})), "Tenant7")
	assert.Check(t, err)
	_ = repo.Insert(t.Context(), p) // whatever the dead process would have been told
}

// TestStoreRunOpensRepositories: a worker that has opened no tenant finishes what processes have left in the tenant's table. It opens
// the repository once, although several messages name it, and tries again after an error.
func TestStoreRunOpensRepositories(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		var calls atomic.Int64
		var noted *notes[person]
		var worker *patterns.Store
		worker = assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, s), Intents: eventual.IntentQueue(nil, nil), OpenRepository: func(name string) (err error) {
			switch calls.Add(1) {
			case 1:
				return errors.New("the list of tenants cannot be read")
			case 2:
				return nil // and makes none
			}
			_, noted, err = tenantIn(worker, name)
			return err
		}}))
		assert.Check(t, worker.Create(t.Context()), worker.Account().Table("Tenant7").Create(t.Context()))
		dieInTenant(t, s, ann())
		dieInTenant(t, s, bob())
		stop := assert.Must[func() error](t)(worker.Start(t.Context()))
		time.Sleep(30 * time.Minute)
		assert.Check(t, stop())
		if n := calls.Load(); n != 3 {
			t.Fatalf("the repository was opened %d times, want two failures and a success", n)
		}
		for _, p := range []*person{ann(), bob()} {
			if !noted.has(t, p.Email, personSchema().Key(p)) {
				t.Errorf("there is no note of %s", p.Email)
			}
		}
	})
}

// TestStoreThatOpensRepositories: it has the queue that they will need, before there is one.
func TestStoreThatOpensRepositories(t *testing.T) {
	account := storeAccount(t, storagetest.Simulator(t, nil))
	store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: account, Intents: eventual.IntentQueue(nil, nil), OpenRepository: func(string) error { return nil }}))
	assert.Check(t, store.Create(t.Context()))
	harness.WantKind(t, eventual.Intents(store).Create(t.Context()), tables.ErrExists)
}
