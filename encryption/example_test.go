package encryption_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Person has two properties that nobody but the program is to read.
type Person struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Number     string `encrypt:"true"`
	Salary     int64  `encrypt:"true"`
}

func keyOfPerson(p *Person) tables.Key {
	return tables.Key{Partition: p.Department, Row: compoundkey.Join("empid", compoundkey.Int(p.ID, 6))}
}

// openPeople opens the repository, with an index by the number, of which the service sees a keyed hash only.
func openPeople(store *patterns.Store, registry *encryption.Registry) (*patterns.Repository[Person], func(ctx context.Context, number string) (*Person, error), error) {
	beacon, err := registry.Beacon("number", 32)
	if err != nil {
		return nil, nil, err
	}
	byNumber := intrapartition.NewIndex("number", func(p *Person) compoundkey.Part { return beacon.Part(tables.String(p.Number)) }, nil)
	people, err := patterns.NewRepository(store.Table("ExamplePeople"), patterns.Schema[Person]{Key: keyOfPerson, Prefix: "empid"},
		encryption.New[Person]("encryption", registry, nil), byNumber)
	if err != nil {
		return nil, nil, err
	}
	find := func(ctx context.Context, number string) (*Person, error) {
		hits := byNumber.In("Sales").All(ctx, beacon.Part(tables.String(number)))
		for p, err := range encryption.Matching(hits, func(p *Person) bool { return p.Number == number }) {
			return p, err
		}
		return nil, tables.ErrNotFound
	}
	return people, find, nil
}

// Number and salary are encrypted in the program, and found again; what somebody else put into their place is refused.
func Example() {
	ctx := context.Background()
	wrapper, err := encryption.NewLocalKey("2026", []byte("32 bytes out of a store of keys!")) // or NewVaultKey
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("people", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	registry, err := encryption.NewRegistry(store.Table("ExampleDataKeys"), wrapper, nil)
	if err != nil {
		log.Fatal(err)
	}
	people, find, err := openPeople(store, registry)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the tables, the first data key, and the key of the beacon
		log.Fatal(err)
	}
	june := &Person{Department: "Sales", ID: 223, Name: "June Jones", Number: "078-05-1120", Salary: 71_000}
	if err := people.Insert(ctx, june); err != nil {
		log.Fatal(err)
	}
	found, err := find(ctx, "078-05-1120")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Name, found.Number, found.Salary)

	rows := people.Table().Entities()
	stored, err := rows.Get(ctx, keyOfPerson(june))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.Get("Name").Any(), stored.Get("Salary").Type())

	tampered := &tables.Entity{Key: stored.Key, Properties: stored.Properties}
	tampered.Set("Salary", tables.Int64(710_000))
	if err := rows.Upsert(ctx, tampered); err != nil {
		log.Fatal(err)
	}
	_, err = people.Get(ctx, keyOfPerson(june))
	fmt.Println(errors.Is(err, encryption.ErrNotAuthentic))
	// Output:
	// June Jones 078-05-1120 71000
	// June Jones Edm.Binary
	// true
}

// rotateWrappingKey puts a new wrapping key in the place of an old one. No entity is touched.
func rotateWrappingKey(ctx context.Context, keys *tables.Table, next, old encryption.KeyWrapper) error {
	registry, err := encryption.NewRegistry(keys, encryption.NewChain(next, old), nil)
	if err != nil {
		return err
	}
	_, err = registry.Rewrap(ctx) // every program has both by now
	return err
}

// rotateDataKey puts a new data key in the place of an old one, in all entities.
func rotateDataKey(ctx context.Context, registry *encryption.Registry, people *patterns.Repository[Person]) error {
	if _, err := registry.CreateDataKey(ctx); err != nil {
		return err
	}
	// After the TTL of all programs, and a minute:
	progress, err := encryption.Reencrypt(ctx, people, nil)
	if err == nil && progress.Failed > 0 {
		err = fmt.Errorf("%d entities could not be written", progress.Failed)
	}
	return err
}

// Wrapping keys and data keys are replaced while the program is in use.
func Example_rotation() {
	ctx := context.Background()
	account := simulatedAccount()
	old, err1 := encryption.NewLocalKey("2026", []byte("32 bytes out of a store of keys!"))
	next, err2 := encryption.NewLocalKey("2027", []byte("32 others out of a store of keys"))
	keys := account.Table("ExampleRotatedKeys")
	registry, err3 := encryption.NewRegistry(keys, encryption.NewChain(next, old), nil)
	people, err4 := patterns.NewRepository(account.Table("ExampleRotated"), patterns.Schema[Person]{Key: keyOfPerson}, encryption.New[Person]("encryption", registry, nil))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		log.Fatal(err)
	}
	before, err := encryption.NewRegistry(keys, old, nil)
	if err := errors.Join(err, keys.Create(ctx), people.Table().Create(ctx)); err != nil {
		log.Fatal(err)
	}
	if _, err := before.CreateDataKey(ctx); err != nil {
		log.Fatal(err)
	}
	if err := people.Insert(ctx, &Person{Department: "Sales", ID: 1}); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(rotateWrappingKey(ctx, keys, next, old), rotateDataKey(ctx, registry, people)); err != nil {
		log.Fatal(err)
	}
	uses, err := encryption.Uses(ctx, people.Table())
	if err != nil {
		log.Fatal(err)
	}
	for info, err := range registry.DataKeys(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if info.Current {
			defer fmt.Println("current:", info.WrappedBy, uses[info.ID])
		} else {
			fmt.Println("old:", info.WrappedBy, uses[info.ID])
		}
	}
	// Output:
	// old: 2027 0
	// current: 2027 3
}

// simulatedAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func simulatedAccount() *tables.Account {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}
