package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// exampleTable creates a table on the service that the tests share.
func exampleTable(name string) *patterns.Table {
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := patterns.NewAccountFromConnectionString(service.ConnectionString, &patterns.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}

// Worker is stored by department and id, without any pattern.
type Worker struct {
	patterns.Meta
	Department string
	ID         int
	Name       string
	Age        int
	Hired      time.Time
}

func staffOf(table *patterns.Table) *patterns.Repository[Worker] {
	repository, err := patterns.NewRepository(table, patterns.Schema[Worker]{
		Key: func(w *Worker) patterns.Key {
			return patterns.Key{Partition: w.Department, Row: compoundkey.Join("", compoundkey.Int(w.ID, 6))}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return repository
}

// hireAll inserts workers 1 to n.
func hireAll(ctx context.Context, repository *patterns.Repository[Worker], n int) {
	hired := func(yield func(*Worker, error) bool) {
		for i := range n {
			w := &Worker{Department: "Sales", ID: i + 1, Name: fmt.Sprintf("Worker %d", i+1), Age: 20 + i,
				Hired: time.Date(2010+i, 1, 15, 0, 0, 0, 0, time.UTC)}
			if !yield(w, nil) {
				return
			}
		}
	}
	if _, err := repository.BulkInsertNonAtomic(ctx, hired, nil); err != nil {
		log.Fatal(err)
	}
}

// The ways to an account. None of them makes a request.
func ExampleNewAccount() {
	open := func() (*patterns.Account, error) {
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		return patterns.NewAccount(patterns.AccountEndpoints("contoso"), credential, nil)
	}
	fromString := func() (*patterns.Account, error) {
		return patterns.NewAccountFromConnectionString(os.Getenv("CONTOSO_STORAGE"), nil)
	}
	fromEnv := func() (*patterns.Account, error) {
		return patterns.NewAccountFromEnv(nil)
	}
	for _, way := range []func() (*patterns.Account, error){open, fromString, fromEnv} {
		account, err := way()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(account) // address and kind of credential, never a secret
	}
}

func ExampleRepository() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExampleRepository"))

	ken := &Worker{Department: "Sales", ID: 10, Name: "Ken Kwok", Age: 23, Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	if err := employees.Insert(ctx, ken); err != nil {
		log.Fatal(err)
	}
	stale, err := employees.Get(ctx, ken.Key())
	if err != nil {
		log.Fatal(err)
	}
	ken.Age = 24
	if err := employees.Replace(ctx, ken); err != nil { // Insert left the ETag in ken
		log.Fatal(err)
	}
	stale.Age = 25
	fmt.Println(errors.Is(employees.Replace(ctx, stale), patterns.ErrConflict))
	fmt.Println(errors.Is(employees.Insert(ctx, &Worker{Department: "Sales", ID: 10, Hired: ken.Hired}), patterns.ErrExists))
	if err := employees.Delete(ctx, ken); err != nil {
		log.Fatal(err)
	}
	_, err = employees.Get(ctx, patterns.Key{Partition: "Sales", Row: "000010"})
	fmt.Println(errors.Is(err, patterns.ErrNotFound))
	// Output:
	// true
	// true
	// true
}

// Update reads, changes and replaces, and begins again where somebody came between.
func ExampleRepository_Update() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExampleUpdate"))
	hireAll(ctx, employees, 1)

	birthday := func(w *Worker) error {
		w.Age++
		return nil
	}
	w, err := employees.Update(ctx, patterns.Key{Partition: "Sales", Row: "000001"}, birthday)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Age)
	// Output: 21
}

// Explain shows what a change would write, and writes nothing.
func ExampleRepository_Explain() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExampleExplain"))

	w := &Worker{Department: "Sales", ID: 10, Name: "Ken Kwok", Age: 23, Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	explained, err := employees.Explain(ctx, patterns.ChangeInsert, w)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(explained.Requests)
	fmt.Println(explained.Rows[0].Verb, explained.Rows[0].RowKey, explained.Rows[0].Condition)
	// Output:
	// [1 single write]
	// insert 000010 must not exist
}

// A query says what it will cost before it is sent.
func ExampleQuery() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExampleQuery"))
	hireAll(ctx, employees, 30)

	query := employees.Query().Partition("Sales").
		Where(patterns.Gt("Age", 40), patterns.Lt("Hired", time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC))).
		Select("Name")
	plan, err := query.Plan()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Class)
	fmt.Println(plan.Filter)
	for w, err := range query.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(w.Name)
	}
	_, err = employees.Query().Where(patterns.Eq("Name", "Worker 7")).First(ctx)
	fmt.Println(errors.Is(err, patterns.ErrTableScan))
	// Output:
	// partition scan
	// PartitionKey eq 'Sales' and Age gt 40L and Hired lt datetime'2035-01-01T00:00:00Z'
	// Worker 22
	// Worker 23
	// Worker 24
	// Worker 25
	// true
}

// A continuation token can be kept, and used by another process with an equal query.
func ExampleQuery_Page() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExamplePage"))
	hireAll(ctx, employees, 25)

	token := ""
	for {
		page, err := employees.Query().Partition("Sales").PageSize(10).Page(ctx, token)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Items))
		if token = page.Next; token == "" {
			break
		}
	}
	// Output:
	// 10
	// 10
	// 5
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
		plan, err := patterns.ClassifyFilter(filter)
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

// What a Plan lists as Keys is read for less by GetMany.
func ExampleRepository_GetMany() {
	ctx := context.Background()
	employees := staffOf(exampleTable("ExampleGetMany"))
	hireAll(ctx, employees, 5)

	keys := []patterns.Key{{Partition: "Sales", Row: "000004"}, {Partition: "Sales", Row: "000009"}, {Partition: "Sales", Row: "000002"}}
	for w, err := range employees.GetMany(ctx, keys, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(w.Name)
	}
	// Output:
	// Worker 4
	// Worker 2
}

// A transaction is applied whole or not at all.
func ExampleTransaction() {
	ctx := context.Background()
	table := exampleTable("ExampleTransaction")
	department := &patterns.Entity{Key: patterns.Key{Partition: "Sales", Row: "Department"}}
	department.Set("EmployeeCount", patterns.Int32(1))
	if err := table.Entities().Insert(ctx, department); err != nil {
		log.Fatal(err)
	}

	employees := staffOf(table)
	x := table.NewTransaction()
	ken := &Worker{Department: "Sales", ID: 10, Name: "Ken Kwok", Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	if err := employees.StageInsert(ctx, x, ken); err != nil {
		log.Fatal(err)
	}
	department.Set("EmployeeCount", patterns.Int32(2))
	x.Replace(department) // only if nobody changed it since it was written
	if _, err := x.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	again := table.NewTransaction()
	again.DeleteUnconditional(ken.Key())
	again.Replace(department) // the ETag is that of the first write
	_, err := again.Commit(ctx)
	var failed *patterns.Error
	fmt.Println(errors.Is(err, patterns.ErrConflict), errors.As(err, &failed) && failed.Change == 2)
	_, err = employees.Get(ctx, ken.Key())
	fmt.Println(err)
	// Output:
	// true true
	// <nil>
}

// Any number of rows are packed into transactions. A run that ended early goes on where it stopped.
func ExampleTypedTable_BulkNonAtomic() {
	ctx := context.Background()
	table := exampleTable("ExampleBulk")
	var rows iter.Seq2[*patterns.Entity, error] = func(yield func(*patterns.Entity, error) bool) {
		for i := range 1234 {
			row := &patterns.Entity{Key: patterns.Key{Partition: fmt.Sprint(i % 3), Row: compoundkey.Join("", compoundkey.Int(i, 6))}}
			if !yield(row, nil) {
				return
			}
		}
	}

	begun, stop := context.WithCancel(ctx)
	first, err := table.Entities().BulkNonAtomic(begun, rows, &patterns.BulkOptions{Progress: func(p patterns.BulkProgress) {
		if p.Entities >= 500 {
			stop()
		}
	}})
	fmt.Println(errors.Is(err, context.Canceled), first.Resume < 1234)

	rest, err := table.Entities().BulkNonAtomic(ctx, rows, &patterns.BulkOptions{Skip: first.Resume, SkipExisting: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rest.Resume)
	// Output:
	// true true
	// 1234
}

// The kinds of errors are a closed set; the rest is in the Error.
func ExampleError() {
	ctx := context.Background()
	bags := exampleTable("ExampleError").Entities()

	err := bags.Insert(ctx, &patterns.Entity{Key: patterns.Key{Partition: "a/b", Row: "1"}})
	fmt.Println(err)
	var failed *patterns.Error
	fmt.Println(errors.As(err, &failed) && failed.Op == "Insert" && failed.Kind == patterns.ErrInvalid)

	large := &patterns.Entity{Key: patterns.Key{Partition: "a", Row: "1"}}
	large.Set("Photo", patterns.Binary(make([]byte, 70_000)))
	fmt.Println(bags.Insert(ctx, large))
	// Output:
	// tablepatterns: Insert in ExampleError: invalid: partition key: compoundkey: key: U+002F at unit 1 is not allowed in a key
	// true
	// tablepatterns: Insert in ExampleError ("a", "1"): too large: property Photo: binary of 70000 bytes is over the limit of 65536
}
