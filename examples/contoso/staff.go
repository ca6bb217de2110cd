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

// Ref names an employee. What belongs to an employee embeds it, and is stored in the partition of the department.
type Ref struct {
	Department string
	ID         int
}

// key is the key of the guide: the partition is the department, the row the id of the employee.
func (r *Ref) key() tables.Key { return employeeKey(r.Department, r.ID) }

// Employee is the entity of the guide.
type Employee struct {
	tables.Meta
	Ref
	FirstName string
	LastName  string
	Email     string
	Age       int
	Salary    int
	HireDate  time.Time
}

func (e *Employee) name() string { return e.FirstName + " " + e.LastName }

func id(n int) compoundkey.Part { return compoundkey.Int(n, 6) }

func employeeKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", id(n))}
}

// schemaOf is the schema of entities whose row keys start with a prefix, beside rows of other kinds.
func schemaOf[T any](prefix string, key func(*T) tables.Key) patterns.Schema[T] {
	return patterns.Schema[T]{Key: key, Prefix: prefix}
}

// staffTable is a table of employees with three indexes: four rows an employee, which the repository keeps consistent.
type staffTable struct {
	employees  *patterns.Repository[Employee]
	byEmail    *intrapartition.Unique[Employee, string]
	byName     *intrapartition.Index[Employee, compoundkey.Part]
	byHireDate *intrapartition.Index[Employee, time.Time]
}

func newStaffTable(table *tables.Table) staffTable {
	byEmail := intrapartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(e.LastName), compoundkey.String(e.FirstName))
	}, &intrapartition.Options{Project: []string{"Department", "ID", "FirstName", "LastName"}})
	byHireDate := intrapartition.NewIndex("hired", func(e *Employee) time.Time { return e.HireDate }, nil)
	repo := must(patterns.NewRepository(table, schemaOf("empid", (*Employee).key), byEmail, byName, byHireDate))
	return staffTable{repo, byEmail, byName, byHireDate}
}

func plainKey(e *Employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("", id(e.ID))}
}

// newPlain is the table as one would make it first: one row an employee, found by department and id.
func newPlain(table *tables.Table) *patterns.Repository[Employee] {
	return must(patterns.NewRepository(table, patterns.Schema[Employee]{Key: plainKey}))
}

// newHire is an employee with the next free id.
func (c *company) newHire(email string) *Employee {
	return &Employee{Ref: Ref{sales, len(c.staff) + 1}, FirstName: "Jon", LastName: "Jones", Email: email, Age: 30, Salary: 50_000,
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

// same returns an error unless two entities are equal.
func same[T any](got, want *T) error {
	if a, b := fresh(got), fresh(want); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("read %+v, want %+v", *a, *b)
	}
	return nil
}

// The employees that scenarios ask for by name or number, all of them in Sales.
const (
	sales      = "Sales"
	jones      = 223 // jonesj@contoso.com
	reviewed   = 123 // has reviews
	jonesEmail = "jonesj@contoso.com"
)

// departments have employees by their weights, whose sum is 100.
var departments = []struct {
	name   string
	weight int
}{
	{"Sales", 24}, {"Engineering", 20}, {"Customer Service", 14}, {"Marketing", 10}, {"Production", 9},
	{"Finance & Accounting", 7}, {"Human Resources", 6}, {"Research", 5}, {"Legal", 3}, {"Facilities", 2},
}

// departmentNames are the partitions.
func departmentNames() (names []string) {
	for _, d := range departments {
		names = append(names, d.name)
	}
	return names
}

var firstNames = strings.Fields(`Ana Ben Carla Chen Daniel Don Elena Emma Fatima Felix Grace Hana Ivan James Jean Jo June Ken Lena
	Liam Lucia Maria Martin Mia Noah Nora Olga Omar Paul Petra Quinn Rosa Sam Sara Tom Uma Victor Wei Yara Zoe`)

var lastNames = append(strings.Fields(`Abbott Adams Ahmed Allen Baker Bauer Brown Cao Chen Clark Cook Costa Cruz Davis Diaz Evans Fischer
	Flores Garcia Gray Hall Harris Hill Ito Jackson Jensen Jones Kelly Khan Kim King Kwok Lee Lewis Lopez Martin
	Meyer Miller Moore Morris Nguyen Novak O'Brien Olsen Park Patel Perez Price Reed Rossi Sato Schmidt Silva Smith
	Taylor Turner Vega Walker Ward White Wilson Wong Wood Young Zhang`), "D'Angelo", "van der Berg", "Müller")

// newStaff makes n employees; equal seeds make equal employees.
func newStaff(n int, seed uint64) []*Employee {
	random := rand.New(rand.NewPCG(seed, 0x636f6e746f736f))
	emails := map[string]int{"jonesj": 1}
	staff := make([]*Employee, n)
	for i := range staff {
		e := &Employee{
			Ref:       Ref{pick(random), i + 1},
			FirstName: firstNames[random.IntN(len(firstNames))],
			LastName:  lastNames[random.IntN(len(lastNames))],
			Age:       20 + random.IntN(46),
			Salary:    30_000 + 500*random.IntN(200),
			HireDate:  time.Date(2000+random.IntN(25), time.Month(1+random.IntN(12)), 1+random.IntN(28), 9, 0, 0, 0, time.UTC),
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

// pick returns the name of a department.
func pick(random *rand.Rand) string {
	n, i := random.IntN(100), 0
	for n >= departments[i].weight {
		n -= departments[i].weight
		i++
	}
	return departments[i].name
}

// newEmail gives each employee another address: jonesj, jonesj2, jonesj3 ...
func newEmail(e *Employee, taken map[string]int) string {
	name := strings.NewReplacer("ü", "u", " ", "", "'", "").Replace(strings.ToLower(e.LastName + e.FirstName[:1]))
	taken[name]++
	if n := taken[name]; n > 1 {
		name = fmt.Sprintf("%s%d", name, n)
	}
	return name + "@contoso.com"
}
