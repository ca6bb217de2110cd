package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// leave deletes all that a tenant has whose name is the partition key. docs/howto/tenant-leaves.md shows it.
func leave(ctx context.Context, store *patterns.Store, tenant, resume string) (patterns.DeleteReport, error) {
	return store.DeletePartition(ctx, tenant, &patterns.DeleteOptions{Resume: resume, Found: func(f patterns.Finding) error {
		fmt.Println(f) // what could not be deleted, with the reason
		return nil
	}})
}

// A tenant leaves: the tenant's entities are deleted with their copies in an index over all tenants.
func ExampleStore_DeletePartition() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	byEmail := interpartition.NewUnique("email", func(c *Customer) compoundkey.Folded { return compoundkey.Folded(c.Email) }, nil)
	customers, err := patterns.NewRepository(store.Table("ExampleLeaving"), patterns.Schema[Customer]{
		Key: func(c *Customer) tables.Key {
			return tables.Key{Partition: c.Region, Row: compoundkey.Join("customer", compoundkey.Int(c.Number, 6))}
		},
		Prefix: "customer",
	}, byEmail)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i, tenant := range []string{"fabrikam", "adatum", "fabrikam"} {
		if err := customers.Insert(ctx, &Customer{Region: tenant, Number: i, Email: fmt.Sprint(i, "@contoso.com")}); err != nil {
			log.Fatal(err)
		}
	}
	report, err := leave(ctx, store, "fabrikam", "")
	fmt.Println(report.Deleted, "deleted,", report.Failed, "failed,", err)
	_, err = byEmail.Get(ctx, "0@contoso.com")
	fmt.Println(errors.Is(err, tables.ErrNotFound), stop())
	// Output:
	// 2 deleted, 0 failed, <nil>
	// true <nil>
}
