package relationships_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Department is the one, Employee the many. Both are in the department's partition.
type Department struct {
	tables.Meta
	DepartmentName string
	Manager        string
	EmployeeCount  int
}

// Employee has her department's name as partition key.
type Employee struct {
	tables.Meta
	Department        string
	ID                int
	Name              string
	Project           string // elsewhere
	DepartmentManager string // denormalized
}

func keyOfDepartment(name string) tables.Key {
	return tables.Key{Partition: name, Row: "Department"}
}

func keyOfEmployee(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

// open makes the two repositories on one table.
func open(table *tables.Table, name string, kept func(*patterns.Repository[Department]) []patterns.Pattern[Employee], sources ...patterns.Pattern[Department]) (*patterns.Repository[Department], *patterns.Repository[Employee]) {
	departments, err := patterns.NewRepository(table, patterns.Schema[Department]{
		Key: func(d *Department) tables.Key { return keyOfDepartment(d.DepartmentName) }, Rows: compoundkey.Exactly(compoundkey.String("Department")).Span, Name: table.Name() + "-departments",
	}, sources...)
	if err != nil {
		log.Fatal(err)
	}
	employees, err := patterns.NewRepository(table, patterns.Schema[Employee]{
		Name: name, Key: func(e *Employee) tables.Key { return keyOfEmployee(e.Department, e.ID) }, Prefix: "empid",
	}, kept(departments)...)
	if err != nil {
		log.Fatal(err)
	}
	return departments, employees
}

// One to many in one partition: the department knows how many employees it has, since each of them changes it in her own
// transaction.
func Example() {
	ctx := context.Background()
	departments, employees := open(simulatedTable("ExampleCount"), "", func(departments *patterns.Repository[Department]) []patterns.Pattern[Employee] {
		return []patterns.Pattern[Employee]{relationships.NewParentCount("employees", departments,
			func(e *Employee) (tables.Key, bool) { return keyOfDepartment(e.Department), true },
			func(d *Department) *int { return &d.EmployeeCount })}
	})
	if err := departments.Insert(ctx, &Department{DepartmentName: "Sales"}); err != nil {
		log.Fatal(err)
	}
	june := &Employee{Department: "Sales", ID: 223, Name: "June"}
	show := func(err error) {
		sales, getErr := departments.Get(ctx, keyOfDepartment("Sales"))
		if err := errors.Join(err, getErr); err != nil {
			log.Fatal(err)
		}
		fmt.Println(sales.EmployeeCount)
	}
	show(employees.Insert(ctx, june))
	show(employees.Insert(ctx, &Employee{Department: "Sales", ID: 224, Name: "Ken"}))
	show(employees.Delete(ctx, june))
	err := employees.Insert(ctx, &Employee{Department: "Sails", ID: 225})
	fmt.Println(errors.Is(err, tables.ErrMissingReference))
	// Output:
	// 1
	// 2
	// 1
	// true
}

// One to many without a parent entity: the number of employees of each department, in a row of its own.
func ExampleNewCount() {
	ctx := context.Background()
	count := relationships.NewCount[Employee]("employeecount", nil)
	_, employees := open(simulatedTable("ExampleOwnRow"), "", func(*patterns.Repository[Department]) []patterns.Pattern[Employee] {
		return []patterns.Pattern[Employee]{count}
	})
	for id := range 3 {
		if err := employees.Insert(ctx, &Employee{Department: "Sales", ID: id}); err != nil {
			log.Fatal(err)
		}
	}
	n, err := count.Get(ctx, "Sales")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
	// Output:
	// 3
}

// One to many across partitions: a project, and its members in several departments.
func ExampleNewMembers() {
	ctx := context.Background()
	store, err := patterns.Open("members", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	table := store.Table("ExampleMembers")
	projectOf := func(e *Employee) (tables.Key, bool) {
		return tables.Key{Partition: "projects", Row: e.Project}, e.Project != ""
	}
	members := relationships.NewMembers("members", table, projectOf)
	_, employees := open(table, "members", func(*patterns.Repository[Department]) []patterns.Pattern[Employee] {
		return []patterns.Pattern[Employee]{members}
	})
	if err := store.Create(ctx); err != nil { // the table, and the queue of intents
		log.Fatal(err)
	}
	for id, department := range []string{"Sales", "Marketing", "Sales"} {
		if err := employees.Insert(ctx, &Employee{Department: department, ID: id, Project: "Apollo"}); err != nil {
			log.Fatal(err)
		}
	}
	apollo := tables.Key{Partition: "projects", Row: "Apollo"}
	n, err := members.Count(ctx, apollo)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
	for e, err := range members.All(ctx, apollo) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Department, e.ID)
	}
	// Output:
	// 3
	// Marketing 1
	// Sales 0
	// Sales 2
}

// One to many, denormalized: every employee has her department's manager, and one request reads both.
func Example_denormalized() {
	ctx := context.Background()
	store, err := patterns.Open("denormalized", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	table := store.Table("ExampleDenormalized")
	manager := denormalization.New("manager", denormalization.Link[Department, Employee]{
		Properties: []string{"DepartmentManager"},
		Find: func(employees tables.Query[Employee], department tables.Key) tables.Query[Employee] {
			return employees.Partition(department.Partition)
		},
		Copy: func(d *Department, e *Employee) {
			if d == nil {
				d = &Department{}
			}
			e.DepartmentManager = d.Manager
		},
		SourceOf: func(e *Employee) (tables.Key, bool) { return keyOfDepartment(e.Department), true },
	}, nil)
	departments, employees := open(table, "", func(*patterns.Repository[Department]) []patterns.Pattern[Employee] {
		return []patterns.Pattern[Employee]{manager.Holder()}
	}, manager.Source())
	if err := store.Create(ctx); err != nil { // the table, and the queue of intents
		log.Fatal(err)
	}
	if err := errors.Join(departments.Insert(ctx, &Department{DepartmentName: "Sales", Manager: "June"}),
		employees.Insert(ctx, &Employee{Department: "Sales", ID: 223})); err != nil {
		log.Fatal(err)
	}
	e, err := employees.Get(ctx, keyOfEmployee("Sales", 223))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.DepartmentManager)
	// Output:
	// June
}

// A join in the client. The departments are few, and change seldom: they are read once, and kept for a minute.
func ExampleReference_Join() {
	ctx := context.Background()
	departments, employees := open(simulatedTable("ExampleJoin"), "", func(*patterns.Repository[Department]) []patterns.Pattern[Employee] { return nil })
	for i, department := range []string{"Sales", "Marketing"} {
		if err := errors.Join(departments.Insert(ctx, &Department{DepartmentName: department, Manager: []string{"June", "Ken"}[i]}),
			employees.Insert(ctx, &Employee{Department: department, ID: i, Name: "Ann"}),
			employees.Insert(ctx, &Employee{Department: department, ID: i + 10, Name: "Ben"})); err != nil {
			log.Fatal(err)
		}
	}
	lookup, err := relationships.NewCache(departments, departments.Query().Where(tables.Eq("RowKey", "Department")).AllowTableScan(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lookup.Close()
	ofEmployee := relationships.Reference[Employee, Department]{
		Source: lookup, // or relationships.FromRepository(departments, 8), which reads each one
		Key:    func(e *Employee) (tables.Key, bool) { return keyOfDepartment(e.Department), true },
	}
	for j, err := range ofEmployee.Join(ctx, employees.Query().AllowTableScan().All(ctx)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(j.Child.Name, j.Child.Department, j.Parent.Manager)
	}
	// Output:
	// Ann Marketing Ken
	// Ben Marketing Ken
	// Ann Sales June
	// Ben Sales June
}

// Photo belongs to one employee.
type Photo struct {
	tables.Meta
	Department string
	ID         int
	Bytes      []byte
}

// One to one by a convention of keys: 'empid_000223' and 'photo_000223'.
func ExampleNewPair() {
	ctx := context.Background()
	_, employees := open(simulatedTable("ExamplePair"), "", func(*patterns.Repository[Department]) []patterns.Pattern[Employee] { return nil })
	keyOfPhoto := func(employee tables.Key) tables.Key {
		return tables.Key{Partition: employee.Partition, Row: "photo" + employee.Row[len("empid"):]}
	}
	photos, err := patterns.NewRepository(employees.Table(), patterns.Schema[Photo]{Prefix: "photo",
		Key: func(p *Photo) tables.Key { return keyOfPhoto(keyOfEmployee(p.Department, p.ID)) }})
	if err != nil {
		log.Fatal(err)
	}
	pairs, err := relationships.NewPair(employees, photos, keyOfPhoto)
	if err != nil {
		log.Fatal(err)
	}
	if err := pairs.Insert(ctx, &Employee{Department: "Sales", ID: 223, Name: "June"}, &Photo{Department: "Sales", ID: 223, Bytes: []byte("GIF")}); err != nil {
		log.Fatal(err)
	}
	june, photo, err := pairs.Get(ctx, keyOfEmployee("Sales", 223))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(june.Name, len(photo.Bytes))
	// Output:
	// June 3
}

// Passport is one to one with a Holder by a stored key: each has the other's.
type Passport struct {
	tables.Meta
	Country, Number            string
	HolderCountry, HolderEmail string
}

// Holder has the key of a passport.
type Holder struct {
	tables.Meta
	Country, Email                  string
	PassportCountry, PassportNumber string
}

// One to one by a stored key, in two tables.
func ExampleReference() {
	ctx := context.Background()
	table := simulatedTable("ExamplePassports")
	passports, err := patterns.NewRepository(table, patterns.Schema[Passport]{
		Key: func(p *Passport) tables.Key { return tables.Key{Partition: p.Country, Row: p.Number} }})
	if err != nil {
		log.Fatal(err)
	}
	holders, err := patterns.NewRepository(simulatedTable("ExampleHolders"), patterns.Schema[Holder]{
		Key: func(h *Holder) tables.Key { return tables.Key{Partition: h.Country, Row: h.Email} }})
	if err != nil {
		log.Fatal(err)
	}
	june := &Holder{Country: "US", Email: "june@contoso.com", PassportCountry: "UK", PassportNumber: "123"}
	if err := errors.Join(holders.Insert(ctx, june), passports.Insert(ctx, &Passport{Country: "UK", Number: "123", HolderCountry: "US", HolderEmail: june.Email})); err != nil {
		log.Fatal(err)
	}
	passportOf := relationships.Reference[Holder, Passport]{Source: relationships.FromRepository(passports, 0), Key: func(h *Holder) (tables.Key, bool) {
		return tables.Key{Partition: h.PassportCountry, Row: h.PassportNumber}, h.PassportNumber != ""
	}}
	holderOf := relationships.Reference[Passport, Holder]{Source: relationships.FromRepository(holders, 0), Key: func(p *Passport) (tables.Key, bool) {
		return tables.Key{Partition: p.HolderCountry, Row: p.HolderEmail}, p.HolderEmail != ""
	}}
	passport, err := passportOf.Get(ctx, june)
	if err != nil {
		log.Fatal(err)
	}
	back, err := holderOf.Get(ctx, passport)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(passport.Number, back.Email)
	// Output:
	// 123 june@contoso.com
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
