package main

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the entity of the guide: its partition is the department, its row the id of the employee.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	FirstName  string
	LastName   string
	Email      string
	Age        int
	Salary     int
	HireDate   time.Time
}

func id(n int) compoundkey.Part { return compoundkey.Int(n, 6) }

func employeeKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", id(n))}
}

// employeeSchema is that of employees beside rows of other kinds.
func employeeSchema() patterns.Schema[Employee] {
	return patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return employeeKey(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}
}

// newEmployees is a table with three indexes: four rows an employee, which the repository keeps consistent.
func newEmployees(table *tables.Table) (repo *patterns.Repository[Employee], email, name, hired *intrapartition.Index[Employee], err error) {
	email = intrapartition.NewIndex("email", func(e *Employee) compoundkey.Part {
		return compoundkey.String(e.Email)
	}, nil)
	name = intrapartition.NewIndex("name", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(e.LastName), compoundkey.String(e.FirstName), id(e.ID))
	}, &intrapartition.Options{Project: []string{"Department", "ID", "FirstName", "LastName"}})
	hired = intrapartition.NewIndex("hired", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.Time(e.HireDate), id(e.ID))
	}, nil)
	repo, err = patterns.NewRepository(table, employeeSchema(), email, name, hired)
	return repo, email, name, hired, err
}

func plainKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("", id(n))}
}

// newPlain is the table as one would make it first: one row an employee, found by department and id.
func newPlain(table *tables.Table) (*patterns.Repository[Employee], error) {
	return patterns.NewRepository(table, patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return plainKey(e.Department, e.ID) },
	})
}

func (c *company) openEmployees() (err error) {
	if c.employees, c.byEmail, c.byName, c.byHireDate, err = newEmployees(c.store.Table("Employees")); err != nil {
		return err
	}
	c.plain, err = newPlain(c.store.Table("Plain"))
	return err
}

// newHire is an employee with the next free id.
func (c *company) newHire(email string) *Employee {
	return &Employee{Department: sales, ID: len(c.staff) + 1, FirstName: "Jon", LastName: "Jones", Email: email, Age: 30, Salary: 50_000,
		HireDate: time.Date(2025, 1, 2, 9, 0, 0, 0, time.UTC)}
}

// fresh returns a copy of an entity without its Meta, as if it was never read or written: an entity remembers its row.
func fresh[T any](v *T) *T {
	twin := *v
	if x := reflect.ValueOf(&twin).Elem(); x.Kind() == reflect.Struct && x.FieldByName("Meta").IsValid() {
		x.FieldByName("Meta").SetZero()
	}
	return &twin
}

// allFresh returns fresh copies.
func allFresh[T any](all []*T) []*T {
	copies := make([]*T, len(all))
	for i, v := range all {
		copies[i] = fresh(v)
	}
	return copies
}

// same is an error unless an entity was read, and is as the other one.
func same[T any](got, want *T, err error) error {
	if err == nil && !reflect.DeepEqual(fresh(got), fresh(want)) {
		return fmt.Errorf("read %+v, want %+v", *fresh(got), *fresh(want))
	}
	return err
}

// The employees that scenarios ask for by name or number, all of them in Sales.
const (
	sales      = "Sales"
	jones      = 223 // jonesj@contoso.com
	reviewed   = 123 // has reviews
	jonesEmail = "jonesj@contoso.com"
)

// department has employees by its weight.
type department struct {
	name   string
	weight int
}

func departments() []department {
	return []department{
		{"Sales", 24}, {"Engineering", 20}, {"Customer Service", 14}, {"Marketing", 10}, {"Production", 9},
		{"Finance & Accounting", 7}, {"Human Resources", 6}, {"Research", 5}, {"Legal", 3}, {"Facilities", 2},
	}
}

// departmentNames are the partitions.
func departmentNames() []string {
	var names []string
	for _, d := range departments() {
		names = append(names, d.name)
	}
	return names
}

func firstNames() []string {
	return strings.Fields(`Ana Ben Carla Chen Daniel Don Elena Emma Fatima Felix Grace Hana Ivan James Jean Jo June Ken Lena
		Liam Lucia Maria Martin Mia Noah Nora Olga Omar Paul Petra Quinn Rosa Sam Sara Tom Uma Victor Wei Yara Zoe`)
}

func lastNames() []string {
	names := strings.Fields(`Abbott Adams Ahmed Allen Baker Bauer Brown Cao Chen Clark Cook Costa Cruz Davis Diaz Evans Fischer
		Flores Garcia Gray Hall Harris Hill Ito Jackson Jensen Jones Kelly Khan Kim King Kwok Lee Lewis Lopez Martin
		Meyer Miller Moore Morris Nguyen Novak O'Brien Olsen Park Patel Perez Price Reed Rossi Sato Schmidt Silva Smith
		Taylor Turner Vega Walker Ward White Wilson Wong Wood Young Zhang`)
	return append(names, "D'Angelo", "van der Berg", "Müller")
}

// newStaff makes n employees; equal seeds make equal employees.
func newStaff(n int, seed uint64) []*Employee {
	random := rand.New(rand.NewPCG(seed, 0x636f6e746f736f))
	first, last, all := firstNames(), lastNames(), departments()
	emails := map[string]int{"jonesj": 1}
	staff := make([]*Employee, n)
	for i := range staff {
		e := &Employee{
			ID:         i + 1,
			Department: pick(random, all),
			FirstName:  first[random.IntN(len(first))],
			LastName:   last[random.IntN(len(last))],
			Age:        20 + random.IntN(46),
			Salary:     30_000 + 500*random.IntN(200),
			HireDate:   time.Date(2000+random.IntN(25), time.Month(1+random.IntN(12)), 1+random.IntN(28), 9, 0, 0, 0, time.UTC),
		}
		switch e.ID {
		case jones:
			e.Department, e.FirstName, e.LastName, e.Email = sales, "June", "Jones", jonesEmail
		case reviewed:
			e.Department = sales
		}
		if e.Email == "" {
			e.Email = newEmail(e, emails)
		}
		staff[i] = e
	}
	return staff
}

func pick(random *rand.Rand, all []department) string {
	n := random.IntN(100) // the weights' sum
	for _, d := range all {
		if n -= d.weight; n < 0 {
			return d.name
		}
	}
	return all[len(all)-1].name
}

// newEmail gives each employee another address: jonesj, jonesj2, jonesj3 ...
func newEmail(e *Employee, taken map[string]int) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == 'ü':
			return 'u'
		case r < 'a' || r > 'z':
			return -1
		}
		return r
	}, strings.ToLower(e.LastName+e.FirstName[:1]))
	taken[name]++
	if n := taken[name]; n > 1 {
		name = fmt.Sprintf("%s%d", name, n)
	}
	return name + "@contoso.com"
}
