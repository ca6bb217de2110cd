package tables_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Login is a row as it is: its keys are fields.
type Login struct {
	tables.Meta
	PartitionKey, RowKey string
	Count                int64
}

// Rows of a table are values of a struct. A write is refused if somebody else has changed the row since it was read.
func Example() {
	ctx := context.Background()
	logins, err := tables.RowsOf[Login](simulatedTable("Logins"))
	if err != nil {
		log.Fatal(err)
	}
	first := &Login{PartitionKey: "contoso", RowKey: "june", Count: 1}
	if err := logins.Insert(ctx, first); err != nil {
		log.Fatal(err)
	}
	stale, err := logins.Get(ctx, tables.Key{Partition: "contoso", Row: "june"})
	if err != nil {
		log.Fatal(err)
	}
	first.Count = 2
	if err := logins.Replace(ctx, first); err != nil { // Insert left the ETag in first
		log.Fatal(err)
	}
	fmt.Println(errors.Is(logins.Replace(ctx, stale), tables.ErrConflict))
	for login, err := range logins.Query().Partition("contoso").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(login.RowKey, login.Count)
	}
	// Output:
	// true
	// june 2
}

// The ways to an account. None of them makes a request.
func ExampleNewAccount() {
	open := func() (*tables.Account, error) {
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		return tables.NewAccount(tables.AccountEndpoints("contoso"), credential, nil)
	}
	fromString := func() (*tables.Account, error) {
		return tables.NewAccountFromConnectionString(os.Getenv("CONTOSO_STORAGE"), nil)
	}
	fromEnv := func() (*tables.Account, error) {
		return tables.NewAccountFromEnv(nil)
	}
	for _, way := range []func() (*tables.Account, error){open, fromString, fromEnv} {
		account, err := way()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(account) // address and kind of credential, never a secret
	}
}

// Filters in the service's own language are classed as the guide divides queries.
func ExampleClassifyFilter() {
	for _, filter := range []string{
		"(PartitionKey eq 'Sales') and (RowKey eq '2')",
		"PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'",
		"PartitionKey eq 'Sales' and LastName eq 'Smith'",
		"PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')",
		"LastName eq 'Jones'",
	} {
		plan, err := tables.ClassifyFilter(filter)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(plan.Class, len(plan.Keys))
	}
	// Output:
	// point query 0
	// range query 0
	// partition scan 0
	// partition scan 2
	// table scan 0
}

// Any number of rows are packed into transactions. A run that ended early goes on where it stopped.
func ExampleRows_BulkNonAtomic() {
	ctx := context.Background()
	table := simulatedTable("ExampleBulk")
	var rows iter.Seq2[*tables.Entity, error] = func(yield func(*tables.Entity, error) bool) {
		for i := range 1234 {
			row := &tables.Entity{Key: tables.Key{Partition: fmt.Sprint(i % 3), Row: compoundkey.Join("", compoundkey.Int(i, 6))}}
			if !yield(row, nil) {
				return
			}
		}
	}

	begun, stop := context.WithCancel(ctx)
	first, err := table.Entities().BulkNonAtomic(begun, rows, &tables.BulkOptions{Progress: func(p tables.BulkReport) {
		if p.Written >= 500 {
			stop()
		}
	}})
	fmt.Println(errors.Is(err, context.Canceled), first.Written < 1234)

	rest, err := table.Entities().BulkNonAtomic(ctx, rows, &tables.BulkOptions{Resume: first.Resume, SkipExisting: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rest.Resume == "") // done
	stored := 0
	for _, err := range table.Entities().Query().Select("PartitionKey").AllowTableScan().All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		stored++
	}
	fmt.Println(stored)
	// Output:
	// true true
	// true
	// 1234
}

// The kinds of errors are a closed set; the rest is in the Error.
func ExampleError() {
	ctx := context.Background()
	bags := simulatedTable("ExampleError").Entities()

	err := bags.Insert(ctx, &tables.Entity{Key: tables.Key{Partition: "a/b", Row: "1"}})
	fmt.Println(err)
	var failed *tables.Error
	fmt.Println(errors.As(err, &failed) && failed.Op == "Insert" && failed.Kind == tables.ErrInvalid)

	large := &tables.Entity{Key: tables.Key{Partition: "a", Row: "1"}}
	large.Set("Photo", tables.Binary(make([]byte, 70_000)))
	fmt.Println(bags.Insert(ctx, large))
	// Output:
	// tablepatterns: Insert in ExampleError: invalid: partition key: compoundkey: key: U+002F '/' at offset 1 is not allowed in a key; build the part with compoundkey.String
	// true
	// tablepatterns: Insert in ExampleError ("a", "1"): too large: property Photo: binary of 70000 bytes is over the limit of 65536
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

// simulatedTable returns a new table on a new simulator.
func simulatedTable(name string) *tables.Table {
	table := simulatedAccount().Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}
