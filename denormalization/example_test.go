package denormalization_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is stored by department and id; one of each department is its manager.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Email      string
	IsManager  bool
	City       string // of the department
}

// Department is stored in the partition of its employees, with the details of its manager.
type Department struct {
	tables.Meta
	Name         string
	City         string
	ManagerID    int
	ManagerName  string
	ManagerEmail string
}

func keyOfEmployee(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func keyOfDepartment(name string) tables.Key {
	return tables.Key{Partition: name, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

// managers copies the details of a department's manager into the department.
func managers() *denormalization.Copies[Employee, Department] {
	return denormalization.NewInPartition("manager", denormalization.Link[Employee, Department]{
		Properties: []string{"ManagerID", "ManagerName", "ManagerEmail"},
		Holders: func(e *Employee) []tables.Key {
			if !e.IsManager {
				return nil
			}
			return []tables.Key{keyOfDepartment(e.Department)}
		},
		Copy: func(e *Employee, d *Department) {
			if e == nil {
				e = &Employee{}
			}
			d.ManagerID, d.ManagerName, d.ManagerEmail = e.ID, e.Name, e.Email
		},
		SourceOf: func(d *Department) (tables.Key, bool) { return keyOfEmployee(d.Name, d.ManagerID), d.ManagerID != 0 },
	}, nil)
}

// A department is read with its manager in one request, and always with the manager as she is.
func Example() {
	ctx := context.Background()
	store, err := patterns.Open("managers", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	table := store.Table("ExampleManager")
	manager := managers()
	departments, err := patterns.NewRepository(table, patterns.Schema[Department]{
		Key: func(d *Department) tables.Key { return keyOfDepartment(d.Name) }, Prefix: "dept",
	}, manager.Holder())
	if err != nil {
		log.Fatal(err)
	}
	employees, err := patterns.NewRepository(table, patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return keyOfEmployee(e.Department, e.ID) }, Prefix: "empid",
	}, manager.Source())
	if err != nil {
		log.Fatal(err)
	}
	june := &Employee{Department: "Sales", ID: 223, Name: "June Jones", Email: "jonesj@contoso.com", IsManager: true}
	show := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
		sales, err := departments.Get(ctx, keyOfDepartment("Sales"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s <%s>\n", sales.ManagerID, sales.ManagerName, sales.ManagerEmail)
	}
	show(first(store.Create(ctx), departments.Insert(ctx, &Department{Name: "Sales"})))
	show(employees.Insert(ctx, june))
	june.Email = "june@contoso.com"
	show(employees.Replace(ctx, june)) // both rows, in one transaction
	june.IsManager = false
	show(employees.Replace(ctx, june))
	// Output:
	// 0  <>
	// 223 June Jones <jonesj@contoso.com>
	// 223 June Jones <june@contoso.com>
	// 0  <>
}

// cities copies the city of a department into its employees.
func cities() *denormalization.Copies[Department, Employee] {
	return denormalization.New("city", denormalization.Link[Department, Employee]{
		Properties: []string{"City"},
		Find: func(employees tables.Query[Employee], department tables.Key) tables.Query[Employee] {
			return employees.Partition(department.Partition)
		},
		Copy: func(d *Department, e *Employee) {
			if d == nil {
				d = &Department{}
			}
			e.City = d.City
		},
		SourceOf: func(e *Employee) (tables.Key, bool) { return keyOfDepartment(e.Department), true },
	}, nil)
}

// All employees hold the city of their department. A change of it reaches them by an intent.
func ExampleNew() {
	ctx := context.Background()
	store, err := patterns.Open("cities", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	city := cities()
	employees, err := patterns.NewRepository(store.Table("ExampleEmployees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return keyOfEmployee(e.Department, e.ID) }, Prefix: "empid",
	}, city.Holder())
	if err != nil {
		log.Fatal(err)
	}
	departments, err := patterns.NewRepository(store.Table("ExampleDepartments"), patterns.Schema[Department]{
		Key: func(d *Department) tables.Key { return keyOfDepartment(d.Name) },
	}, city.Source())
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the two tables, and the queue of intents
		log.Fatal(err)
	}
	for id := range 3 {
		if err := employees.Insert(ctx, &Employee{Department: "Sales", ID: 220 + id}); err != nil {
			log.Fatal(err)
		}
	}
	if err := departments.Insert(ctx, &Department{Name: "Sales", City: "Seattle"}); err != nil {
		log.Fatal(err)
	}
	// An employee who is inserted later gets the city with the insert.
	if err := employees.Insert(ctx, &Employee{Department: "Sales", ID: 223}); err != nil {
		log.Fatal(err)
	}
	for e, err := range employees.Query().Partition("Sales").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.ID, e.City)
	}
	// Output:
	// 220 Seattle
	// 221 Seattle
	// 222 Seattle
	// 223 Seattle
}

// first returns the first error that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
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
