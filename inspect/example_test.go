package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fill writes orders with the bare SDK, as another program has.
func fill(ctx context.Context, account *tables.Account, name string) {
	service := account.TableService()
	if _, err := service.CreateTable(ctx, name, nil); err != nil {
		log.Fatal(err)
	}
	client := service.NewClient(name)
	for _, row := range []map[string]any{
		{"PartitionKey": "contoso", "RowKey": "O-0001", "Email": "june@contoso.com", "Total": 12.5, "Paid": true},
		{"PartitionKey": "contoso", "RowKey": "O-0002", "Email": "ann@contoso.com", "Total": 7.25},
		{"PartitionKey": "contoso", "RowKey": "O-0003", "Email": "june@contoso.com", "Total": 3, "Paid": false},
		{"PartitionKey": "contoso", "RowKey": "O-0004", "Email": "bob@contoso.com", "Total": "free"},
		{"PartitionKey": "contoso", "RowKey": "settings", "Theme": "dark"},
	} {
		body, err := json.Marshal(row)
		if err == nil {
			_, err = client.AddEntity(ctx, body, nil)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleTable() {
	ctx, account := context.Background(), simulatedAccount()
	fill(ctx, account, "ExampleOrders")

	report, err := inspect.Table(ctx, account.Table("ExampleOrders"), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Rows, "rows in", report.Partitions.Count, "partition")
	for _, p := range report.Properties {
		fmt.Println(p.Name, p.Types, p.Absent, "lack it")
	}
	fmt.Println(report.Struct("orders"))
	// Output:
	// 5 rows in 1 partition
	// Email [{Edm.String 4}] 1 lack it
	// Paid [{Edm.Boolean 2}] 3 lack it
	// Theme [{Edm.String 1}] 4 lack it
	// Total [{Edm.Double 2} {Edm.String 1} {Edm.Int32 1}] 1 lack it
	// package orders
	//
	// import (
	// 	"github.com/tablepatterns/tablepatterns/tables"
	// )
	//
	// // ExampleOrders is an entity of table ExampleOrders, of which there were 5.
	// type ExampleOrders struct {
	// 	tables.Meta
	//
	// 	PartitionKey, RowKey string
	//
	// 	Email *string      // 1 lack it
	// 	Paid  *bool        // 3 lack it
	// 	Theme *string      // 4 lack it
	// 	Total tables.Value // 2 Edm.Double, 1 Edm.String, 1 Edm.Int32
	//
	// 	// Rest holds the properties without a field, so that a Replace keeps them.
	// 	Rest map[string]tables.Value `table:",rest"`
	// }
}

type order struct {
	tables.Meta
	PartitionKey, RowKey string

	Email string
	Total float64
}

func ExampleRepository() {
	ctx, account := context.Background(), simulatedAccount()
	fill(ctx, account, "ExampleAdopted")

	// The repository that the program would have, with an index that the table does not have yet.
	byEmail := intrapartition.NewUnique("email", func(o *order) string { return o.Email }, nil)
	orders, err := patterns.NewRepository(account.Table("ExampleAdopted"), patterns.Schema[order]{
		Key: func(o *order) tables.Key { return tables.Key{Partition: o.PartitionKey, Row: o.RowKey} },
	}, byEmail)
	if err != nil {
		log.Fatal(err)
	}
	report, err := inspect.Repository(ctx, orders, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, warning := range report.Warnings {
		fmt.Println(warning)
	}
	for _, taken := range report.Schema.TakenKeys {
		fmt.Println(taken.Patterns, taken.Key, "for", taken.By)
	}
	fmt.Println("Rebuild:", report.Schema.Rebuild.Least.All(), "to", report.Schema.Rebuild.Most.All(), "requests")
	// Output:
	// index keys that two rows or more want: 1; Rebuild fills each for one of the rows
	// entities that inspect_test.order does not read: 1 of 5
	// fields of inspect_test.order that would turn an absent property into a zero value: 2; make them pointers, or tag them omitzero
	// properties without a field in inspect_test.order, which a Replace would remove: 2; add a field tagged rest
	// properties with values of several types that no field reads together: 1; correct the rows, or use a tables.Value
	// [email] ("contoso", "email_june@contoso.com") for [("contoso", "O-0001") ("contoso", "O-0003")]
	// Rebuild: 2 to 4 requests
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
