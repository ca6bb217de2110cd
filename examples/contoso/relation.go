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
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/tables"
)

// unit is a department, which knows how many employees it has. A member is one of them, and a locker belongs to one member.
type (
	unit struct {
		tables.Meta
		Name                 string
		Floor, EmployeeCount int
	}
	member struct {
		tables.Meta
		Department string
		ID         int
		Name       string
	}
	locker struct {
		tables.Meta
		Department string
		ID, Number int
	}
)

func unitKey(name string) tables.Key { return tables.Key{Partition: name, Row: "department"} }

func unitOf(e *member) (tables.Key, bool) { return unitKey(e.Department), true }

func lockerKey(e tables.Key) tables.Key {
	return tables.Key{Partition: e.Partition, Row: "locker_" + e.Row}
}

// relations counts the employees of a department, joins them with it, and keeps what belongs to one of them.
// Guide: "Modelling relationships".
func relations() scenario {
	const hires = 24 // by concurrent writers
	return scenario{
		title: "Departments, their employees and their lockers",
		guide: "Modelling relationships",
		plain: "counted, looked up one by one",
		shows: []show{
			{"One-to-many relationship", "how many employees Sales has", "", "exact counts among concurrent writers"},
			{"One-to-one relationship", "both read, side by side", "", "both are there, or none"},
			{"Join in the client", "20 employees with their floor", "", "departments are read once for all"},
		},
		open: func(s *scene) func(context.Context) {
			table := s.store.Table("Related")
			units := must(patterns.NewRepository(table, patterns.Schema[unit]{
				Key: func(u *unit) tables.Key { return unitKey(u.Name) }, Rows: compoundkey.Range("department", "department_"),
			}))
			count := relationships.NewParentCount("count", units, unitOf, func(u *unit) *int { return &u.EmployeeCount })
			members := must(patterns.NewRepository(table, patterns.Schema[member]{
				Key: func(e *member) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"), MaxAttempts: 100,
			}, count))
			lockers := must(patterns.NewRepository(table, patterns.Schema[locker]{
				Key: func(l *locker) tables.Key { return lockerKey(employeeKey(l.Department, l.ID)) }, Rows: compoundkey.Starting("locker"),
			}))
			pair := must(relationships.NewPair(members, lockers, lockerKey))
			cache := must(relationships.NewCache(units, units.Query().Where(tables.Eq("RowKey", "department")).AllowTableScan(), nil))
			return func(ctx context.Context) {
				defer cache.Close()
				staff := s.some()
				s.write("a department and its employees inserted", fmt.Sprintf("%d employees, each counted in its own transaction", len(staff)), func() error {
					if err := insert(ctx, units, &unit{Name: sales, Floor: 3}); err != nil {
						return err
					}
					for _, e := range staff { // one after the other: together they would conflict over the count
						if err := insert(ctx, members, &member{Department: sales, ID: e.ID, Name: e.LastName}); err != nil {
							return err
						}
					}
					return nil
				})
				ask(ctx, s, "how many employees Sales has",
					get(func(ctx context.Context) (*unit, error) { return units.Get(ctx, unitKey(sales)) }),
					get(func(ctx context.Context) (*unit, error) {
						all, err := collect(members.Query().Partition(sales).All(ctx))
						return &unit{Name: sales, Floor: 3, EmployeeCount: len(all)}, err
					}).through(len(staff)))
				var news []*member
				for n := range hires {
					news = append(news, &member{Department: sales, ID: len(s.staff) + 1 + n})
				}
				s.write("concurrent writers hire for the department", "24 more, and the count has them all", func() error {
					return together(ctx, news, inserting(members))
				})
				n, was, err := count.Recount(ctx, unitKey(sales))
				try(err)
				s.check(n == was && n == len(staff)+hires, "%d employees, %d were counted; there should be %d", n, was, len(staff)+hires)

				joinUnits(ctx, s, members, units, cache)

				e := &member{Department: sales, ID: len(s.staff) + hires + 1}
				l := &locker{Department: sales, ID: e.ID, Number: 7}
				s.act("an employee and her locker inserted", "and the count of her department, in 1 transaction", func() error { return pair.Insert(ctx, e, l) })
				s.act("both read, side by side", "locker 7", func() error {
					_, got, err := pair.Get(ctx, members.KeyOf(e))
					return same(got, l, err)
				})
				s.act("both deleted", "neither is left", func() error { return pair.Delete(ctx, e, l) })
			}
		},
	}
}

// joinUnits is a join in the client. The departments are few: they are read once, and kept for a minute. Guide: "Join in the client".
func joinUnits(ctx context.Context, s *scene, members *patterns.Repository[member], units *patterns.Repository[unit], cache *relationships.Cache[unit]) {
	type placed struct{ id, floor int }
	some := members.Query().Partition(sales).Top(20)
	cached := relationships.Reference[member, unit]{Source: cache, Key: unitOf}
	ask(ctx, s, "20 employees with their floor",
		sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*placed, error] {
			return mapped(cached.Join(ctx, some.All(ctx)), func(x relationships.Joined[member, unit]) (*placed, error) {
				return &placed{x.Child.ID, x.Parent.Floor}, nil
			})
		}),
		sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*placed, error] {
			return mapped(some.All(ctx), func(e *member) (*placed, error) {
				u, err := units.Get(ctx, unitKey(e.Department))
				if err != nil {
					return nil, err
				}
				return &placed{e.ID, u.Floor}, nil
			})
		}).through(40))
}

// Human is what employees and contractors have in common.
type Human struct{ FirstName, LastName string }

// name makes an employee and a contractor a person.
func (h *Human) name() string { return h.FirstName + " " + h.LastName }

type person interface{ name() string }

// employeeV1 is an employee as the first version of the program has stored it; employeeV2 has a first and a last name.
type (
	employeeV1 struct {
		tables.Meta
		Department string
		ID         int
		FullName   string
	}
	employeeV2 struct {
		tables.Meta
		Human
		Department string
		ID         int
	}
	contractor struct { // another kind of person
		tables.Meta
		Human
		Department string
		ID         int
		Firm       string
	}
)

// mixed keeps several types, and several versions of one, in a table. Guide: "Working with heterogeneous entity types".
func mixed() scenario {
	return scenario{
		title: "Several types and versions in one table",
		guide: "Working with heterogeneous entity types",
		plain: "a query for each type",
		shows: []show{{"Heterogeneous entity types", "everybody in Sales, of all types", "", "all in one read, old versions upgraded"}},
		open: func(s *scene) func(context.Context) {
			table := s.store.Table("Mixed")
			employee := heterogeneous.NewType[employeeV2]("Employee", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{
				heterogeneous.From(1, func(old *employeeV1) (*employeeV2, error) {
					first, last, _ := strings.Cut(old.FullName, " ")
					return &employeeV2{Human: Human{first, last}, Department: old.Department, ID: old.ID}, nil
				}),
			}})
			employees := must(patterns.NewRepository(table, patterns.Schema[employeeV2]{
				Key: func(e *employeeV2) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"),
			}, employee))
			consultant := heterogeneous.NewType[contractor]("Contractor", 1, nil)
			contractors := must(patterns.NewRepository(table, patterns.Schema[contractor]{
				Key: func(x *contractor) tables.Key {
					return tables.Key{Partition: x.Department, Row: compoundkey.Join("contractor", id(x.ID))}
				},
				Rows: compoundkey.Starting("contractor"),
			}, consultant))
			everybody := must(heterogeneous.NewRegistry(table, employee, consultant))
			// The program as it was: one store refuses two repositories with the same rows, so it has the table of its own account.
			before := must(patterns.NewRepository(s.account.Table(table.Name()), patterns.Schema[employeeV1]{
				Key: func(e *employeeV1) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"),
			}, heterogeneous.NewType[employeeV1]("Employee", 1, nil)))
			return func(ctx context.Context) {
				staff := s.some()
				s.write("two versions and two types written", fmt.Sprintf("%d employees of version 1 and 2 in turn, and 3 contractors", len(staff)), func() error {
					return writeMixed(ctx, staff, before, employees, contractors)
				})
				find := func(ctx context.Context) iter.Seq2[*string, error] {
					return mapped(everybody.Query().Partition(sales).All(ctx), nameOf)
				}
				ask(ctx, s, "everybody in Sales, of all types", sequence(tables.PartitionScan, find), sequence(tables.RangeQuery, concat(
					func(ctx context.Context) iter.Seq2[*string, error] {
						return mapped(contractors.Query().Partition(sales).All(ctx), func(x *contractor) (*string, error) { return nameOf(x) })
					},
					func(ctx context.Context) iter.Seq2[*string, error] {
						return mapped(employees.Query().Partition(sales).All(ctx), func(e *employeeV2) (*string, error) { return nameOf(e) })
					})))

				key := employeeKey(sales, staff[0].ID)
				s.act("a last name changed, whatever it is of", "it was an employee of version 1, and is of version 2 now", func() error {
					return everybody.Modify(ctx, key, func(e *tables.Entity) error {
						e.Set("LastName", tables.String("Jones-Park"))
						return nil
					})
				})
				var done tables.Report
				s.act("the old version upgraded", "", func() (err error) {
					done, err = employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{sales}})
					return err
				}).says("%s written as version 2", counted(int(done.Written), "employee"))
				v := must(everybody.Get(ctx, key))
				s.check(*must(nameOf(v)) == staff[0].FirstName+" Jones-Park", "the changed employee is %v", v)
				s.act("read by the program of version 1", "refused: it knows up to version 1", func() error {
					var later *heterogeneous.VersionError
					if _, err := before.Get(ctx, employeeKey(sales, jones)); !errors.As(err, &later) {
						return fmt.Errorf("it was not refused: %w", err)
					}
					return nil
				})
			}
		},
	}
}

// writeMixed has two versions of the program write employees in turn, and adds contractors.
func writeMixed(ctx context.Context, staff []*Employee, before *patterns.Repository[employeeV1], employees *patterns.Repository[employeeV2],
	contractors *patterns.Repository[contractor]) error {
	var failed error
	for i, e := range staff {
		if i%2 == 0 {
			failed = errors.Join(failed, insert(ctx, before, &employeeV1{Department: sales, ID: e.ID, FullName: e.FirstName + " " + e.LastName}))
			continue
		}
		failed = errors.Join(failed, insert(ctx, employees, &employeeV2{Human: Human{e.FirstName, e.LastName}, Department: sales, ID: e.ID}))
	}
	for n := range 3 {
		failed = errors.Join(failed, insert(ctx, contractors, &contractor{Human: Human{"Con", fmt.Sprintf("Tractor %d", n)}, Department: sales, ID: n, Firm: "Fabrikam"}))
	}
	return failed
}

func nameOf(v any) (*string, error) {
	p, ok := v.(person)
	if !ok {
		return nil, fmt.Errorf("a %T is no person", v)
	}
	name := p.name()
	return &name, nil
}
