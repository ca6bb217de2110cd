package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// organisation finds employees by email whatever their department, through copies in other partitions and another table.
func organisation(s *scene) func(context.Context) {
	byEmail := func(e *Employee) string { return e.Email }
	everybody := interpartition.NewUnique("everybody", byEmail, &interpartition.Options[Employee]{
		Table: s.store.Table("OrganisationEmails"),
	})
	department := interpartition.NewUnique("email", byEmail, &interpartition.Options[Employee]{ByPartition: true}) // in the employees' table: partitions email_Sales and so on
	repo := must(patterns.NewRepository(s.store.Table("Organisation"), schemaOf("empid", (*Employee).key), everybody, department))
	plain := newPlain(s.store.Table("OrganisationPlain"))
	return func(ctx context.Context) {
		staff := allFresh(s.staff[:minEmployees])
		june := staff[jones-1]
		s.explain("One of the inserts, by Repository.Explain:", must(repo.Explain(ctx, driver.ChangeInsert, june)))
		s.write("employees inserted", "250 employees, each with 2 copies elsewhere", func() { together(ctx, staff, inserting(repo)) })
		load(ctx, plain, allFresh(staff))

		ask(s, "one email, anywhere",
			get(func() *Employee {
				return must(everybody.Get(ctx, june.Email))
			}),
			query(ctx, plain.Query().Where(tables.Eq("Email", june.Email)).AllowTableScan()).through(len(staff)))
		ask(s, "emails that start with a, anywhere",
			query(ctx, everybody.Query(compoundkey.Prefix("a"))),
			query(ctx, plain.Query().Where(tables.Ge("Email", "a"), tables.Lt("Email", "b")).AllowTableScan()).through(len(staff)).sorted(emailOrder))

		june.Email = "june@contoso.com"
		s.act("her email changed", "1 row, and the copies in two other partitions", func() { try(repo.Replace(ctx, june)) })
		s.act("found by her new email", "what is read through the index is never stale", func() {
			try(same(must(department.In(sales).Get(ctx, june.Email)), june))
		})
		other := s.newHire(june.Email)
		other.Department = "Legal"
		s.refused("her email for somebody in Legal", tables.ErrDuplicate, func() { try(repo.Insert(ctx, other)) })

		try(sameStaff(collect(everybody.Range(ctx)), staff))
	}
}

// names finds employees by last name, which many share, through lists of their keys: two of the three options of the guide.
func names(s *scene) func(context.Context) {
	lastName := func(e *Employee) compoundkey.Part { return compoundkey.String(e.LastName) }
	beside := indexentities.NewInPartition("lastname", lastName)                                    // option 2
	outside := indexentities.NewInTable("lastname-row", lastName, s.store.Table("NamesLists"), nil) // option 3
	repo := must(patterns.NewRepository(s.store.Table("Names"), schemaOf("empid", (*Employee).key), beside, outside))
	plain := newPlain(s.store.Table("NamesPlain"))
	return func(ctx context.Context) {
		staff := allFresh(s.staff[reviewed:jones])
		june, value := staff[len(staff)-1], compoundkey.String("Jones")
		s.write("employees inserted, both options", "100 employees, each in 2 lists", func() {
			for _, e := range staff { // one after the other: together, namesakes would conflict over their lists
				try(inserting(repo)(ctx, e))
			}
		})
		load(ctx, plain, allFresh(staff))

		named := plain.Query().Where(tables.Eq("LastName", "Jones"))
		anywhere := query(ctx, named.AllowTableScan()).through(len(staff))
		here := query(ctx, named.Partition(sales)).through(len(in(sales, staff)))
		listed := func(find iter.Seq2[*Employee, error], keys []tables.Key) way[Employee] { // the list is read, and who is on it
			return list(tables.PointQuery, func() []*Employee { return collect(find) }).through(1 + len(keys))
		}
		ask(s, "Jones in Sales, by row (option 2)",
			listed(beside.In(sales).Find(ctx, value, nil), must(beside.In(sales).Keys(ctx, value))), here)
		ask(s, "Jones anywhere, by row (option 3)",
			listed(outside.Find(ctx, value, nil), must(outside.Keys(ctx, value))), anywhere)

		june.LastName = "Jones-Park"
		s.act("her last name changed", "1 row and 4 lists", func() { try(repo.Replace(ctx, june)) })
		keys := must(outside.Keys(ctx, compoundkey.String("Jones-Park")))
		s.check(slices.Equal(keys, []tables.Key{repo.KeyOf(june)}), "the list of her new name is %v", keys)
	}
}

// colleague is an employee who may be the manager of the department.
type colleague struct {
	tables.Meta
	Ref
	Name, Email string
	IsManager   bool
}

// managed is a department with the details of its manager. It is in the partition of its employees.
type managed struct {
	tables.Meta
	Name                      string
	ManagerID                 int
	ManagerName, ManagerEmail string
}

func managedKey(name string) tables.Key {
	return tables.Key{Partition: name, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

// managers reads departments with the details of their managers, of which each department has a copy.
func managers(s *scene) func(context.Context) {
	table := s.store.Table("Managed")
	manager := denormalization.NewInPartition("manager", denormalization.Link[colleague, managed]{
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
	}, nil)
	departments := must(patterns.NewRepository(table, schemaOf("dept", func(d *managed) tables.Key { return managedKey(d.Name) }), manager.Holder()))
	employees := must(patterns.NewRepository(table, schemaOf("empid", (*colleague).key), manager.Source()))
	return func(ctx context.Context) {
		var all []*colleague
		for _, e := range s.some() {
			all = append(all, &colleague{Ref: e.Ref, Name: e.name(), Email: e.Email, IsManager: e.ID == jones})
		}
		successor, june := all[0], all[len(all)-1]
		s.write("a department and its employees inserted", fmt.Sprintf("%d employees, of whom 1 is the manager", len(all)), func() {
			try(inserting(departments)(ctx, &managed{Name: sales}))
			together(ctx, all, inserting(employees))
		})
		department := func() *managed { return must(departments.Get(ctx, managedKey(sales))) }
		ask(s, "Sales with its manager", get(department), get(func() *managed {
			d := department()
			e := must(employees.Get(ctx, employeeKey(sales, d.ManagerID)))
			d.ManagerName, d.ManagerEmail = e.Name, e.Email
			return d
		}).through(2))

		june.Email = "june@contoso.com"
		s.explain("The change of a manager's email, by Repository.Explain:", must(employees.Explain(ctx, driver.ChangeReplace, june)))
		s.act("the manager's email changed", "the department is read; both rows are written in 1 transaction", func() {
			try(employees.Replace(ctx, june))
		})
		d := department()
		s.check(d.ManagerEmail == june.Email, "the department has the email %s", d.ManagerEmail)

		// The department has a manager all the time, since the new one begins before the old one stops.
		successor.IsManager, june.IsManager = true, false
		s.act("another manager begins", "the department has the new one's details", func() { try(employees.Replace(ctx, successor)) })
		s.act("the one before stops", "the department stays as it is", func() { try(employees.Replace(ctx, june)) })
		d = department()
		s.check(d.ManagerID == successor.ID && d.ManagerName == successor.Name, "the manager is %s", d.ManagerName)
	}
}
