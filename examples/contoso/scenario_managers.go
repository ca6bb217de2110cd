package main

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// managers reads departments with their managers' details, which each department has a copy of.
func managers() scenario {
	return scenario{
		title: "Departments with their manager",
		guide: "Denormalization pattern",
		shows: []show{
			{"Denormalization", "Sales with its manager", "", "the copy changes in the same transaction"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			m, err := c.openManagement(ctx)
			if err != nil {
				return err
			}
			return steps(ctx, s, m.load, m.askForManager, m.changeEmail, m.takeOver, m.check)
		},
	}
}

// colleague is an employee who may be the manager of the department.
type colleague struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	Email      string
	IsManager  bool
}

// managed is a department with the details of its manager. It is in the partition of its employees.
type managed struct {
	tables.Meta
	Name         string
	ManagerID    int
	ManagerName  string
	ManagerEmail string
}

func managedKey(name string) tables.Key {
	return tables.Key{Partition: name, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

// managerLink copies a manager's details into the department.
func managerLink() denormalization.Link[colleague, managed] {
	return denormalization.Link[colleague, managed]{
		Properties: []string{"ManagerID", "ManagerName", "ManagerEmail"},
		Holders: func(e *colleague) []tables.Key {
			if !e.IsManager {
				return nil
			}
			return []tables.Key{managedKey(e.Department)}
		},
		Copy: func(e *colleague, d *managed) {
			if e == nil {
				e = &colleague{}
			}
			d.ManagerID, d.ManagerName, d.ManagerEmail = e.ID, e.Name, e.Email
		},
		SourceOf: func(d *managed) (tables.Key, bool) { return employeeKey(d.Name, d.ManagerID), d.ManagerID != 0 },
	}
}

// management is departments and their employees in one table.
type management struct {
	c           *company
	departments *patterns.Repository[managed]
	employees   *patterns.Repository[colleague]

	managers        map[string]*colleague // by department, as they are stored
	june, successor *colleague            // of Sales
}

func (c *company) openManagement(ctx context.Context) (*management, error) {
	m := &management{c: c, managers: map[string]*colleague{}}
	table, err := c.table(ctx, "Managed")
	if err != nil {
		return nil, err
	}
	manager := denormalization.NewInPartition("manager", managerLink(), nil)
	m.departments, err = patterns.NewRepository(table, patterns.Schema[managed]{
		Key: func(d *managed) tables.Key { return managedKey(d.Name) }, Rows: compoundkey.Starting("dept"),
	}, manager.Holder())
	if err != nil {
		return nil, err
	}
	m.employees, err = patterns.NewRepository(table, patterns.Schema[colleague]{
		Key: func(e *colleague) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"),
	}, manager.Source())
	return m, err
}

// load inserts the departments and the employees who are always there. June Jones manages Sales, the first of the others their departments.
func (m *management) load(ctx context.Context, s *section) error {
	some := m.c.staff[:minEmployees]
	return m.c.exposed(s, "departments and employees inserted", func() (string, error) {
		for _, name := range departmentNames() {
			if err := insert(ctx, m.departments, &managed{Name: name}); err != nil {
				return "", err
			}
		}
		colleagues := map[int]*colleague{}
		for _, e := range some {
			x := &colleague{Department: e.Department, ID: e.ID, Name: e.FirstName + " " + e.LastName, Email: e.Email}
			if x.IsManager = e.ID == jones || e.Department != sales && m.managers[e.Department] == nil; x.IsManager {
				m.managers[e.Department] = x
			}
			colleagues[e.ID] = x
		}
		m.june, m.successor = colleagues[jones], colleagues[reviewed]
		return fmt.Sprintf("%d and %d, of whom %d are managers", len(departments()), len(some), len(m.managers)),
			together(ctx, some, func(ctx context.Context, e *Employee) error { return insert(ctx, m.employees, colleagues[e.ID]) })
	})
}

// askForManager reads a department with its manager, and the two after each other.
func (m *management) askForManager(ctx context.Context, s *section) error {
	with := reading(func(ctx context.Context) (*Employee, error) {
		d, err := m.departments.Get(ctx, managedKey(sales))
		if err != nil {
			return nil, err
		}
		return &Employee{Department: d.Name, ID: d.ManagerID, FirstName: d.ManagerName, Email: d.ManagerEmail}, nil
	})
	without := reading(func(ctx context.Context) (*Employee, error) {
		d, err := m.departments.Get(ctx, managedKey(sales))
		if err != nil {
			return nil, err
		}
		e, err := m.employees.Get(ctx, employeeKey(d.Name, d.ManagerID))
		if err != nil {
			return nil, err
		}
		return &Employee{Department: e.Department, ID: e.ID, FirstName: e.Name, Email: e.Email}, nil
	})
	without.searched = 2
	return m.c.ask(ctx, s, question{text: "Sales with its manager", with: with, without: without})
}

// changeEmail changes what the department has a copy of.
func (m *management) changeEmail(ctx context.Context, s *section) error {
	m.june.Email = "june@contoso.com"
	x, err := m.employees.Explain(ctx, driver.ChangeReplace, m.june)
	if err != nil {
		return err
	}
	s.explain("The change of a manager's email, by Repository.Explain:", x)
	if err := m.c.act(s, "the manager's email changed", func() (string, error) {
		return "the department is read; both rows are written in 1 transaction", m.employees.Replace(ctx, m.june)
	}); err != nil {
		return err
	}
	return m.c.act(s, "the department read", func() (string, error) {
		return "it has the new email", m.holds(ctx, sales, m.june)
	})
}

// holds is an error unless a department has the details of this manager, as they are stored.
func (m *management) holds(ctx context.Context, department string, e *colleague) error {
	d, err := m.departments.Get(ctx, managedKey(department))
	if err != nil {
		return err
	}
	if d.ManagerID != e.ID || d.ManagerName != e.Name || d.ManagerEmail != e.Email {
		return fmt.Errorf("%s has the details of manager %d, or old ones; it should have those of %d", department, d.ManagerID, e.ID)
	}
	return nil
}

// takeOver: the department has a manager all the time, since the new one begins before the old one stops.
func (m *management) takeOver(ctx context.Context, s *section) error {
	m.successor.IsManager, m.june.IsManager = true, false
	m.managers[sales] = m.successor
	if err := m.c.act(s, "another manager begins", func() (string, error) {
		return "the department has the new one's details", m.employees.Replace(ctx, m.successor)
	}); err != nil {
		return err
	}
	return m.c.act(s, "the one before stops", func() (string, error) {
		return "the department stays as it is", m.employees.Replace(ctx, m.june)
	})
}

// check reads all departments, and compares all copies.
func (m *management) check(ctx context.Context, s *section) error {
	if err := m.c.act(s, "each department with its manager", func() (string, error) {
		for _, name := range departmentNames() {
			e := m.managers[name]
			if e == nil { // with some seeds, nobody is in the smallest department
				e = &colleague{}
			}
			if err := m.holds(ctx, name, e); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s, their managers as stored", counted(len(departments()), "department")), nil
	}); err != nil {
		return err
	}
	return m.c.act(s, "all of them, by Repository.Verify", func() (string, error) {
		return "nothing to repair", clean(ctx, m.employees)
	})
}
