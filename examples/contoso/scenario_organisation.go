package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inOrganisation is how many employees the scenario takes: all that are asked for. Each is inserted by itself, since what
// reaches out of a partition is not written in bulk.
const inOrganisation = minEmployees

// organisation finds employees by email whatever their department, through copies in other partitions and another table.
func organisation() scenario {
	return scenario{
		title: "Employees over the organisation",
		guide: "Inter-partition secondary index pattern",
		shows: []show{
			{"Inter-partition secondary index", "one email, anywhere", "", "an email has one owner in all departments"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			d, err := c.openDirectory(ctx)
			if err != nil {
				return err
			}
			return steps(ctx, s, d.load, d.askByEmail, d.askByEmailPrefix, d.askInDepartment, d.changeEmail, d.refuseTakenEmail, d.check)
		},
	}
}

// directory is the organisation's employees in a table with inter-partition indexes, and in a plain one.
type directory struct {
	c     *company
	staff []*Employee // as they are stored
	repo  *patterns.Repository[Employee]
	plain *patterns.Repository[Employee] // the same employees, without indexes

	everybody  *interpartition.Index[Employee] // by email, one partition of a table of its own; an email has one owner
	department *interpartition.Index[Employee] // by email, in the employees' table: partitions email_Sales and so on
}

func (c *company) openDirectory(ctx context.Context) (*directory, error) {
	d := &directory{c: c}
	employees, err := c.table(ctx, "Organisation")
	if err != nil {
		return nil, err
	}
	emails, err := c.table(ctx, "OrganisationEmails")
	if err != nil {
		return nil, err
	}
	plain, err := c.table(ctx, "OrganisationPlain")
	if err != nil {
		return nil, err
	}
	byEmail := func(e *Employee) compoundkey.Part { return compoundkey.String(e.Email) }
	d.everybody = interpartition.NewIndex("everybody", byEmail, &interpartition.Options[Employee]{
		Group:  func(*Employee) string { return interpartition.Global },
		Table:  emails,
		Unique: true,
	})
	d.department = interpartition.NewIndex("email", byEmail, nil)
	d.repo, err = patterns.NewRepository(employees, patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return employeeKey(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}, d.everybody, d.department)
	if err != nil {
		return nil, err
	}
	d.plain, err = newPlain(plain)
	return d, err
}

// load inserts the employees, several at a time.
func (d *directory) load(ctx context.Context, s *section) error {
	for _, e := range d.c.staff[:inOrganisation] {
		d.staff = append(d.staff, e.unwritten())
	}
	x, err := d.repo.Explain(ctx, driver.ChangeInsert, d.staff[jones-1])
	if err != nil {
		return err
	}
	s.explain("One of the inserts, by Repository.Explain:", x)
	if err := d.c.exposed(s, "employees inserted", func() (string, error) {
		return fmt.Sprintf("%s, each with 2 copies elsewhere", counted(len(d.staff), "employee")), together(ctx, d.staff, inserting(d.repo))
	}); err != nil {
		return err
	}
	if err := d.c.drainIntents(ctx); err != nil {
		return err
	}
	_, err = d.plain.BulkNonAtomic(ctx, all(d.staff, (*Employee).unwritten), nil)
	return err
}

// scanning is the way of reading everybody, whose rows lie in all departments.
func (d *directory) scanning(conditions ...tables.Condition) (way, error) {
	w, err := answering(d.plain.Query().Where(conditions...).AllowTableScan())
	w.searched, w.sort = len(d.staff), byEmail
	return w, err
}

func byEmail(a, b *Employee) int { return compoundkey.Compare(a.Email, b.Email) }

// copiesOf is the way of a range of a group's copies.
func copiesOf(x *interpartition.Index[Employee], group string, span compoundkey.Span) (way, error) {
	query, err := x.Query(span)
	if err != nil {
		return way{}, err
	}
	return answering(query.Partition(x.PartitionKey(group)))
}

// askByEmail: nobody knows the department, so without the index the whole table is read.
func (d *directory) askByEmail(ctx context.Context, s *section) error {
	june := d.staff[jones-1].Email
	without, err := d.scanning(tables.Eq("Email", june))
	if err != nil {
		return err
	}
	return d.c.ask(ctx, s, question{text: "one email, anywhere", without: without,
		with: reading(func(ctx context.Context) (*Employee, error) {
			return d.everybody.Get(ctx, interpartition.Global, compoundkey.String(june))
		})})
}

func (d *directory) askByEmailPrefix(ctx context.Context, s *section) error {
	without, err := d.scanning(tables.Ge("Email", "a"), tables.Lt("Email", "b"))
	if err != nil {
		return err
	}
	with, err := copiesOf(d.everybody, interpartition.Global, compoundkey.Prefix("a"))
	if err != nil {
		return err
	}
	return d.c.ask(ctx, s, question{text: "emails that start with a, anywhere", with: with, without: without})
}

// askInDepartment reads the guide's partition email_Sales.
func (d *directory) askInDepartment(ctx context.Context, s *section) error {
	without, err := answering(d.plain.Query().Partition(sales).Where(tables.Ge("Email", "m"), tables.Lt("Email", "n")))
	if err != nil {
		return err
	}
	without.sort = byEmail
	for _, e := range d.staff {
		if e.Department == sales {
			without.searched++
		}
	}
	with, err := copiesOf(d.department, sales, compoundkey.Prefix("m"))
	if err != nil {
		return err
	}
	return d.c.ask(ctx, s, question{text: "emails that start with m, in Sales", with: with, without: without})
}

// changeEmail changes what both indexes are by.
func (d *directory) changeEmail(ctx context.Context, s *section) error {
	e := d.staff[jones-1]
	old := e.Email
	e.Email = "june@contoso.com"
	if err := d.c.act(s, "her email changed", func() (string, error) {
		return "1 row, and the copies in two other partitions", d.repo.Replace(ctx, e)
	}); err != nil {
		return err
	}
	if err := d.c.act(s, "found by the old email and by the new", func() (string, error) {
		if _, err := d.everybody.Get(ctx, interpartition.Global, compoundkey.String(old)); !errors.Is(err, tables.ErrNotFound) {
			return "", fmt.Errorf("the old email still finds somebody: %w", err)
		}
		got, err := d.everybody.Get(ctx, interpartition.Global, compoundkey.String(e.Email))
		return "not found, found", same(got, e, err)
	}); err != nil {
		return err
	}
	return d.c.act(s, "found by email, and read herself", func() (string, error) {
		got, err := d.department.Verified().Get(ctx, sales, compoundkey.String(e.Email))
		return "what is read through Verified is never stale", same(got, e, err)
	})
}

// same is an error unless the employee who was read is the other one.
func same(got, want *Employee, err error) error {
	if err != nil {
		return err
	}
	if got.record() != want.record() {
		return fmt.Errorf("employee %d is not as written", want.ID)
	}
	return nil
}

// refuseTakenEmail: an email has one owner in the whole organisation, though no transaction spans its departments.
func (d *directory) refuseTakenEmail(ctx context.Context, s *section) error {
	other := d.c.newHire(d.staff[jones-1].Email)
	other.Department = "Legal"
	if err := d.c.act(s, "her email for somebody in Legal", func() (string, error) {
		err := d.repo.Insert(ctx, other)
		var e *tables.Error
		if !errors.As(err, &e) || !errors.Is(err, tables.ErrDuplicate) || e.Pattern != "everybody" {
			return "", fmt.Errorf("the taken email was not refused: %w", err)
		}
		return fmt.Sprintf("refused: %v, of index %q", tables.ErrDuplicate, e.Pattern), nil
	}); err != nil {
		return err
	}
	if _, err := d.repo.Get(ctx, employeeKey(other.Department, other.ID)); !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("the refused employee left something: %w", err)
	}
	return nil
}

// check reads both indexes whole: everybody is there once, and no intent is left.
func (d *directory) check(ctx context.Context, s *section) error {
	return d.c.act(s, "both indexes, read whole", func() (string, error) {
		everybody, err := collect(d.everybody.Range(ctx, interpartition.Global, compoundkey.All()))
		if err != nil {
			return "", err
		}
		var byDepartment []*Employee
		for _, name := range departmentNames() {
			found, err := collect(d.department.Range(ctx, name, compoundkey.All()))
			if err != nil {
				return "", err
			}
			byDepartment = append(byDepartment, found...)
		}
		for _, copies := range [][]*Employee{everybody, byDepartment} {
			if err := sameStaff(copies, d.staff); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s in each, as written; no intent is left", counted(len(d.staff), "employee")), d.c.drainIntents(ctx)
	})
}

// sameStaff compares two lists in any order.
func sameStaff(got, want []*Employee) error {
	records := map[int]record{}
	for _, e := range got {
		if _, twice := records[e.ID]; twice {
			return fmt.Errorf("employee %d is there twice", e.ID)
		}
		records[e.ID] = e.record()
	}
	var wrong []string
	for _, e := range want {
		if records[e.ID] != e.record() {
			wrong = append(wrong, fmt.Sprint(e.ID))
		}
	}
	if len(wrong) > 0 || len(got) != len(want) {
		return fmt.Errorf("%d employees, there should be %d; missing or not as written: %s", len(got), len(want), strings.Join(wrong, ", "))
	}
	return nil
}
