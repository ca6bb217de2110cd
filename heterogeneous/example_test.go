package heterogeneous_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Department and Employee are two types in one partition.
type Department struct {
	tables.Meta
	Name          string
	EmployeeCount int32
}

// Employee is version 2 of an employee.
type Employee struct {
	tables.Meta
	Department          string
	ID                  int
	FirstName, LastName string
}

// EmployeeV1 is an employee as an older program has stored it.
type EmployeeV1 struct {
	tables.Meta
	Department string
	ID         int
	FullName   string
}

func (v *EmployeeV1) key() tables.Key {
	return tables.Key{Partition: v.Department, Row: compoundkey.Join("empid", compoundkey.Int(v.ID, 6))}
}

// splitFullName is the step from version 1 to version 2.
func splitFullName(old *EmployeeV1) (*Employee, error) {
	first, last, _ := strings.Cut(old.FullName, " ")
	return &Employee{Department: old.Department, ID: old.ID, FirstName: first, LastName: last}, nil
}

// Company is a table of departments and employees.
type Company struct {
	Employees   *patterns.Repository[Employee]
	Departments *patterns.Repository[Department]
	Everything  *heterogeneous.Registry
}

// openCompany makes the repositories of the table and puts their types together.
func openCompany(table *tables.Table) (*Company, error) {
	employee := heterogeneous.NewType[Employee]("Employee", 2, &heterogeneous.TypeOptions{
		Steps: []heterogeneous.Step{heterogeneous.From(1, splitFullName)},
	})
	employees, err := patterns.NewRepository(table, patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, employee)
	if err != nil {
		return nil, err
	}
	department := heterogeneous.NewType[Department]("Department", 1, nil)
	departments, err := patterns.NewRepository(table, patterns.Schema[Department]{
		Key: func(d *Department) tables.Key {
			return tables.Key{Partition: d.Name, Row: compoundkey.Join("dept", compoundkey.String(d.Name))}
		},
		Prefix: "dept",
	}, department)
	if err != nil {
		return nil, err
	}
	everything, err := heterogeneous.NewRegistry(table, employee, department)
	return &Company{employees, departments, everything}, err
}

// One query yields departments, employees of both versions, and what nobody here knows.
func Example() {
	ctx := context.Background()
	table := simulatedTable("ExampleCompany")
	company, err := openCompany(table)
	if err != nil {
		log.Fatal(err)
	}
	insertOld(ctx, table, &EmployeeV1{Department: "Sales", ID: 222, FullName: "Ken Kwok"}) // by a program of last year
	car := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "zcar_1"}}
	car.Set(heterogeneous.EntityType, tables.String("Car@1"))
	if err := errors.Join(
		company.Departments.Insert(ctx, &Department{Name: "Sales", EmployeeCount: 2}),
		company.Employees.Insert(ctx, &Employee{Department: "Sales", ID: 223, FirstName: "June", LastName: "Jones"}),
		table.Entities().Insert(ctx, car),
	); err != nil {
		log.Fatal(err)
	}

	for v, err := range company.Everything.Query().Partition("Sales").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch v := v.(type) {
		case *Department:
			fmt.Println("department", v.Name, v.EmployeeCount)
		case *Employee:
			fmt.Println("employee", v.ID, v.LastName)
		case *tables.Entity:
			kind, _ := v.Get(heterogeneous.EntityType).Text()
			fmt.Println("unknown", v.Key.Row, kind)
		}
	}
	// Output:
	// department Sales 2
	// employee 222 Kwok
	// employee 223 Jones
	// unknown zcar_1 Car@1
}

// A property of an entity is changed without knowing its type. The entity type is looked at nowhere.
func ExampleRegistry_Modify() {
	ctx := context.Background()
	company, err := openCompany(simulatedTable("ExampleModify"))
	if err != nil {
		log.Fatal(err)
	}
	sales := &Department{Name: "Sales", EmployeeCount: 2}
	if err := company.Departments.Insert(ctx, sales); err != nil {
		log.Fatal(err)
	}
	err = company.Everything.Modify(ctx, sales.Key(), func(e *tables.Entity) error {
		count, ok := e.Get("EmployeeCount").Int()
		if !ok {
			return errors.New("EmployeeCount is not there")
		}
		e.Set("EmployeeCount", tables.Int32(int32(count)+1))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	sales, err = company.Departments.Get(ctx, sales.Key())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sales.EmployeeCount)
	// Output:
	// 3
}

// Upgrade writes what is left of older versions, so that the step from them can go.
func ExampleType_Upgrade() {
	ctx := context.Background()
	table := simulatedTable("ExampleUpgrade")
	for id := range 3 {
		insertOld(ctx, table, &EmployeeV1{Department: "Sales", ID: id, FullName: "June Jones"})
	}
	employee := heterogeneous.NewType[Employee]("Employee", 2, &heterogeneous.TypeOptions{
		Steps: []heterogeneous.Step{heterogeneous.From(1, splitFullName)},
	})
	_, err := patterns.NewRepository(table, patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, employee)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		report, err := employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{"Sales"}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Written)
	}
	// Output:
	// 3
	// 0
}

// Human is what a customer and a staff member have in common: the guide's abstract Person.
type Human struct{ FirstName, LastName string }

// FullName is a method of all of them.
func (h *Human) FullName() string { return h.FirstName + " " + h.LastName }

// Person is any of them.
type Person interface{ FullName() string }

// Customer is a Person with a credit.
type Customer struct {
	tables.Meta
	Human
	PartitionKey, RowKey string
	Credit               float64
}

// Staff is a Person with a salary.
type Staff struct {
	tables.Meta
	Human
	PartitionKey, RowKey string
	Salary               float64
}

// An inheritance relationship: two concrete types in one table of people, read as what they have in common. Embedded structs
// are stored flat.
func ExampleRegistry_inheritance() {
	ctx := context.Background()
	table := simulatedTable("ExamplePeople")
	customer, staff := heterogeneous.NewType[Customer]("Customer", 1, nil), heterogeneous.NewType[Staff]("Staff", 1, nil)
	customers, err := patterns.NewRepository(table, patterns.Schema[Customer]{Prefix: "customer",
		Key: func(c *Customer) tables.Key { return tables.Key{Partition: c.PartitionKey, Row: c.RowKey} }}, customer)
	if err != nil {
		log.Fatal(err)
	}
	employees, err := patterns.NewRepository(table, patterns.Schema[Staff]{Prefix: "staff",
		Key: func(s *Staff) tables.Key { return tables.Key{Partition: s.PartitionKey, Row: s.RowKey} }}, staff)
	if err != nil {
		log.Fatal(err)
	}
	people, err := heterogeneous.NewRegistry(table, customer, staff)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(
		customers.Insert(ctx, &Customer{Human: Human{"Ann", "Archer"}, PartitionKey: "Seattle", RowKey: "customer_1", Credit: 100}),
		employees.Insert(ctx, &Staff{Human: Human{"Ben", "Baker"}, PartitionKey: "Seattle", RowKey: "staff_1", Salary: 3000}),
	); err != nil {
		log.Fatal(err)
	}
	for v, err := range people.Query().Partition("Seattle").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if p, ok := v.(Person); ok {
			fmt.Printf("%s is a %T\n", p.FullName(), p)
		}
	}
	// Output:
	// Ann Archer is a *heterogeneous_test.Customer
	// Ben Baker is a *heterogeneous_test.Staff
}

// insertOld stores an employee as version 1.
func insertOld(ctx context.Context, table *tables.Table, e *EmployeeV1) {
	repository, err := patterns.NewRepository(table, patterns.Schema[EmployeeV1]{Key: (*EmployeeV1).key, Prefix: "empid"},
		heterogeneous.NewType[EmployeeV1]("Employee", 1, nil))
	if err == nil {
		err = repository.Insert(ctx, e)
	}
	if err != nil {
		log.Fatal(err)
	}
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
