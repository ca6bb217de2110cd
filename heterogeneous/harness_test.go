package heterogeneous_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// place is what all versions of an employee have in common.
type place struct {
	Department string
	ID         int
}

// employeeV1 is an employee as the first version has it.
type employeeV1 struct {
	tables.Meta
	place
	FullName string
	Visits   int
}

// employeeV2 has the name in two parts.
type employeeV2 struct {
	tables.Meta
	place
	FirstName, LastName string
	Visits              int
}

// employee is version 3: it has an address.
type employee struct {
	tables.Meta
	place
	FirstName, LastName string
	Email               string
	Visits              int
}

type department struct {
	tables.Meta
	PartitionKey, RowKey string // the guide's entity: keys are fields
	DepartmentName       string
	EmployeeCount        int32
}

func keyOf(departmentName string, id int) tables.Key {
	return tables.Key{Partition: departmentName, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func departmentKey(name string) tables.Key {
	return tables.Key{Partition: name, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

func splitName(old *employeeV1) (*employeeV2, error) {
	first, last, ok := strings.Cut(old.FullName, " ")
	if !ok && old.FullName != "" {
		return nil, errors.New("a name of one word")
	}
	return &employeeV2{place: old.place, FirstName: first, LastName: last, Visits: old.Visits}, nil
}

func addEmail(old *employeeV2) (*employee, error) {
	return &employee{place: old.place, FirstName: old.FirstName, LastName: old.LastName, Visits: old.Visits,
		Email: strings.ToLower(old.LastName) + "@contoso.com"}, nil
}

func versions() *heterogeneous.TypeOptions {
	return &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{heterogeneous.From(1, splitName), heterogeneous.From(2, addEmail)}}
}

// program is what one program has: repositories of the types that it knows.
type program struct {
	table       *tables.Table
	v1          *patterns.Repository[employeeV1] // of the first program
	employees   *patterns.Repository[employee]   // of the current one
	departments *patterns.Repository[department]
	employee    *heterogeneous.Type[employee]
	registry    *heterogeneous.Registry
}

func tableOf(s *storagetest.Service, name string) (*tables.Table, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	return account.Table(name), nil
}

// startOld is the program that knows version 1 of an employee, and nothing else.
func startOld(s *storagetest.Service, name string) (*program, error) {
	table, err := tableOf(s, name)
	if err != nil {
		return nil, err
	}
	p := &program{table: table}
	typ := heterogeneous.NewType[employeeV1]("Employee", 1, nil)
	if p.v1, err = patterns.NewRepository(table, patterns.Schema[employeeV1]{
		Key: func(e *employeeV1) tables.Key { return keyOf(e.Department, e.ID) }, Prefix: "empid", MaxAttempts: 40,
	}, typ); err != nil {
		return nil, err
	}
	p.registry, err = heterogeneous.NewRegistry(table, typ)
	return p, err
}

// start is the current program. more are patterns of the employees, after the type.
func start(s *storagetest.Service, name string, more ...patterns.Pattern[employee]) (*program, error) {
	table, err := tableOf(s, name)
	if err != nil {
		return nil, err
	}
	p := &program{table: table, employee: heterogeneous.NewType[employee]("Employee", 3, versions())}
	if p.employees, err = patterns.NewRepository(table, patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return keyOf(e.Department, e.ID) }, Prefix: "empid", MaxAttempts: 40,
	}, append([]patterns.Pattern[employee]{p.employee}, more...)...); err != nil {
		return nil, err
	}
	typ := heterogeneous.NewType[department]("Department", 1, nil)
	if p.departments, err = patterns.NewRepository(table, patterns.Schema[department]{
		Key: func(d *department) tables.Key { return departmentKey(d.DepartmentName) }, Prefix: "dept",
	}, typ); err != nil {
		return nil, err
	}
	p.registry, err = heterogeneous.NewRegistry(table, p.employee, typ)
	return p, err
}

// byVisits is an index of employees, whose copies lie in their partition.
func byVisits() patterns.Pattern[employee] {
	return intrapartition.NewUnique("visits", func(e *employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.Int(e.Visits, 6), compoundkey.Int(e.ID, 6))
	}, nil)
}

// newTable creates a table, and returns its name with a current program on it.
func newTable(t testing.TB, s *storagetest.Service, more ...patterns.Pattern[employee]) (string, *program) {
	t.Helper()
	name := s.TableName(t)
	p := assert.Must[*program](t)(start(s, name, more...))
	assert.Check(t, p.table.Create(t.Context()))
	return name, p
}

func old(id int) *employeeV1 {
	return &employeeV1{place: place{"Sales", id}, FullName: fmt.Sprintf("June Jones%d", id), Visits: 1}
}

func current(id int) *employee {
	return &employee{place: place{"Sales", id}, FirstName: "June", LastName: fmt.Sprintf("Jones%d", id), Email: fmt.Sprintf("jones%d@contoso.com", id), Visits: 1}
}

// text shows what was read.
func text(v any) string {
	switch v := v.(type) {
	case *employee:
		return fmt.Sprintf("employee %d %s %s <%s> %d", v.ID, v.FirstName, v.LastName, v.Email, v.Visits)
	case *employeeV1:
		return fmt.Sprintf("first %d %s %d", v.ID, v.FullName, v.Visits)
	case *department:
		return fmt.Sprintf("department %s %s %d", v.RowKey, v.DepartmentName, v.EmployeeCount)
	case *tables.Entity:
		kind, _ := v.Get(heterogeneous.EntityType).Text()
		return fmt.Sprintf("bag %s %s %d", v.Key.Row, kind, len(v.Properties))
	}
	return fmt.Sprintf("%T", v)
}

// stored is a row as the service holds it, without what changes from one run to the next.
func stored(t testing.TB, table *tables.Table, key tables.Key) string {
	t.Helper()
	answer, err := table.Client().GetEntity(t.Context(), key.Partition, key.Row, nil)
	assert.Check(t, err)
	var properties map[string]any
	assert.Check(t, json.Unmarshal(answer.Value, &properties))
	for name := range properties {
		if strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "_tpWrite") || strings.HasPrefix(name, "_tpInc") || strings.HasPrefix(name, "Timestamp") {
			delete(properties, name)
		}
	}
	return string(assert.Must[[]byte](t)(json.Marshal(properties)))
}
