package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Worker is stored by department and id, without any pattern.
type Worker struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Age        int
	Hired      time.Time
}

func staffOf(table *tables.Table) *patterns.Repository[Worker] {
	repository, err := patterns.NewRepository(table, patterns.Schema[Worker]{
		Key: func(w *Worker) tables.Key {
			return tables.Key{Partition: w.Department, Row: compoundkey.Join("", compoundkey.Int(w.ID, 6))}
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
	if _, err := repository.BulkNonAtomic(ctx, hired, nil); err != nil {
		log.Fatal(err)
	}
}

func ExampleRepository() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleRepository"))

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
	fmt.Println(errors.Is(employees.Replace(ctx, stale), tables.ErrConflict))
	fmt.Println(errors.Is(employees.Insert(ctx, &Worker{Department: "Sales", ID: 10, Hired: ken.Hired}), tables.ErrExists))
	if err := employees.Delete(ctx, ken); err != nil {
		log.Fatal(err)
	}
	_, err = employees.Get(ctx, tables.Key{Partition: "Sales", Row: "000010"})
	fmt.Println(errors.Is(err, tables.ErrNotFound))
	// Output:
	// true
	// true
	// true
}

// Update reads, changes and replaces the entity, and starts over after a conflict with another writer.
func ExampleRepository_Update() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleUpdate"))
	hireAll(ctx, employees, 1)

	birthday := func(w *Worker) error {
		w.Age++
		return nil
	}
	w, err := employees.Update(ctx, tables.Key{Partition: "Sales", Row: "000001"}, birthday)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Age)
	// Output: 21
}

// Explain shows the rows and requests of a change, and their sizes beside the limits of the service. It writes nothing.
func ExampleRepository_Explain() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleExplain"))

	w := &Worker{Department: "Sales", ID: 10, Name: "Ken Kwok", Age: 23, Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	explained, err := employees.Explain(ctx, driver.ChangeInsert, w)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(explained)
	// Output:
	// Insert ("Sales", "000010")
	//   insert   "000010"                                    7 properties      344 bytes  must not exist
	//   total    344 bytes in 1 of at most 100 rows; the request's body has 310 of at most 4194304 bytes
	//   largest  7 of at most 252 properties, 344 of at most 1048576 bytes of a row
	//   request  1 single write
}

// A query says what it will cost before it is sent.
func ExampleRepository_Query() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleQuery"))
	hireAll(ctx, employees, 30)

	query := employees.Query().Partition("Sales").
		Where(tables.Gt("Age", 40), tables.Lt("Hired", time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC))).
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
	_, err = employees.Query().Where(tables.Eq("Name", "Worker 7")).First(ctx)
	fmt.Println(errors.Is(err, tables.ErrTableScan))
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
func ExampleRepository_Query_page() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExamplePage"))
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

// What a Plan lists as Keys is read for less by GetMany.
func ExampleRepository_GetMany() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleGetMany"))
	hireAll(ctx, employees, 5)

	keys := []tables.Key{{Partition: "Sales", Row: "000004"}, {Partition: "Sales", Row: "000009"}, {Partition: "Sales", Row: "000002"}}
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
func ExampleRepository_StageInsert() {
	ctx := context.Background()
	table := simulatedTable("ExampleTransaction")
	department := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "Department"}}
	department.Set("EmployeeCount", tables.Int32(1))
	if err := table.Entities().Insert(ctx, department); err != nil {
		log.Fatal(err)
	}

	employees := staffOf(table)
	x := table.NewTransaction()
	ken := &Worker{Department: "Sales", ID: 10, Name: "Ken Kwok", Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	employees.StageInsert(x, ken)
	department.Set("EmployeeCount", tables.Int32(2))
	x.Replace(department) // only if nobody changed it since it was written
	if _, err := x.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	again := table.NewTransaction()
	again.DeleteUnconditional(ken.Key())
	again.Replace(department) // the ETag is that of the first write
	_, err := again.Commit(ctx)
	var failed *tables.Error
	fmt.Println(errors.Is(err, tables.ErrConflict), errors.As(err, &failed) && failed.Change == 2)
	_, err = employees.Get(ctx, ken.Key())
	fmt.Println(err)
	// Output:
	// true true
	// <nil>
}

// The service's limits are constants, and what goes over one is refused before a request.
func ExampleRepository_Check() {
	ctx := context.Background()
	employees := staffOf(simulatedTable("ExampleCheck"))
	long := &Worker{Department: "Sales", ID: 1, Name: strings.Repeat("x", tables.MaxStringUnits+1), Hired: time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)}
	fmt.Println(errors.Is(employees.Check(ctx, long), tables.ErrTooLarge))
	long.Name = long.Name[1:]
	fmt.Println(employees.Check(ctx, long))
	fmt.Println(tables.MaxProperties, "properties and", tables.MaxEntitySize, "bytes an entity")
	fmt.Println(tables.MaxTransactionOperations, "operations and", tables.MaxTransactionSize, "bytes a transaction")
	// Output:
	// true
	// <nil>
	// 252 properties and 1048576 bytes an entity
	// 100 operations and 4194304 bytes a transaction
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
