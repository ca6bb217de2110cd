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
// Guide: "Inter-partition secondary index pattern".
func organisation() scenario {
	return scenario{
		title: "Employees over the organisation",
		guide: "Inter-partition secondary index pattern",
		shows: []show{{"Inter-partition secondary index", "one email, anywhere", "", "an email has one owner in all departments"}},
		open: func(s *scene) func(context.Context) {
			byEmail := func(e *Employee) compoundkey.Part { return compoundkey.String(e.Email) }
			everybody := interpartition.NewIndex("everybody", byEmail, &interpartition.Options[Employee]{
				Group:  func(*Employee) string { return interpartition.Global },
				Table:  s.store.Table("OrganisationEmails"),
				Unique: true,
			})
			department := interpartition.NewIndex("email", byEmail, nil) // in the employees' table: partitions email_Sales and so on
			repo := must(patterns.NewRepository(s.store.Table("Organisation"), employeeSchema(), everybody, department))
			plain := must(newPlain(s.store.Table("OrganisationPlain")))
			return func(ctx context.Context) {
				staff := allFresh(s.staff[:minEmployees])
				june := staff[jones-1]
				x, err := repo.Explain(ctx, driver.ChangeInsert, june)
				s.explain("One of the inserts, by Repository.Explain:", x, err)
				s.write("employees inserted", "250 employees, each with 2 copies elsewhere", func() error {
					return together(ctx, staff, inserting(repo))
				})
				try(s.drainIntents(ctx))
				importing(ctx, plain, allFresh(staff))

				ask(ctx, s, "one email, anywhere",
					get(func(ctx context.Context) (*Employee, error) {
						return everybody.Get(ctx, interpartition.Global, compoundkey.String(june.Email))
					}),
					query(plain.Query().Where(tables.Eq("Email", june.Email)).AllowTableScan()).through(len(staff)))
				ask(ctx, s, "emails that start with a, anywhere",
					query(everybody.Query(compoundkey.Prefix("a")).Partition(everybody.PartitionKey(interpartition.Global))),
					query(plain.Query().Where(tables.Ge("Email", "a"), tables.Lt("Email", "b")).AllowTableScan()).through(len(staff)).sorted(emailOrder))

				june.Email = "june@contoso.com"
				s.act("her email changed", "1 row, and the copies in two other partitions", func() error { return repo.Replace(ctx, june) })
				s.act("found by email, and read herself", "what is read through Verified is never stale", func() error {
					got, err := department.Verified().Get(ctx, sales, compoundkey.String(june.Email))
					return same(got, june, err)
				})
				other := s.newHire(june.Email)
				other.Department = "Legal"
				s.refused("her email for somebody in Legal", tables.ErrDuplicate, func() error { return repo.Insert(ctx, other) })

				all := must(collect(everybody.Range(ctx, interpartition.Global, compoundkey.All())))
				try(sameStaff(all, staff))
				try(s.drainIntents(ctx))
			}
		},
	}
}

// names finds employees by last name, which many share, through lists of their keys: the three options of the guide.
// Guide: "Index Entities Pattern".
func names() scenario {
	return scenario{
		title: "Employees by last name",
		guide: "Index Entities Pattern",
		shows: []show{{"Index entities", "Jones anywhere, by row (option 3)", "", "only who matches is read; lists are exact"}},
		open: func(s *scene) func(context.Context) {
			lastName := func(e *Employee) compoundkey.Part { return compoundkey.String(e.LastName) }
			global := &indexentities.Options[Employee]{Group: func(*Employee) string { return indexentities.Global }}
			blobs := indexentities.NewInBlobs("lastname-blob", lastName, s.store.Container("names"), global)   // option 1
			beside := indexentities.NewInPartition("lastname", lastName)                                       // option 2
			outside := indexentities.NewInTable("lastname-row", lastName, s.store.Table("NamesLists"), global) // option 3
			repo := must(patterns.NewRepository(s.store.Table("Names"), employeeSchema(), beside, outside, blobs))
			plain := must(newPlain(s.store.Table("NamesPlain")))
			return func(ctx context.Context) {
				staff := allFresh(s.staff[reviewed:jones])
				june, value := staff[len(staff)-1], compoundkey.String("Jones")
				s.write("employees inserted, all options", "100 employees, each in 3 lists", func() error { return insertByName(ctx, repo, staff) })
				try(s.drainIntents(ctx))
				importing(ctx, plain, allFresh(staff))

				named := plain.Query().Where(tables.Eq("LastName", "Jones"))
				here := len(slices.DeleteFunc(slices.Clone(staff), func(e *Employee) bool { return e.Department != sales }))
				for _, x := range []struct {
					question string
					find     func(ctx context.Context) iter.Seq2[*Employee, error]
					keys     []tables.Key
					without  way[Employee]
				}{
					{"Jones anywhere, by blob (option 1)", func(ctx context.Context) iter.Seq2[*Employee, error] {
						return blobs.Find(ctx, indexentities.Global, value, nil)
					}, must(blobs.Keys(ctx, indexentities.Global, value)), query(named.AllowTableScan()).through(len(staff))},
					{"Jones in Sales, by row (option 2)", func(ctx context.Context) iter.Seq2[*Employee, error] {
						return beside.Find(ctx, sales, value, nil)
					}, must(beside.Keys(ctx, sales, value)), query(named.Partition(sales)).through(here)},
					{"Jones anywhere, by row (option 3)", func(ctx context.Context) iter.Seq2[*Employee, error] {
						return outside.Find(ctx, indexentities.Global, value, nil)
					}, must(outside.Keys(ctx, indexentities.Global, value)), query(named.AllowTableScan()).through(len(staff))},
				} {
					ask(ctx, s, x.question, sequence(tables.PointQuery, x.find).through(1+len(x.keys)), x.without)
				}
				june.LastName = "Jones-Park"
				s.act("her last name changed", "1 row and 6 lists", func() error { return repo.Replace(ctx, june) })
				keys := must(outside.Keys(ctx, indexentities.Global, compoundkey.String("Jones-Park")))
				s.check(slices.Equal(keys, []tables.Key{repo.KeyOf(june)}), "the list of her new name is %v", keys)
				try(s.drainIntents(ctx))
			}
		},
	}
}

// insertByName inserts several employees at a time, but those of one name after each other: they would conflict over its lists.
func insertByName(ctx context.Context, repo *patterns.Repository[Employee], staff []*Employee) error {
	namesakes := map[string][]*Employee{}
	for _, e := range staff {
		namesakes[e.LastName] = append(namesakes[e.LastName], e)
	}
	firsts := slices.DeleteFunc(slices.Clone(staff), func(e *Employee) bool { return namesakes[e.LastName][0] != e })
	return together(ctx, firsts, func(ctx context.Context, first *Employee) error {
		for _, e := range namesakes[first.LastName] {
			if err := insert(ctx, repo, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// colleague is an employee who may be the manager of the department.
type colleague struct {
	tables.Meta
	Department  string
	ID          int
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

// managerLink copies the details of a manager into the department.
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

// managers reads departments with the details of their managers, of which each department has a copy.
// Guide: "Denormalization pattern".
func managers() scenario {
	return scenario{
		title: "Departments with their manager",
		guide: "Denormalization pattern",
		plain: "the manager looked up",
		shows: []show{{"Denormalization", "Sales with its manager", "", "the copy changes in the same transaction"}},
		open: func(s *scene) func(context.Context) {
			table, manager := s.store.Table("Managed"), denormalization.NewInPartition("manager", managerLink(), nil)
			departments := must(patterns.NewRepository(table, patterns.Schema[managed]{
				Key: func(d *managed) tables.Key { return managedKey(d.Name) }, Rows: compoundkey.Starting("dept"),
			}, manager.Holder()))
			employees := must(patterns.NewRepository(table, patterns.Schema[colleague]{
				Key: func(e *colleague) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"),
			}, manager.Source()))
			return func(ctx context.Context) {
				var all []*colleague
				var june, successor *colleague
				for _, e := range s.some() {
					x := &colleague{Department: e.Department, ID: e.ID, Name: e.FirstName + " " + e.LastName, Email: e.Email, IsManager: e.ID == jones}
					switch all = append(all, x); e.ID {
					case jones:
						june = x
					case reviewed:
						successor = x
					}
				}
				s.write("a department and its employees inserted", fmt.Sprintf("%d employees, of whom 1 is the manager", len(all)), func() error {
					if err := insert(ctx, departments, &managed{Name: sales}); err != nil {
						return err
					}
					return together(ctx, all, inserting(employees))
				})
				department := func(ctx context.Context) (*managed, error) { return departments.Get(ctx, managedKey(sales)) }
				ask(ctx, s, "Sales with its manager", get(department), get(func(ctx context.Context) (*managed, error) {
					d, err := department(ctx)
					if err != nil {
						return nil, err
					}
					e, err := employees.Get(ctx, employeeKey(sales, d.ManagerID))
					if err == nil {
						d.ManagerName, d.ManagerEmail = e.Name, e.Email
					}
					return d, err
				}).through(2))

				june.Email = "june@contoso.com"
				x, err := employees.Explain(ctx, driver.ChangeReplace, june)
				s.explain("The change of a manager's email, by Repository.Explain:", x, err)
				s.act("the manager's email changed", "the department is read; both rows are written in 1 transaction", func() error {
					return employees.Replace(ctx, june)
				})
				d := must(department(ctx))
				s.check(d.ManagerEmail == june.Email, "the department has the email %s", d.ManagerEmail)

				// The department has a manager all the time, since the new one begins before the old one stops.
				successor.IsManager, june.IsManager = true, false
				s.act("another manager begins", "the department has the new one's details", func() error { return employees.Replace(ctx, successor) })
				s.act("the one before stops", "the department stays as it is", func() error { return employees.Replace(ctx, june) })
				d = must(department(ctx))
				s.check(d.ManagerID == successor.ID && d.ManagerName == successor.Name, "the manager is %s", d.ManagerName)
			}
		},
	}
}
