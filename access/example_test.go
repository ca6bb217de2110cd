package access_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Review is a year of an employee, stored by department, employee and year.
type Review struct {
	tables.Meta
	Department string
	ID, Year   int
	Text       string
}

func reviewKey(r *Review) tables.Key {
	return tables.Key{Partition: r.Department, Row: compoundkey.Join("empid", compoundkey.Int(r.ID, 6), compoundkey.Int(r.Year, 4))}
}

// An employee may read and change her own reviews, and those of nobody else.
func Example() {
	ctx, service := context.Background(), storage()
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	reviews := fill(ctx, account.Table("Reviews"))

	// Where the account's key is: on a server.
	signer, err := access.NewSigner(account, service.AccountKey, clock(service))
	if err != nil {
		log.Fatal(err)
	}
	token, err := signer.Sign(access.Grant{
		Table:        reviews.Table().Name(),
		Range:        access.Rows("Sales", compoundkey.Starting("empid", compoundkey.Int(123, 6))),
		Permissions:  access.Query | access.Update,
		Lifetime:     time.Hour,
		InsecureHTTP: true, // the emulator has no TLS
	})
	if err != nil {
		log.Fatal(err)
	}
	secret := token.RevealAddress() // to the employee, and into no log

	// Where the employee is.
	token, err = access.Parse(secret)
	if err != nil {
		log.Fatal(err)
	}
	client, err := access.Open(token, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	mine := reviewsIn(client.Table())
	var last *Review
	for r, err := range mine.Query().Partition("Sales").All(ctx) { // of the partition, what is within the token's range
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.ID, r.Year, r.Text)
		last = r
	}
	last.Text = "best"
	fmt.Println(mine.Replace(ctx, last))
	_, err = mine.Get(ctx, reviewKey(&Review{Department: "Sales", ID: 124, Year: 2012})) // 0 requests
	fmt.Println(errors.Is(err, tables.ErrDenied), errors.Is(err, access.ErrOutside))
	err = mine.Delete(ctx, last) // 0 requests
	fmt.Println(errors.Is(err, tables.ErrDenied), errors.Is(err, access.ErrNotPermitted))
	// Output:
	// 123 2012 good
	// 123 2013 better
	// <nil>
	// true true
	// true true
}

// Tokens for the users of a server, each made once and renewed before it expires.
func ExampleIssuer() {
	ctx, service := context.Background(), storage()
	signer, err := access.NewSignerFromConnectionString(service.ConnectionString, clock(service))
	if err != nil {
		log.Fatal(err)
	}
	issuer, err := access.NewIssuer(signer, func(_ context.Context, user string) (access.Grant, error) {
		if user != "june" {
			return access.Grant{}, fmt.Errorf("%s: %w", user, tables.ErrDenied)
		}
		return access.Grant{Table: "Notes", Range: access.Partition(user), Permissions: access.Everything, InsecureHTTP: true}, nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	first, err := issuer.Token(ctx, "june")
	if err != nil {
		log.Fatal(err)
	}
	second, err := issuer.Token(ctx, "june")
	fmt.Println(first.Range(), second.RevealAddress() == first.RevealAddress(), err)
	_, err = issuer.Token(ctx, "mallory")
	fmt.Println(errors.Is(err, tables.ErrDenied))
	// Output:
	// partition "june" through partition "june" true <nil>
	// true
}

// A token that can be taken back stands on a policy of the table.
func ExamplePolicies() {
	ctx, service := context.Background(), storage()
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := fill(ctx, account.Table("Audited")).Table()
	policies, err := access.NewPolicies(table, &access.PoliciesOptions{UnsafeSettle: 200 * time.Millisecond}) // leave the default where others change policies, too
	if err != nil {
		log.Fatal(err)
	}
	now := clock(service).Now().UTC().Truncate(time.Second)
	auditors := access.Policy{ID: "auditors", Permissions: access.Query, Start: now.Add(-time.Hour), Expiry: now.AddDate(0, 3, 0)}
	if err := policies.Create(ctx, auditors); err != nil {
		log.Fatal(err)
	}
	signer, err := access.NewSigner(account, service.AccountKey, clock(service))
	if err != nil {
		log.Fatal(err)
	}
	token, err := signer.Sign(access.Grant{Table: table.Name(), Range: access.WholeTable(), Policy: auditors.ID, InsecureHTTP: true})
	if err != nil {
		log.Fatal(err)
	}
	auditor, err := access.Open(token, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	key := reviewKey(&Review{Department: "Sales", ID: 123, Year: 2012})
	_, err = auditor.Table().Entities().Get(ctx, key)
	fmt.Println(err)
	if err := policies.Revoke(ctx, auditors.ID); err != nil {
		log.Fatal(err)
	}
	_, err = auditor.Table().Entities().Get(ctx, key)
	fmt.Println(errors.Is(err, tables.ErrDenied))
	// Output:
	// <nil>
	// true
}

func reviewsIn(table *tables.Table) *patterns.Repository[Review] {
	reviews, err := patterns.NewRepository(table, patterns.Schema[Review]{Key: reviewKey})
	if err != nil {
		log.Fatal(err)
	}
	return reviews
}

func fill(ctx context.Context, table *tables.Table) *patterns.Repository[Review] {
	reviews := reviewsIn(table)
	if err := table.Create(ctx); err != nil {
		log.Fatal(err)
	}
	for _, r := range []*Review{{Department: "Sales", ID: 122, Year: 2012, Text: "fair"}, {Department: "Sales", ID: 123, Year: 2012, Text: "good"},
		{Department: "Sales", ID: 123, Year: 2013, Text: "better"}, {Department: "Sales", ID: 124, Year: 2012, Text: "secret"}} {
		if err := reviews.Insert(ctx, r); err != nil {
			log.Fatal(err)
		}
	}
	return reviews
}

// storage opens the service that the tests share.
func storage() *storagetest.Service {
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	return service
}

// clock is the clock of the service, which in a simulator is not the time of day.
func clock(s *storagetest.Service) *access.SignerOptions {
	if s.Clock == nil {
		return &access.SignerOptions{Now: time.Now}
	}
	return &access.SignerOptions{Now: s.Clock.Now}
}
