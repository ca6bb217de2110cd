package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/tables"
)

const hires = 24 // by concurrent writers, into one department

// relations keeps how many employees a department has, what belongs to one of them, and joins the two.
func relations() scenario {
	return scenario{
		title: "Departments, their employees and their lockers",
		guide: "Modelling relationships",
		shows: []show{
			{"One-to-many relationship", "how many employees Sales has", "", "exact counts among concurrent writers"},
			{"One-to-one relationship", "both read, side by side", "", "both are there, or none"},
			{"Join in the client", "20 employees with their floor", "", "departments are read once for all"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			r, err := c.openRelations(ctx)
			if err != nil {
				return err
			}
			defer r.cache.Close()
			s.Plain = "counted, looked up one by one"
			return steps(ctx, s, r.load, r.askForCount, r.hireTogether, r.dismiss, r.keepPairs, r.askForDepartments, r.check)
		},
	}
}

// unit is a department, which knows how many employees it has.
type unit struct {
	tables.Meta
	Name          string
	Floor         int
	EmployeeCount int
}

// member is an employee of a department, in its partition.
type member struct {
	tables.Meta
	Department string
	ID         int
	Name       string
}

// locker belongs to one member.
type locker struct {
	tables.Meta
	Department string
	ID         int
	Number     int
}

func unitKey(name string) tables.Key { return tables.Key{Partition: name, Row: "department"} }

func lockerKey(e tables.Key) tables.Key {
	return tables.Key{Partition: e.Partition, Row: "locker_" + e.Row}
}

// related is the three in one table, so that a transaction can write one with the other.
type related struct {
	c       *company
	units   *patterns.Repository[unit]
	members *patterns.Repository[member]
	lockers *patterns.Repository[locker]

	count *relationships.ParentCount[member, unit]
	pair  *relationships.Pair[member, locker]
	cache *relationships.Cache[unit] // of all departments
	of    map[string]int             // how many members a department has
}

func (c *company) openRelations(ctx context.Context) (*related, error) {
	r := &related{c: c, of: map[string]int{}}
	table, err := c.table(ctx, "Related")
	if err != nil {
		return nil, err
	}
	if r.units, err = patterns.NewRepository(table, patterns.Schema[unit]{
		Key: func(u *unit) tables.Key { return unitKey(u.Name) }, Rows: compoundkey.Range("department", "department_"),
	}); err != nil {
		return nil, err
	}
	r.count = relationships.NewParentCount("count", r.units, departmentOf, func(u *unit) *int { return &u.EmployeeCount })
	if r.members, err = patterns.NewRepository(table, patterns.Schema[member]{
		Key: func(e *member) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"), MaxAttempts: 100,
	}, r.count); err != nil {
		return nil, err
	}
	if r.lockers, err = patterns.NewRepository(table, patterns.Schema[locker]{
		Key: func(l *locker) tables.Key { return lockerKey(employeeKey(l.Department, l.ID)) }, Rows: compoundkey.Starting("locker"),
	}); err != nil {
		return nil, err
	}
	if r.pair, err = relationships.NewPair(r.members, r.lockers, lockerKey); err != nil {
		return nil, err
	}
	r.cache, err = relationships.NewCache(r.units, r.units.Query().Where(tables.Eq("RowKey", "department")).AllowTableScan(), nil)
	return r, err
}

func departmentOf(e *member) (tables.Key, bool) { return unitKey(e.Department), true }

func newMember(e *Employee) *member {
	return &member{Department: e.Department, ID: e.ID, Name: e.FirstName + " " + e.LastName}
}

// load inserts the departments, and of each the employees one after the other: they would conflict over its count.
func (r *related) load(ctx context.Context, s *section) error {
	return r.c.exposed(s, "departments and employees inserted", func() (string, error) {
		var all []*unit
		for floor, name := range departmentNames() {
			all = append(all, &unit{Name: name, Floor: floor})
		}
		err := together(ctx, all, func(ctx context.Context, u *unit) error {
			if err := insert(ctx, r.units, u); err != nil {
				return err
			}
			for _, e := range r.c.staff[:minEmployees] {
				if e.Department != u.Name {
					continue
				}
				if err := insert(ctx, r.members, newMember(e)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, e := range r.c.staff[:minEmployees] {
			r.of[e.Department]++
		}
		return fmt.Sprintf("%d and %d, each counted in its own transaction", len(all), minEmployees), err
	})
}

// size is how many employees a department has.
type size struct{ employees int }

func (n *size) record() size { return *n }

// askForCount: one to many.
func (r *related) askForCount(ctx context.Context, s *section) error {
	with := reading(func(ctx context.Context) (*size, error) {
		u, err := r.units.Get(ctx, unitKey(sales))
		if err != nil {
			return nil, err
		}
		return &size{u.EmployeeCount}, nil
	})
	without, err := answering(r.members.Query().Partition(sales))
	if err != nil {
		return err
	}
	counting := wayTo[size]{class: without.class, searched: r.of[sales], ask: func(ctx context.Context) iter.Seq2[*size, error] {
		all, err := collect(without.ask(ctx))
		if err != nil {
			return failing[size](err)
		}
		return each([]*size{{len(all)}})
	}}
	return ask(ctx, r.c, s, asked[size, size]{text: "how many employees Sales has", with: with, without: counting, record: (*size).record})
}

// newcomers are employees of Sales whom nobody has yet.
func (r *related) newcomers() []*member {
	var all []*member
	for n := range hires {
		all = append(all, &member{Department: sales, ID: len(r.c.staff) + 1 + n, Name: "New"})
	}
	return all
}

// hireTogether: concurrent writers insert into one department.
func (r *related) hireTogether(ctx context.Context, s *section) error {
	return r.c.exposed(s, "concurrent writers hire for one department", func() (string, error) {
		err := together(ctx, r.newcomers(), inserting(r.members))
		r.of[sales] += hires
		return fmt.Sprintf("%d more, and the count has them all", hires), errors.Join(err, r.counts(ctx))
	})
}

// dismiss deletes those again, each of them by two at once.
func (r *related) dismiss(ctx context.Context, s *section) error {
	return r.c.act(s, "each of them deleted by two at once", func() (string, error) {
		var refused atomic.Int64
		all := r.newcomers()
		err := together(ctx, append(all, all...), func(ctx context.Context, e *member) error {
			err := r.members.DeleteUnconditional(ctx, employeeKey(e.Department, e.ID))
			if errors.Is(err, tables.ErrNotFound) {
				refused.Add(1)
				return nil
			}
			return err
		})
		if n := refused.Load(); err == nil && n != hires {
			err = fmt.Errorf("%d of %d second deletions were refused", n, hires)
		}
		r.of[sales] -= hires
		return fmt.Sprintf("%d are refused, and none is counted twice", refused.Load()), errors.Join(err, r.counts(ctx))
	})
}

// counts is an error unless each department has the right count.
func (r *related) counts(ctx context.Context) error {
	for _, name := range departmentNames() {
		u, err := r.units.Get(ctx, unitKey(name))
		if err != nil {
			return err
		}
		if u.EmployeeCount != r.of[name] {
			return fmt.Errorf("%s counts %d employees, and has %d", name, u.EmployeeCount, r.of[name])
		}
	}
	return nil
}

// keepPairs: one to one. Both are there, or none.
func (r *related) keepPairs(ctx context.Context, s *section) error {
	e := r.newcomers()[0]
	l := &locker{Department: e.Department, ID: e.ID, Number: 7}
	if err := r.c.act(s, "an employee and her locker inserted", func() (string, error) {
		return "and the count of her department, in 1 transaction", r.pair.Insert(ctx, e, l)
	}); err != nil {
		return err
	}
	if err := r.c.act(s, "both read, side by side", func() (string, error) {
		gotMember, gotLocker, err := r.pair.Get(ctx, employeeKey(e.Department, e.ID))
		if err == nil && (gotMember == nil || gotLocker == nil || gotLocker.Number != l.Number) {
			err = errors.New("one of them is not there, or another one")
		}
		return fmt.Sprintf("locker %d", l.Number), err
	}); err != nil {
		return err
	}
	return r.c.act(s, "both deleted", func() (string, error) {
		if err := r.pair.Delete(ctx, e, l); err != nil {
			return "", err
		}
		_, _, err := r.pair.Get(ctx, employeeKey(e.Department, e.ID))
		if !errors.Is(err, tables.ErrNotFound) {
			return "", fmt.Errorf("something is left: %w", err)
		}
		return "neither is left", nil
	})
}

// placed is an employee with the floor of the department.
type placed struct{ id, floor int }

func (p *placed) record() placed { return *p }

// askForDepartments: a join in the client. The departments are few: they are read once, and kept for a minute.
func (r *related) askForDepartments(ctx context.Context, s *section) error {
	some := r.members.Query().Partition(sales).Top(20)
	cached := relationships.Reference[member, unit]{Source: r.cache, Key: departmentOf}
	with := wayTo[placed]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*placed, error] {
		return placing(cached.Join(ctx, some.All(ctx)))
	}}
	without := wayTo[placed]{class: tables.RangeQuery, searched: 40, ask: func(ctx context.Context) iter.Seq2[*placed, error] {
		return placing(func(yield func(relationships.Joined[member, unit], error) bool) {
			for e, err := range some.All(ctx) {
				var u *unit
				if err == nil {
					u, err = r.units.Get(ctx, unitKey(e.Department))
				}
				if !yield(relationships.Joined[member, unit]{Child: e, Parent: u}, err) || err != nil {
					return
				}
			}
		})
	}}
	return ask(ctx, r.c, s, asked[placed, placed]{text: "20 employees with their floor", with: with, without: without, record: (*placed).record})
}

func placing(all iter.Seq2[relationships.Joined[member, unit], error]) iter.Seq2[*placed, error] {
	return func(yield func(*placed, error) bool) {
		for x, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&placed{x.Child.ID, x.Parent.Floor}, nil) {
				return
			}
		}
	}
}

// check counts all employees again.
func (r *related) check(ctx context.Context, s *section) error {
	return r.c.act(s, "all counts, by ParentCount.Recount", func() (string, error) {
		for _, name := range departmentNames() {
			n, was, err := r.count.Recount(ctx, unitKey(name))
			if err != nil {
				return "", err
			}
			if n != was || n != r.of[name] {
				return "", fmt.Errorf("%s has %d employees, and has counted %d", name, n, was)
			}
		}
		return "none has changed", r.counts(ctx)
	})
}
