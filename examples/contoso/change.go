package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// consistency changes an employee, and the copies by email, name and hire date with her.
// Guide: "Ensuring consistency in your stored entities".
func consistency() scenario {
	const renamed = "june.jones@contoso.com"
	return scenario{
		title: "Changes that keep the copies consistent",
		guide: "Ensuring consistency in your stored entities",
		shows: []show{{"Entity group transactions", "replaced, with another email and age", "", "an employee and all copies change together"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				e := must(s.byEmail.Get(ctx, sales, compoundkey.String(jonesEmail))) // the copy is the whole employee
				e.Email, e.Age = renamed, e.Age+1
				x, err := s.employees.Explain(ctx, driver.ChangeReplace, e)
				s.explain("The replacement, by Repository.Explain, before it was sent:", x, err)
				s.act("replaced, with another email and age", fmt.Sprintf("%d rows in one transaction", len(x.Rows)), func() error {
					return s.employees.Replace(ctx, e)
				})
				*s.employee(jones) = *e
				s.refused("read by the old email", tables.ErrNotFound, func() error {
					_, err := s.byEmail.Get(ctx, sales, compoundkey.String(jonesEmail))
					return err
				})
				s.act("read by the new one", "the copy has the new age, too", func() error {
					got, err := s.byEmail.Get(ctx, sales, compoundkey.String(renamed))
					return same(got, e, err)
				})
				s.refused("a new employee with that email", tables.ErrDuplicate, func() error {
					return s.employees.Insert(ctx, s.newHire(renamed))
				})
				hire := s.newHire("jon.jones@contoso.com")
				s.act("one with an email of his own", "4 rows", func() error { return s.employees.Insert(ctx, hire) })
				s.act("deleted", "4 rows", func() error { return s.employees.Delete(ctx, hire) })
			}
		},
	}
}

// concurrency has writers meet at one employee. Guide: "Managing concurrency".
func concurrency() scenario {
	const writers, raise = 8, 100
	return scenario{
		title: "Concurrent writers",
		guide: "Managing concurrency",
		shows: []show{{"Optimistic concurrency", "8 writers raise one salary at once", "", "no update is lost"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				key := employeeKey(sales, jones)
				first, second := must(s.employees.Get(ctx, key)), must(s.employees.Get(ctx, key))
				s.act("the first of two readers writes", "replaced", func() error { return s.employees.Replace(ctx, first) })
				s.refused("the second one writes", tables.ErrConflict, func() error { return s.employees.Replace(ctx, second) })

				// If the response is lost and another writer has written since, nobody knows whether a raise was applied: the salary does.
				errs := make([]error, writers)
				s.write("8 writers raise one salary at once", "every raise counts", func() error {
					var running sync.WaitGroup
					for i := range writers {
						running.Go(func() {
							_, errs[i] = s.employees.Update(ctx, key, func(e *Employee) error {
								e.Salary += raise
								return nil
							})
						})
					}
					running.Wait()
					return nil
				})
				unknown := 0
				for _, err := range errs {
					if errors.Is(err, tables.ErrUnknownOutcome) {
						unknown++
						continue
					}
					try(err)
				}
				e := must(s.employees.Get(ctx, key))
				raises := (e.Salary - first.Salary) / raise
				s.check(raises <= writers && raises >= writers-unknown, "%d raises of %d were applied, %d have an unknown outcome", raises, writers, unknown)
				*s.employee(jones) = *e
			}
		},
	}
}

// Review is a year's review of an employee. Its row key is that of the employee with the year behind it: 000123_2012.
type Review struct {
	tables.Meta
	PartitionKey, RowKey string
	Rating               int
	Comments             string
}

func newReview(partition string, year int) *Review {
	return &Review{PartitionKey: partition, RowKey: compoundkey.Join("", id(reviewed), compoundkey.Int(year, 4)), Rating: 3 + year%3, Comments: "Objectives met."}
}

// compoundKeys keeps reviews beside their employee, so that one request reads both. Guide: "Compound key pattern".
func compoundKeys() scenario {
	return scenario{
		title: "An employee with her reviews",
		guide: "Compound key pattern",
		plain: "reviews in a table of their own",
		shows: []show{{"Compound key", "an employee and three reviews", "", "an employee and her reviews are one range"}},
		open: func(s *scene) func(context.Context) {
			table, apart := s.store.Table("Reviewed"), must(tables.RowsOf[Review](s.store.Table("Reviews")))
			staff, reviews := must(newPlain(table)), must(tables.RowsOf[Review](table))
			return func(ctx context.Context) {
				s.act("written together", "4 rows in one transaction", func() error {
					x := table.NewTransaction()
					staff.StageInsert(x, fresh(s.employee(reviewed)))
					for _, year := range []int{2010, 2011, 2012} {
						x.Insert(must(reviews.Entity(newReview(sales, year))))
					}
					_, err := x.Commit(ctx)
					return err
				})
				for _, year := range []int{2010, 2011, 2012} {
					try(apart.Insert(ctx, newReview(sales, year)))
				}
				together := table.Entities().Query().Partition(sales).Rows(compoundkey.Starting("", id(reviewed)))
				ask(ctx, s, "an employee and three reviews",
					query(together).without(keyAlone),
					sequence(tables.RangeQuery, concat(
						s.plain.Table().Entities().Query().Partition(sales).Row(plainKey(sales, reviewed).Row).All,
						apart.Table().Entities().Query().Partition(sales).Rows(compoundkey.Starting("", id(reviewed))).All,
					)).without(keyAlone))
				s.tell("The one query: " + must(together.Plan()).Filter)
			}
		},
	}
}

// keyAlone leaves the key of a row: what changes with each write is not to be compared.
func keyAlone(e *tables.Entity) { *e = tables.Entity{Key: e.Key} }

// verified has Store.Verify compare all copies, lists, counts and blobs of the run with their entities.
// Guide: "Ensuring consistency in your stored entities".
func verified() scenario {
	return scenario{
		title: "Everything verified",
		guide: "Ensuring consistency in your stored entities",
		shows: []show{{"Verify", "all repositories, by Store.Verify", "", "no copy is missing, left over or different"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				var done tables.Report
				s.act("all repositories, by Store.Verify", "", func() (err error) {
					done, err = s.store.Verify(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
						return fmt.Errorf("difference found by Verify: %v", f)
					}})
					return err
				}).says("%s in %s, nothing to repair", grouped(int(done.Read))+" entities", counted(int(done.Rows), "row"))
				rows := 0
				for _, err := range s.employees.Table().Entities().Query().Select("ID").AllowTableScan().All(ctx) {
					try(err)
					rows++
				}
				s.check(rows == 4*len(s.staff), "%d rows of employees, there should be %d", rows, 4*len(s.staff))
				found := must(collect(s.employees.Query().AllPartitions(ctx, departmentNames(), nil)))
				try(sameStaff(found, s.staff))
			}
		},
	}
}

// sameStaff compares two lists in any order.
func sameStaff(got, want []*Employee) error {
	found := map[int]*Employee{}
	for _, e := range got {
		found[e.ID] = e
	}
	if len(got) != len(want) || len(found) != len(want) {
		return fmt.Errorf("%d employees, of whom %d are different; there should be %d", len(got), len(found), len(want))
	}
	for _, e := range want {
		if found[e.ID] == nil {
			return fmt.Errorf("employee %d is missing", e.ID)
		}
		if err := same(found[e.ID], e, nil); err != nil {
			return err
		}
	}
	return nil
}
