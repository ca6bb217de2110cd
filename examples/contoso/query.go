package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// loading stores the employees twice: with three indexes, and plain. The rows of an employee are written in one transaction.
func loading(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		store := func(what string, repo *patterns.Repository[Employee], staff []*Employee) {
			var done tables.BulkReport
			s.write(what, "", func() {
				done = must(repo.BulkNonAtomic(ctx, each(staff), &tables.BulkOptions{Progress: s.progress.bulk(what, len(staff))}))
			}).says("%s rows in %s, %s employees a second", grouped(int(done.Rows)), counted(int(done.Transactions), "transaction"),
				grouped(int(float64(done.Written)/done.Elapsed.Seconds())))
			s.check(int(done.Written) == len(staff), "%d of %d employees were loaded", done.Written, len(staff))
		}
		store("four rows an employee", s.employees, s.staff)
		store("one row an employee", s.plain, allFresh(s.staff))
		s.explain("The rows of one employee, by Repository.Explain:", must(s.employees.Explain(ctx, driver.ChangeInsert, s.employee(jones))))
	}
}

// querying asks by keys and by other properties: the four classes of query.
func querying(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		here := s.of(sales)
		ask(s, "employee 000223 of Sales",
			get(func() *Employee { return must(s.employees.Get(ctx, employeeKey(sales, jones))) }),
			query(ctx, s.plain.Query().Where(tables.Eq("ID", jones)).AllowTableScan()).through(len(s.staff)))
		ask(s, "ids 000100 to 000199 in Sales",
			query(ctx, s.employees.Query().Partition(sales).Rows(compoundkey.Through(id(100), id(199)).Under("empid"))),
			query(ctx, s.plain.Query().Partition(sales).Where(tables.Ge("ID", 100), tables.Le("ID", 199))).through(len(here)))
		// No index helps here, but naming the department saves reading the others.
		ask(s, "older than 40 in Sales",
			query(ctx, s.employees.Query().Partition(sales).Where(tables.Gt("Age", 40))).through(len(here)),
			query(ctx, s.plain.Query().Where(tables.Eq("Department", sales), tables.Gt("Age", 40)).AllowTableScan()).through(len(s.staff)))

		// The service answers row keys joined by or with a partition scan. The plan has their keys, to be read side by side.
		var rows []tables.Condition
		for _, e := range []*Employee{here[0], here[len(here)/2], here[len(here)-1]} {
			rows = append(rows, tables.Eq("RowKey", plainKey(e).Row))
		}
		joined := s.plain.Query().Partition(sales).Where(tables.Or(rows...))
		keys := must(joined.Plan()).Keys
		ask(s, "three ids joined by or",
			list(tables.PointQuery, func() []*Employee { return collect(s.plain.GetMany(ctx, keys, nil)) }),
			query(ctx, joined).through(len(here)))

		s.refused("LastName eq 'Jones', of the whole table", tables.ErrTableScan, func() {
			must(s.employees.Query().Where(tables.Eq("LastName", "Jones")).First(ctx))
		})
	}
}

// secondaryIndexes finds employees by email, through copies under another row key.
func secondaryIndexes(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		here, plain := len(s.of(sales)), s.plain.Query().Partition(sales)
		ask(s, jonesEmail+" in Sales",
			get(func() *Employee { return must(s.byEmail.In(sales).Get(ctx, jonesEmail)) }),
			query(ctx, plain.Where(tables.Eq("Email", jonesEmail))).through(here))
		ask(s, "emails that start with a, in Sales",
			query(ctx, s.byEmail.Query(compoundkey.Prefix("a")).Partition(sales)),
			query(ctx, plain.Where(tables.Ge("Email", "a"), tables.Lt("Email", "b"))).through(here).sorted(emailOrder))
	}
}

func emailOrder(a, b *Employee) int { return strings.Compare(a.Email, b.Email) }

// nameOrder is the order of the index: of the keys' text, which is that of the service and not of a telephone book.
func nameOrder(a, b *Employee) int {
	return cmp.Or(compoundkey.Compare(a.LastName, b.LastName), compoundkey.Compare(a.FirstName, b.FirstName), a.ID-b.ID)
}

// notNamed drops what the index by name does not have.
func notNamed(e *Employee) { e.Email, e.Age, e.Salary, e.HireDate = "", 0, 0, time.Time{} }

// sorting reads employees in orders other than that of their ids. Without an index, everybody is read to find who comes first.
func sorting(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		here, everybody, named := len(s.of(sales)), s.plain.Query().Partition(sales), compoundkey.Exactly(compoundkey.String("Jones"))
		ask(s, "the first 20 of Sales by name",
			query(ctx, s.byName.Query().Partition(sales).Top(20)),
			query(ctx, everybody).through(here).sorted(nameOrder).top(20).without(notNamed))
		ask(s, "everybody named Jones in Sales",
			query(ctx, s.byName.Query(named).Partition(sales)),
			query(ctx, everybody.Where(tables.Eq("LastName", "Jones"))).through(here).sorted(nameOrder).without(notNamed))
		from, to := time.Date(2012, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
		ask(s, "hired in 2012 by Sales, in order",
			query(ctx, s.byHireDate.Query(between(from, to)).Partition(sales)),
			query(ctx, everybody.Where(tables.Ge("HireDate", from), tables.Lt("HireDate", to))).through(here).
				sorted(func(a, b *Employee) int { return cmp.Or(a.HireDate.Compare(b.HireDate), a.ID-b.ID) }))
	}
}

// parallelQueries asks all departments at once.
func parallelQueries(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		named := s.byName.Query(compoundkey.Exactly(compoundkey.String("Jones")))
		ask(s, "everybody named Jones",
			list(tables.RangeQuery, func() []*Employee { return collect(named.AllPartitions(ctx, departmentNames(), nil)) }),
			query(ctx, s.plain.Query().Where(tables.Eq("LastName", "Jones")).AllowTableScan()).through(len(s.staff)).
				sorted(func(a, b *Employee) int {
					return cmp.Or(compoundkey.Compare(a.Department, b.Department), nameOrder(a, b))
				}).without(notNamed))
	}
}

// projection reads parts of entities, and writes parts: a merge keeps what the program does not know.
func projection(s *scene) func(context.Context) {
	type card struct { // an employee's card, as one version of a program knows it
		tables.Meta
		PartitionKey, RowKey string
		Color                string
	}
	type newerCard struct { // the same card, as a later version knows it
		tables.Meta
		PartitionKey, RowKey string
		Color, Chip          string
	}
	table := s.store.Table("Cards")
	older, newer := must(tables.RowsOf[card](table)), must(tables.RowsOf[newerCard](table))
	return func(ctx context.Context) {
		whole := s.plain.Query().Partition(sales)
		ask(s, "the emails of Sales", query(ctx, whole.Select("ID", "Email")),
			query(ctx, whole).without(func(e *Employee) { *e = Employee{Ref: Ref{ID: e.ID}, Email: e.Email} }))

		for _, x := range []struct {
			what, outcome, chip string
			write               func(context.Context, *card) error
		}{
			{"a color merged by an older program", "the chip, which it does not know, stays", "A1", func(ctx context.Context, c *card) error { return older.Merge(ctx, c, "Color") }},
			{"the card replaced by it", "the chip is gone", "", older.Replace},
		} {
			key := tables.Key{Partition: sales, Row: "card_" + x.outcome}
			try(newer.Insert(ctx, &newerCard{PartitionKey: key.Partition, RowKey: key.Row, Color: "red", Chip: "A1"}))
			mine := must(older.Get(ctx, key))
			mine.Color = "blue"
			s.act(x.what, x.outcome, func() { try(x.write(ctx, mine)) })
			got := must(newer.Get(ctx, key))
			s.check(got.Color == "blue" && got.Chip == x.chip, "%s: the card is %s with chip %q", x.what, got.Color, got.Chip)
		}
	}
}

// paging reads a list in pages. Their tokens could be kept anywhere in between, such as in a web page.
func paging(s *scene) func(context.Context) {
	return func(ctx context.Context) {
		pages := s.byEmail.Query().Partition(sales).PageSize(25)
		var first tables.Page[Employee]
		s.act("the first 25 of Sales by email", "", func() { first = must(pages.Page(ctx, "")) }).
			says("a continuation token of %d characters", len(first.Next))
		seen := first.Items
		s.act("the rest, 25 at a time", "each once, in order", func() {
			for next := first.Next; next != ""; {
				p := must(pages.Page(ctx, next))
				seen, next = append(seen, p.Items...), p.Next
			}
		})
		s.check(len(seen) == len(s.of(sales)), "%d employees came, there are %d", len(seen), len(s.of(sales)))
		for i, e := range seen {
			try(same(e, s.employee(e.ID)))
			s.check(i == 0 || compoundkey.Compare(seen[i-1].Email, e.Email) < 0, "employee %d is out of order", e.ID)
		}
		s.refused("the token with another query", tables.ErrInvalid, func() {
			must(s.employees.Query().Partition(sales).Page(ctx, first.Next))
		})
	}
}
