package access_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// One employee is two entities in two tables, one to one, since a token is for one table: whoever may read the telephone list never gets
// the salaries.
func ExampleSigner_oneToOne() {
	ctx := context.Background()
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	options := &tables.AccountOptions{ClientOptions: service.ClientOptions}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, options)
	if err != nil {
		log.Fatal(err)
	}
	key := tables.Key{Partition: "Sales", Row: "empid_000223"}
	telephones, salaries := account.Table("OneToOneTelephones"), account.Table("OneToOneSalaries")
	for table, property := range map[*tables.Table]tables.Property{
		telephones: {Name: "Telephone", Value: tables.String("555-0100")}, salaries: {Name: "Salary", Value: tables.Int32(4000)},
	} {
		if err := table.CreateIfMissing(ctx); err != nil {
			log.Fatal(err)
		}
		if err := table.Entities().Upsert(ctx, &tables.Entity{Key: key, Properties: tables.Properties{property}}); err != nil {
			log.Fatal(err)
		}
	}

	now := time.Now
	if service.Clock != nil { // of the simulator, which has a time of its own
		now = service.Clock.Now
	}
	signer, err := access.NewSigner(account, service.AccountKey, &access.SignerOptions{Now: now})
	if err != nil {
		log.Fatal(err)
	}
	token, err := signer.Sign(access.Grant{Table: telephones.Name(), Range: access.WholeTable(), Permissions: access.Query, Lifetime: time.Hour, InsecureHTTP: true})
	if err != nil {
		log.Fatal(err)
	}
	client, err := access.Open(token, options)
	if err != nil {
		log.Fatal(err)
	}
	e, err := client.Table().Entities().Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	telephone, _ := e.Get("Telephone").Text()
	fmt.Println(telephone)
	_, err = client.Table().Account().Table(salaries.Name()).Entities().Get(ctx, key)
	fmt.Println(errors.Is(err, tables.ErrDenied))
	// Output:
	// 555-0100
	// true
}
