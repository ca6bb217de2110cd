package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// mixed keeps several types, and several versions of one, in a table.
func mixed() scenario {
	return scenario{
		title: "Several types and versions in one table",
		guide: "Working with heterogeneous entity types",
		shows: []show{
			{"Heterogeneous entity types", "everybody in Sales, of all types", "", "all in one read, old versions upgraded"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			m, err := c.openMixture(ctx)
			if err != nil {
				return err
			}
			s.Plain = "a query for each type"
			return steps(ctx, s, m.load, m.askForEverybody, m.modify, m.upgrade, m.refuseLater)
		},
	}
}

// Human is what employees and contractors have in common.
type Human struct{ FirstName, LastName string }

// FullName makes an employee and a contractor a Person.
func (h *Human) FullName() string { return h.FirstName + " " + h.LastName }

// Person is any of them.
type Person interface{ FullName() string }

// EmployeeV1 is an employee as the first version of the program has stored it.
type EmployeeV1 struct {
	tables.Meta
	Department string
	ID         int
	FullName   string
}

// EmployeeV2 has a first and a last name.
type EmployeeV2 struct {
	tables.Meta
	Human
	Department string
	ID         int
}

// EmployeeV3 has an email, too.
type EmployeeV3 struct {
	tables.Meta
	Human
	Department string
	ID         int
	Email      string
}

// Contractor is another kind of Person.
type Contractor struct {
	tables.Meta
	Human
	Department string
	ID         int
	Firm       string
}

// upgrades are the steps from version to version, in their order.
func upgrades() []heterogeneous.Step {
	return []heterogeneous.Step{
		heterogeneous.From(1, func(old *EmployeeV1) (*EmployeeV2, error) {
			first, last, _ := strings.Cut(old.FullName, " ")
			return &EmployeeV2{Human: Human{first, last}, Department: old.Department, ID: old.ID}, nil
		}),
		heterogeneous.From(2, func(old *EmployeeV2) (*EmployeeV3, error) {
			email := strings.ToLower(old.LastName) + "@contoso.com"
			return &EmployeeV3{Human: old.Human, Department: old.Department, ID: old.ID, Email: email}, nil
		}),
	}
}

// elsewhere is the table as another program has it: one store refuses two repositories with the same rows.
func (m *mixture) elsewhere() *tables.Table { return m.table.Account().Table(m.table.Name()) }

// openVersion opens the employees as one version of the program has them.
func openVersion[T any](table *tables.Table, version int, key func(*T) tables.Key) (*heterogeneous.Type[T], *patterns.Repository[T], error) {
	employee := heterogeneous.NewType[T]("Employee", version, &heterogeneous.TypeOptions{Steps: upgrades()[:version-1]})
	repo, err := patterns.NewRepository(table, patterns.Schema[T]{Key: key, Rows: compoundkey.Starting("empid")}, employee)
	return employee, repo, err
}

func keyOfV1(e *EmployeeV1) tables.Key { return employeeKey(e.Department, e.ID) }
func keyOfV2(e *EmployeeV2) tables.Key { return employeeKey(e.Department, e.ID) }
func keyOfV3(e *EmployeeV3) tables.Key { return employeeKey(e.Department, e.ID) }

// mixture is the table as the newest version of the program has it.
type mixture struct {
	c           *company
	table       *tables.Table
	employee    *heterogeneous.Type[EmployeeV3]
	employees   *patterns.Repository[EmployeeV3]
	contractors *patterns.Repository[Contractor]
	everybody   *heterogeneous.Registry

	names map[int]string // by id, as they are to be read
}

func (c *company) openMixture(ctx context.Context) (m *mixture, err error) {
	m = &mixture{c: c, names: map[int]string{}}
	if m.table, err = c.table(ctx, "Mixed"); err != nil {
		return nil, err
	}
	if m.employee, m.employees, err = openVersion(m.table, 3, keyOfV3); err != nil {
		return nil, err
	}
	contractor := heterogeneous.NewType[Contractor]("Contractor", 1, nil)
	m.contractors, err = patterns.NewRepository(m.table, patterns.Schema[Contractor]{
		Key: func(x *Contractor) tables.Key {
			return tables.Key{Partition: x.Department, Row: compoundkey.Join("contractor", id(x.ID))}
		},
		Rows: compoundkey.Starting("contractor"),
	}, contractor)
	if err != nil {
		return nil, err
	}
	m.everybody, err = heterogeneous.NewRegistry(m.table, m.employee, contractor)
	return m, err
}

// staff are the employees of Sales from reviewed to jones; their versions take turns.
func (m *mixture) staff() []*Employee {
	var some []*Employee
	for _, e := range m.c.of(sales) {
		if e.ID >= reviewed && e.ID <= jones {
			some = append(some, e)
		}
	}
	return some
}

// load has three versions of the program write employees, and adds contractors.
func (m *mixture) load(ctx context.Context, s *section) error {
	_, first, err := openVersion(m.elsewhere(), 1, keyOfV1)
	if err != nil {
		return err
	}
	_, second, err := openVersion(m.elsewhere(), 2, keyOfV2)
	if err != nil {
		return err
	}
	return m.c.exposed(s, "three versions and two types written", func() (string, error) {
		versions := make([]int, 3)
		for i, e := range m.staff() {
			human := Human{e.FirstName, e.LastName}
			m.names[e.ID] = human.FullName()
			versions[i%3]++
			var err error
			switch i % 3 {
			case 0:
				err = insert(ctx, first, &EmployeeV1{Department: sales, ID: e.ID, FullName: human.FullName()})
			case 1:
				err = insert(ctx, second, &EmployeeV2{Human: human, Department: sales, ID: e.ID})
			case 2:
				err = insert(ctx, m.employees, &EmployeeV3{Human: human, Department: sales, ID: e.ID, Email: e.Email})
			}
			if err != nil {
				return "", err
			}
		}
		for n := range 3 {
			x := &Contractor{Human: Human{"Con", fmt.Sprintf("Tractor %d", n)}, Department: sales, ID: n, Firm: "Fabrikam"}
			m.names[n] = x.FullName()
			if err := insert(ctx, m.contractors, x); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%d, %d and %d employees of version 1, 2 and 3, and 3 contractors", versions[0], versions[1], versions[2]), nil
	})
}

// somebody is what two of them must have in common to be the same.
type somebody struct {
	kind, name string
	id         int
}

func (x *somebody) record() somebody { return *x }

func newSomebody(v any) *somebody {
	switch v := v.(type) {
	case *EmployeeV3:
		return &somebody{"employee", v.FullName(), v.ID}
	case *Contractor:
		return &somebody{"contractor", v.FullName(), v.ID}
	}
	return &somebody{kind: fmt.Sprintf("%T", v)}
}

// describing yields what was read, of whichever type it is.
func describing[T any](all iter.Seq2[T, error]) iter.Seq2[*somebody, error] {
	return func(yield func(*somebody, error) bool) {
		for v, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(newSomebody(v), nil) {
				return
			}
		}
	}
}

// askForEverybody reads all types at once, as values for a type switch.
func (m *mixture) askForEverybody(ctx context.Context, s *section) error {
	plan, err := m.everybody.Query().Partition(sales).Plan()
	if err != nil {
		return err
	}
	with := wayTo[somebody]{class: plan.Class, ask: func(ctx context.Context) iter.Seq2[*somebody, error] {
		return describing(m.everybody.Query().Partition(sales).All(ctx))
	}}
	without := wayTo[somebody]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*somebody, error] {
		contractors, err := collect(describing(m.contractors.Query().Partition(sales).All(ctx)))
		if err != nil {
			return failing[somebody](err)
		}
		employees, err := collect(describing(m.employees.Query().Partition(sales).All(ctx)))
		if err != nil {
			return failing[somebody](err)
		}
		return each(append(contractors, employees...)) // in the order of their row keys
	}}
	return ask(ctx, m.c, s, asked[somebody, somebody]{text: "everybody in Sales, of all types", with: with, without: without, record: (*somebody).record})
}

// modify changes a property of entities of which it is not known what they are.
func (m *mixture) modify(ctx context.Context, s *section) error {
	old := m.staff()[0]
	return m.c.act(s, "a last name changed, whatever it is of", func() (string, error) {
		err := m.everybody.Modify(ctx, employeeKey(sales, old.ID), func(e *tables.Entity) error {
			e.Set("LastName", tables.String("Jones-Park"))
			return nil
		})
		if err != nil {
			return "", err
		}
		v, err := m.everybody.Get(ctx, employeeKey(sales, old.ID))
		if err != nil {
			return "", err
		}
		m.names[old.ID] = old.FirstName + " Jones-Park"
		person, ok := v.(Person)
		if !ok || person.FullName() != m.names[old.ID] {
			return "", fmt.Errorf("it is %v", v)
		}
		return "it was an employee of version 1, and is of version 3 now", nil
	})
}

// upgrade writes what is left of the old versions.
func (m *mixture) upgrade(ctx context.Context, s *section) error {
	if err := m.c.act(s, "the old versions upgraded", func() (string, error) {
		done, err := m.employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{sales}})
		return fmt.Sprintf("%s written as version 3", counted(int(done.Written), "employee")), err
	}); err != nil {
		return err
	}
	return m.c.act(s, "upgraded once more, and read", func() (string, error) {
		done, err := m.employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{sales}})
		if err != nil || done.Read > 0 {
			return "", fmt.Errorf("%d were left: %w", done.Read, err)
		}
		found, err := collect(describing(m.everybody.Query().Partition(sales).All(ctx)))
		if err != nil {
			return "", err
		}
		for _, x := range found {
			if m.names[x.id] != x.name {
				return "", fmt.Errorf("%s %d is called %s", x.kind, x.id, x.name)
			}
		}
		if len(found) != len(m.names) {
			return "", fmt.Errorf("%d of %d are there", len(found), len(m.names))
		}
		return "nothing was left to do, and everybody is there", nil
	})
}

// refuseLater: a program that is behind does not write over what it does not understand.
func (m *mixture) refuseLater(ctx context.Context, s *section) error {
	_, second, err := openVersion(m.elsewhere(), 2, keyOfV2)
	if err != nil {
		return err
	}
	return m.c.act(s, "read by the program of version 2", func() (string, error) {
		_, err := second.Get(ctx, employeeKey(sales, jones))
		var later *heterogeneous.VersionError
		if !errors.As(err, &later) {
			return "", fmt.Errorf("it was not refused: %w", err)
		}
		return fmt.Sprintf("refused: it is %s, and the program knows up to version %d", later.Stored, later.Newest), nil
	})
}
