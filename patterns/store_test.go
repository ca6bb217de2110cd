package patterns_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// storeAccount opens the account of a process on the service.
func storeAccount(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
}

// personsIn opens a repository of the store with an index in another table, and photos in blobs.
func personsIn(t testing.TB, store *patterns.Store) (*patterns.Repository[person], *interpartition.Index[person, string]) {
	t.Helper()
	byEmail := interpartition.NewIndex("email", func(p *person) string { return p.Email },
		&interpartition.Options[person]{ByPartition: true, Table: store.Account().Table("Emails")})
	photo := largeentities.NewProperty[person]("Photo", blobstorage.Container(store.Account(), "photos"), nil)
	return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), byEmail, photo)), byEmail
}

// TestStoreCreatesWhatIsUsed: Create creates what was opened from the store, and what the patterns of its repositories use.
func TestStoreCreatesWhatIsUsed(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	var requests storagetest.RequestCounter
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, &requests)
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, &counted), "contoso", &patterns.StoreOptions{Prefix: "Test"}))
	repo, _ := personsIn(t, store)
	letters := assert.Must[*eventual.Queue](t)(eventual.OpenQueue(store, "letters", nil))
	blobstorage.Open(store, "scans")
	if n := requests.Count(); n != 0 {
		t.Errorf("%d requests before Create", n)
	}
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The tables Persons and Emails; containers photos and scans; a queue with a poison queue and a container.
	if n := requests.Count(); n != 2+2+3 {
		t.Errorf("Create made %d requests, want 7", n)
	}
	if err := store.Create(t.Context()); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := repo.Insert(t.Context(), ann()); err != nil {
		t.Error(err)
	}
	if _, err := letters.Send(t.Context(), "letter", "to Ann", nil); err != nil {
		t.Error(err)
	}
	names := []string{repo.Table().Name(), letters.Name()}
	if got := strings.Join(names, " "); got != "TestPersons test-letters" {
		t.Errorf("names are %s", got)
	}
}

// TestStoreCreatesInBothAccounts: an index in a table of another account is created even if both tables have one name.
func TestStoreCreatesInBothAccounts(t *testing.T) {
	here, there := storeAccount(t, storagetest.Simulator(t, nil)), storeAccount(t, storagetest.Simulator(t, nil))
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(here, "contoso", nil))
	byEmail := interpartition.NewIndex("email", func(p *person) string { return p.Email },
		&interpartition.Options[person]{ByPartition: true, Table: there.Table("Persons")})
	assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), byEmail))
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, here.Table("Persons").Create(t.Context()), tables.ErrExists)
	harness.WantKind(t, there.Table("Persons").Create(t.Context()), tables.ErrExists)
}

// TestStoreCreateByManyAtOnce: processes that start together all succeed.
func TestStoreCreateByManyAtOnce(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	failures := make(chan error)
	const processes = 5
	for range processes {
		store := assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, s), "contoso", nil))
		personsIn(t, store)
		go func() { failures <- store.Create(t.Context()) }()
	}
	for range processes {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

// TestStoreCreateGoesOn: what cannot be created is named, and the rest is created.
func TestStoreCreateGoesOn(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, s), "contoso", nil))
	bad, good := store.Table("no-table"), store.Table("Good")
	err := store.Create(t.Context())
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "create table no-table") {
		t.Errorf("Create returned %v", err)
	}
	if err := good.Create(t.Context()); !errors.Is(err, tables.ErrExists) {
		t.Errorf("the other table: %v, want ErrExists", err)
	}
	harness.WantKind(t, bad.Create(t.Context()), tables.ErrWiring)
}

// TestStoreRunFinishes: what a process has left that died after its commit, another one with the same store finishes.
func TestStoreRunFinishes(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		faulty, _ := s.Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
			if c.Kind == storagetest.InsertEntity && c.Resource == "Notes" {
				return storagetest.DiesBefore
			}
			return nil
		}))
		persons, _ := notedPersons(t, assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, faulty), "contoso", nil)))
		other := assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, s), "contoso", nil))
		_, noted := notedPersons(t, other)
		if err := other.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = persons.Insert(t.Context(), ann()) // whatever the dead process would have been told
		if noted.has(t, ann().Email, annKey()) {
			t.Fatal("the process did not die")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- eventual.Run(ctx, other, nil) }()
		time.Sleep(5 * time.Minute)
		if !noted.has(t, ann().Email, annKey()) {
			t.Error("there is no note")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestStoreRefuses: what cannot work is refused when it is declared.
func TestStoreRefuses(t *testing.T) {
	account := storeAccount(t, storagetest.Simulator(t, nil))
	for name, open := range map[string]func() (*patterns.Store, error){
		"account is nil": func() (*patterns.Store, error) { return patterns.NewStore(nil, "contoso", nil) },
		"name is empty":  func() (*patterns.Store, error) { return patterns.NewStore(account, "", nil) },
		"Con_toso":       func() (*patterns.Store, error) { return patterns.NewStore(account, "Con_toso", nil) },
		`Prefix is "1a"`: func() (*patterns.Store, error) {
			return patterns.NewStore(account, "contoso", &patterns.StoreOptions{Prefix: "1a"})
		},
		"VisibilityTimeout": func() (*patterns.Store, error) {
			return patterns.NewStore(account, "contoso", &patterns.StoreOptions{Intents: eventual.IntentQueue(&eventual.QueueOptions{VisibilityTimeout: time.Millisecond})})
		},
	} {
		if _, err := open(); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := patterns.NewRepository(account.Table("Persons"), personSchema(), mailNotes("notes", account.Table("Notes")))
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Store.Table") {
		t.Errorf("effects outside on a table of no store: %v", err)
	}
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(account, "contoso", nil))
	assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema()))
	harness.WantKind(t, eventual.Run(t.Context(), store, nil), tables.ErrWiring) // nothing has effects that need the queue
}

// TestStoreWithoutQueues: an account without a queue endpoint serves repositories whose patterns need no queue, such as indexes.
func TestStoreWithoutQueues(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: storeAccount(t, s).Endpoints().Table},
		s.AccountName, s.AccountKey, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(account, "contoso", nil))
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), emailIndex(), interpartition.NewIndex("mail", emailPart, nil)))
	if err := errors.Join(store.Create(t.Context()), repo.Insert(t.Context(), ann())); err != nil {
		t.Fatal(err)
	}
	_, err := patterns.NewRepository(store.Table("Others"), personSchema(), mailNotes("notes", store.Table("Notes")))
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "queue endpoint") {
		t.Errorf("effects outside: %v", err)
	}
}

// TestRunTimeTable: a table that the program creates itself has the store's queue, and Create leaves it alone.
func TestRunTimeTable(t *testing.T) {
	account := storeAccount(t, storagetest.Simulator(t, nil))
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(account, "contoso", nil))
	outside := interpartition.NewIndex("email", func(p *person) string { return p.Email }, &interpartition.Options[person]{ByPartition: true})
	table := store.RunTimeTable(account.Table("Tenant7"))
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema(), outside))
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.WantKind(t, repo.Insert(t.Context(), ann()), tables.ErrMissingResource)
	if err := errors.Join(table.Create(t.Context()), repo.Insert(t.Context(), ann())); err != nil {
		t.Error(err)
	}
}

// TestStoreThatNobodyMade: a nil or zero Store is refused by an error of what is opened from it, not by a panic.
func TestStoreThatNobodyMade(t *testing.T) {
	for name, store := range map[string]*patterns.Store{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			harness.WantKind(t, store.Table("Persons").Create(t.Context()), tables.ErrWiring)
			_, err := patterns.NewRepository(store.Table("Persons"), personSchema())
			harness.WantKind(t, err, tables.ErrWiring)
			_, err = eventual.OpenQueue(store, "letters", nil)
			harness.WantKind(t, err, tables.ErrWiring)
			if blobstorage.Open(store, "photos") != nil {
				t.Error("a container without an account")
			}
		})
	}
}

// TestInsertBeforeCreate: the error of a missing queue or table says that Store.Create creates it.
func TestInsertBeforeCreate(t *testing.T) {
	store := assert.Must[*patterns.Store](t)(patterns.NewStore(storeAccount(t, storagetest.Simulator(t, nil)), "contoso", nil))
	persons, _ := notedPersons(t, store)
	err := persons.Insert(t.Context(), ann())
	if !errors.Is(err, tables.ErrMissingResource) || !strings.Contains(err.Error(), "create the queue with Store.Create") {
		t.Errorf("without a queue: %v", err)
	}
	if err := eventual.Intents(store).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = persons.Insert(t.Context(), ann())
	if !errors.Is(err, tables.ErrMissingResource) || !strings.Contains(err.Error(), "create table Persons with Store.Create") {
		t.Errorf("without a table: %v", err)
	}
}
