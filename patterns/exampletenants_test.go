package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// tenants has a table of customers for each tenant, which it opens when it is asked for it first.
type tenants struct {
	store *patterns.Store
	names []string // of all tenants' tables; a service reads them from its directory

	mu   sync.Mutex
	open map[string]*tenant // by table
}

type tenant struct {
	customers *patterns.Repository[Customer]
	byEmail   *interpartition.Unique[Customer, compoundkey.Folded]
}

func openTenants(account *tables.Account, names ...string) (t *tenants, err error) {
	t = &tenants{names: names, open: map[string]*tenant{}}
	t.store, err = patterns.Open("contoso", &patterns.StoreOptions{Account: account, Intents: eventual.IntentQueue(nil, nil), OpenRepository: func(table string) error {
		_, err := t.of(table)
		return err
	}})
	return t, err
}

// of returns the repository of a tenant's table.
func (t *tenants) of(table string) (*tenant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.open[table]; known != nil {
		return known, nil
	}
	if !slices.Contains(t.names, table) {
		return nil, errors.New("this is no tenant's table") // anybody who can write to the queue can name any table
	}
	opened := &tenant{byEmail: interpartition.NewUnique("email", func(c *Customer) compoundkey.Folded { return compoundkey.Folded(c.Email) },
		nil)}
	var err error
	opened.customers, err = patterns.NewRepository(t.store.RunTimeTable(t.store.Account().Table(table)), patterns.Schema[Customer]{
		Key: func(c *Customer) tables.Key {
			return tables.Key{Partition: c.Region, Row: compoundkey.Join("customer", compoundkey.Int(c.Number, 6))}
		},
	}, opened.byEmail)
	if err != nil {
		return nil, err
	}
	t.open[table] = opened
	return opened, nil
}

// Each tenant has a table of its own. If a pattern has effects that need the queue, the workers of another process finish a tenant's changes,
// too: they open its repository when they find a message about it.
func ExampleStoreOptions_tenants() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	shop, err := openTenants(account, "TenantAdventure", "TenantNorthwind")
	if err != nil {
		log.Fatal(err)
	}
	adventure, err := shop.of("TenantAdventure")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(shop.store.Create(ctx), adventure.customers.Table().CreateIfMissing(ctx)); err != nil {
		log.Fatal(err)
	}
	if err := adventure.customers.Insert(ctx, &Customer{Region: "West", Number: 7, Email: "june@contoso.com"}); err != nil {
		log.Fatal(err)
	}
	found, err := adventure.byEmail.Get(ctx, "June@contoso.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Region, found.Number)
	_, err = shop.of("Orders")
	fmt.Println(err)
	// Output:
	// West 7
	// this is no tenant's table
}
