package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// consistency changes an employee, and the copies by email, name and hire date with her.
func consistency(s *scene) func(context.Context) {
	const renamed = "june.jones@contoso.com"
	return func(ctx context.Context) {
		e := must(s.byEmail.In(sales).Get(ctx, jonesEmail)) // the copy is the whole employee
		e.Email, e.Age = renamed, e.Age+1
		x := must(s.employees.Explain(ctx, driver.ChangeReplace, e))
		s.explain("The replacement, by Repository.Explain, before it was sent:", x)
		s.act("replaced, with another email and age", fmt.Sprintf("%d rows in one transaction", len(x.Rows)), func() {
			try(s.employees.Replace(ctx, e))
		})
		*s.employee(jones) = *e
		s.refused("read by the old email", tables.ErrNotFound, func() {
			must(s.byEmail.In(sales).Get(ctx, jonesEmail))
		})
		s.act("read by the new one", "the copy has the new age, too", func() {
			try(same(must(s.byEmail.In(sales).Get(ctx, renamed)), e))
		})
		s.refused("a new employee with that email", tables.ErrDuplicate, func() {
			try(s.employees.Insert(ctx, s.newHire(renamed)))
		})
		hire := s.newHire("jon.jones@contoso.com")
		s.act("one with an email of his own", "4 rows", func() { try(s.employees.Insert(ctx, hire)) })
		s.act("deleted", "4 rows", func() { try(s.employees.Delete(ctx, hire)) })
	}
}

// concurrency has several writers change one employee.
func concurrency(s *scene) func(context.Context) {
	const writers, raise = 8, 100
	return func(ctx context.Context) {
		key := employeeKey(sales, jones)
		first, second := must(s.employees.Get(ctx, key)), must(s.employees.Get(ctx, key))
		s.act("the first of two readers writes", "replaced", func() { try(s.employees.Replace(ctx, first)) })
		s.refused("the second one writes", tables.ErrConflict, func() { try(s.employees.Replace(ctx, second)) })

		// If the response is lost and another writer has written since, a writer cannot know whether its raise was applied. The salary tells.
		var unknown atomic.Int32
		s.write("8 writers raise one salary at once", "every raise counts", func() {
			together(ctx, make([]int, writers), func(ctx context.Context, _ int) error {
				_, err := s.employees.Update(ctx, key, func(e *Employee) error {
					e.Salary += raise
					return nil
				})
				if errors.Is(err, tables.ErrUnknownOutcome) {
					unknown.Add(1)
					return nil
				}
				return err
			})
		})
		e := must(s.employees.Get(ctx, key))
		raises := (e.Salary - first.Salary) / raise
		least := writers - int(unknown.Load())
		s.check(raises <= writers && raises >= least, "%d raises of %d were applied, and at least %d should be", raises, writers, least)
		*s.employee(jones) = *e
	}
}

// Review is a year's review of an employee. Its row key is that of the employee with the year behind it: 000123_2012.
type Review struct {
	tables.Meta
	PartitionKey, RowKey string
	Rating               int
	Comments             string
}

// compoundKeys keeps reviews beside their employee, so that one request reads both.
func compoundKeys(s *scene) func(context.Context) {
	table, apart := s.store.Table("Reviewed"), must(tables.RowsOf[Review](s.store.Table("Reviews")))
	staff, reviews := newPlain(table), must(tables.RowsOf[Review](table))
	return func(ctx context.Context) {
		var all []*Review
		for year := 2010; year <= 2012; year++ {
			row := compoundkey.Join("", id(reviewed), compoundkey.Int(year, 4))
			all = append(all, &Review{PartitionKey: sales, RowKey: row, Rating: 3 + year%3, Comments: "Objectives met."})
		}
		s.act("written together", "4 rows in one transaction", func() {
			x := table.NewTransaction()
			staff.StageInsert(x, fresh(s.employee(reviewed)))
			for _, r := range all {
				x.Insert(must(reviews.Entity(r)))
			}
			must(x.Commit(ctx))
		})
		for _, r := range all {
			try(apart.Insert(ctx, fresh(r)))
		}
		rows := compoundkey.Starting("", id(reviewed))
		together := table.Entities().Query().Partition(sales).Rows(rows)
		changing := func(e *tables.Entity) { *e = tables.Entity{Key: e.Key} } // all but the key: it changes with each write
		employee := s.plain.Table().Entities().Query().Partition(sales).Row(plainKey(s.employee(reviewed)).Row)
		ask(s, "an employee and three reviews",
			query(ctx, together).without(changing),
			list(tables.RangeQuery, func() []*tables.Entity {
				hers := apart.Table().Entities().Query().Partition(sales).Rows(rows)
				return append(collect(employee.All(ctx)), collect(hers.All(ctx))...)
			}).without(changing))
		s.tell("The one query: " + must(together.Plan()).Filter)
	}
}

// verified has Store.Verify compare all copies, lists, counts and blobs of the run with their entities.
func verified(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		var done patterns.VerifyReport
		s.act("all repositories, by Store.Verify", "", func() {
			done = must(s.store.Verify(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
				return fmt.Errorf("difference found by Verify: %v", f)
			}}))
		}).says("%s entities in %s, nothing to repair", grouped(int(done.Read)), counted(int(done.Rows), "row"))
		s.checkRows(ctx, s.employees, 4*len(s.staff))
		try(sameStaff(collect(s.employees.Query().AllPartitions(ctx, departmentNames(), nil)), s.staff))
	}
}

// checkRows counts the rows of a table, those of the indexes among them: an index that leaves a row behind is found out.
func (s *scene) checkRows(ctx context.Context, repo *patterns.Repository[Employee], want int) {
	rows := len(collect(repo.Table().Entities().Query().Select("ID").AllowTableScan().All(ctx)))
	s.check(rows == want, "table %s has %d rows, there should be %d", repo.Table().Name(), rows, want)
}

// sameStaff compares two lists in any order.
func sameStaff(got, want []*Employee) error {
	byID := func(a, b *Employee) int { return a.ID - b.ID }
	return sameAnswers(slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values(want), byID))
}
