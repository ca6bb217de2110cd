package main

import (
	"context"
	"errors"
	"fmt"
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
		Ref
		Name string
	}
	locker struct {
		tables.Meta
		Ref
		Number int
	}
)

func unitKey(name string) tables.Key { return tables.Key{Partition: name, Row: "department"} }

func unitOf(e *member) (tables.Key, bool) { return unitKey(e.Department), true }

func lockerKey(e tables.Key) tables.Key {
	return tables.Key{Partition: e.Partition, Row: "locker_" + e.Row}
}

// relations counts the employees of a department, joins them with it, and keeps what belongs to one of them.
func relations(s *scene) func(context.Context) {
	const hires = 24 // by concurrent writers
	table := s.store.Table("Related")
	units := must(patterns.NewRepository(table, patterns.Schema[unit]{
		Key: func(u *unit) tables.Key { return unitKey(u.Name) }, Rows: compoundkey.Range("department", "department_"),
	}))
	count := relationships.NewParentCount("count", units, unitOf, func(u *unit) *int { return &u.EmployeeCount })
	members := must(patterns.NewRepository(table, patterns.Schema[member]{
		Key: (*member).key, Prefix: "empid", MaxAttempts: 100,
	}, count))
	lockers := must(patterns.NewRepository(table, schemaOf("locker", func(l *locker) tables.Key { return lockerKey(l.key()) })))
	pair := must(relationships.NewPair(members, lockers, lockerKey))
	cache := must(relationships.NewCache(units, units.Query().Where(tables.Eq("RowKey", "department")).AllowTableScan(), nil))
	return func(ctx context.Context) {
		defer cache.Close()
		staff := s.some()
		s.write("a department and its employees inserted", fmt.Sprintf("%d employees, each counted in its own transaction", len(staff)), func() {
			try(inserting(units)(ctx, &unit{Name: sales, Floor: 3}))
			for _, e := range staff { // one after the other: together they would conflict over the count
				try(inserting(members)(ctx, &member{Ref: e.Ref, Name: e.LastName}))
			}
		})
		ask(s, "how many employees Sales has",
			get(func() *unit { return must(units.Get(ctx, unitKey(sales))) }),
			get(func() *unit {
				all := collect(members.Query().Partition(sales).All(ctx))
				return &unit{Name: sales, Floor: 3, EmployeeCount: len(all)}
			}).through(len(staff)))
		var news []*member
		for n := range hires {
			news = append(news, &member{Ref: Ref{sales, len(s.staff) + 1 + n}})
		}
		s.write("concurrent writers hire for the department", "24 more, and the count has them all", func() { together(ctx, news, inserting(members)) })
		n, was, err := count.Recount(ctx, unitKey(sales))
		try(err)
		s.check(n == was && n == len(staff)+hires, "%d employees, %d were counted; there should be %d", n, was, len(staff)+hires)

		// A join in the client. The departments are few: they are read once, and kept for a minute.
		type placed struct{ id, floor int }
		some := members.Query().Partition(sales).Top(20)
		cached := relationships.Reference[member, unit]{Source: cache, Key: unitOf}
		ask(s, "20 employees with their floor",
			list(tables.RangeQuery, func() (found []*placed) {
				for _, x := range collect(cached.Join(ctx, some.All(ctx))) {
					found = append(found, &placed{x.Child.ID, x.Parent.Floor})
				}
				return found
			}),
			list(tables.RangeQuery, func() (found []*placed) {
				for _, e := range collect(some.All(ctx)) {
					found = append(found, &placed{e.ID, must(units.Get(ctx, unitKey(e.Department))).Floor})
				}
				return found
			}).through(40))

		e := &member{Ref: Ref{sales, len(s.staff) + hires + 1}}
		l := &locker{Ref: e.Ref, Number: 7}
		s.act("an employee and her locker inserted", "and the count of her department, in 1 transaction", func() { try(pair.Insert(ctx, e, l)) })
		s.act("both read, side by side", "locker 7", func() {
			_, got, err := pair.Get(ctx, e.key())
			try(err)
			try(same(got, l))
		})
		s.act("both deleted", "neither is left", func() { try(pair.Delete(ctx, e, l)) })
	}
}

// Human is what employees and contractors have in common.
type Human struct{ FirstName, LastName string }

// name makes an employee and a contractor a person.
func (h *Human) name() string { return h.FirstName + " " + h.LastName }

type person interface{ name() string }

// employeeV1 is an employee as the first version of the program has stored it; employeeV2 has a first and a last name. A contractor is
// another kind of person.
type (
	employeeV1 struct {
		tables.Meta
		Ref
		FullName string
	}
	employeeV2 struct {
		tables.Meta
		Ref
		Human
	}
	contractor struct {
		tables.Meta
		Ref
		Human
		Firm string
	}
)

// mixed keeps several types, and several versions of one, in a table.
func mixed(s *scene) func(context.Context) {
	table := s.store.Table("Mixed")
	employee := heterogeneous.NewType[employeeV2]("Employee", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{
		heterogeneous.From(1, func(old *employeeV1) (*employeeV2, error) {
			first, last, _ := strings.Cut(old.FullName, " ")
			return &employeeV2{Ref: old.Ref, Human: Human{first, last}}, nil
		}),
	}})
	employees := must(patterns.NewRepository(table, schemaOf("empid", (*employeeV2).key), employee))
	consultant := heterogeneous.NewType[contractor]("Contractor", 1, nil)
	contractors := must(patterns.NewRepository(table, schemaOf("contractor", func(x *contractor) tables.Key {
		return tables.Key{Partition: x.Department, Row: compoundkey.Join("contractor", id(x.ID))}
	}), consultant))
	everybody := must(heterogeneous.NewRegistry(table, employee, consultant))
	// The program as it was: one store refuses two repositories with the same rows, so it opens the table from its own account.
	first := heterogeneous.NewType[employeeV1]("Employee", 1, nil)
	before := must(patterns.NewRepository(s.account.Table(table.Name()), schemaOf("empid", (*employeeV1).key), first))
	return func(ctx context.Context) {
		staff := s.some()
		s.write("two versions and two types written", fmt.Sprintf("%d employees of version 1 and 2 in turn, and 3 contractors", len(staff)), func() {
			for i, e := range staff {
				if i%2 == 0 {
					try(inserting(before)(ctx, &employeeV1{Ref: e.Ref, FullName: e.name()}))
				} else {
					try(inserting(employees)(ctx, &employeeV2{Ref: e.Ref, Human: Human{e.FirstName, e.LastName}}))
				}
			}
			for n := range 3 {
				try(inserting(contractors)(ctx, &contractor{Ref: Ref{sales, n}, Human: Human{"Con", fmt.Sprintf("Tractor %d", n)}, Firm: "Fabrikam"}))
			}
		})
		ask(s, "everybody in Sales, of all types",
			list(tables.PartitionScan, func() []*string { return namesOf(collect(everybody.Query().Partition(sales).All(ctx))) }),
			list(tables.RangeQuery, func() []*string {
				return append(namesOf(collect(contractors.Query().Partition(sales).All(ctx))), namesOf(collect(employees.Query().Partition(sales).All(ctx)))...)
			}))

		key := staff[0].key()
		s.act("a last name changed, whatever it is of", "it was an employee of version 1, and is of version 2 now", func() {
			try(everybody.Modify(ctx, key, func(e *tables.Entity) error {
				e.Set("LastName", tables.String("Jones-Park"))
				return nil
			}))
		})
		var done patterns.RewriteReport
		s.act("the old version upgraded", "", func() {
			done = must(employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{sales}}))
		}).says("%s written as version 2", counted(int(done.Written), "employee"))
		changed := must(everybody.Get(ctx, key)).(person)
		s.check(changed.name() == staff[0].FirstName+" Jones-Park", "the changed employee is %v", changed)
		s.act("read by the program of version 1", "refused: it knows up to version 1", func() {
			_, err := before.Get(ctx, employeeKey(sales, jones))
			var later *heterogeneous.VersionError
			s.check(errors.As(err, &later), "it was not refused: %v", err)
		})
	}
}

// namesOf returns the names of persons of any type.
func namesOf[T any](all []T) (names []*string) {
	for _, v := range all {
		name := any(v).(person).name()
		names = append(names, &name)
	}
	return names
}
