package main

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// loading stores the employees twice: with three indexes, and plain. The rows of an employee are written in one transaction.
// Guide: "Entity Group Transactions".
func loading() scenario {
	return scenario{title: "Loading", guide: "Entity Group Transactions", open: func(s *scene) func(context.Context) {
		load := func(ctx context.Context, what string, repo *patterns.Repository[Employee], staff []*Employee) {
			var done tables.Report
			s.write(what, "", func() (err error) {
				done, err = repo.BulkNonAtomic(ctx, each(staff), &tables.BulkOptions{Progress: s.progress.bulk(what, len(staff))})
				return err
			}).says("%s rows in %s, %s employees a second", grouped(int(done.Rows)), counted(int(done.Transactions), "transaction"),
				grouped(int(float64(done.Written)/done.Elapsed.Seconds())))
			s.check(int(done.Written) == len(staff), "%d of %d employees were loaded", done.Written, len(staff))
		}
		return func(ctx context.Context) {
			load(ctx, "four rows an employee", s.employees, s.staff)
			load(ctx, "one row an employee", s.plain, allFresh(s.staff))
			x, err := s.employees.Explain(ctx, driver.ChangeInsert, s.employee(jones))
			s.explain("The rows of one employee, by Repository.Explain:", x, err)
		}
	}}
}

// querying asks by keys and by other properties: the four classes of query.
// Guide: "How your choice of PartitionKey and RowKey impacts query performance".
func querying() scenario {
	return scenario{
		title: "Point queries, ranges and scans",
		guide: "How your choice of PartitionKey and RowKey impacts query performance",
		shows: []show{{"Point queries", "employee 000223 of Sales", "", "a key finds a row; scans have to be allowed"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				here := s.of(sales)
				ask(ctx, s, "employee 000223 of Sales",
					get(func(ctx context.Context) (*Employee, error) { return s.employees.Get(ctx, employeeKey(sales, jones)) }),
					query(s.plain.Query().Where(tables.Eq("ID", jones)).AllowTableScan()).through(len(s.staff)))
				ask(ctx, s, "ids 000100 to 000199 in Sales",
					query(s.employees.Query().Partition(sales).Rows(compoundkey.Through(id(100), id(199)).Under("empid"))),
					query(s.plain.Query().Partition(sales).Where(tables.Ge("ID", 100), tables.Le("ID", 199))).through(len(here)))
				// No index helps here, and to name the department still saves reading the others.
				ask(ctx, s, "older than 40 in Sales",
					query(s.employees.Query().Partition(sales).Where(tables.Gt("Age", 40))).through(len(here)),
					query(s.plain.Query().Where(tables.Eq("Department", sales), tables.Gt("Age", 40)).AllowTableScan()).through(len(s.staff)))

				// Row keys joined by or are a partition scan to the service. The plan has their keys, to be read side by side.
				var rows []tables.Condition
				for _, e := range []*Employee{here[0], here[len(here)/2], here[len(here)-1]} {
					rows = append(rows, tables.Eq("RowKey", plainKey(sales, e.ID).Row))
				}
				joined := s.plain.Query().Partition(sales).Where(tables.Or(rows...))
				plan := must(joined.Plan())
				ask(ctx, s, "three ids joined by or",
					sequence(tables.PointQuery, func(ctx context.Context) iter.Seq2[*Employee, error] { return s.plain.GetMany(ctx, plan.Keys, nil) }),
					query(joined).through(len(here)))

				s.refused("LastName eq 'Jones', of the whole table", tables.ErrTableScan, func() error {
					_, err := s.employees.Query().Where(tables.Eq("LastName", "Jones")).First(ctx)
					return err
				})
			}
		},
	}
}

// secondaryIndexes finds employees by email, through copies under another row key.
// Guide: "Intra-partition secondary index pattern".
func secondaryIndexes() scenario {
	return scenario{
		title: "Employees by email",
		guide: "Intra-partition secondary index pattern",
		shows: []show{{"Intra-partition secondary index", "jonesj@contoso.com in Sales", "", "one row, however many employees there are"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				ask(ctx, s, jonesEmail+" in Sales",
					get(func(ctx context.Context) (*Employee, error) {
						return s.byEmail.Get(ctx, sales, compoundkey.String(jonesEmail))
					}),
					query(s.plain.Query().Partition(sales).Where(tables.Eq("Email", jonesEmail))).through(len(s.of(sales))))
				ask(ctx, s, "emails that start with a, in Sales",
					query(s.byEmail.Query(compoundkey.Prefix("a")).Partition(sales)),
					query(s.plain.Query().Partition(sales).Where(tables.Ge("Email", "a"), tables.Lt("Email", "b"))).through(len(s.of(sales))).sorted(emailOrder))
			}
		},
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
// Guide: "Sorting data in the Table service".
func sorting() scenario {
	return scenario{
		title: "Employees by name and by hire date",
		guide: "Sorting data in the Table service",
		shows: []show{{"Sorting data", "the first 20 of Sales by name", "", "the first ones are read, and no others"}},
		open: func(s *scene) func(context.Context) {
			ranging := func(x *intrapartition.Index[Employee], span compoundkey.Span) tables.Query[Employee] {
				return x.Query(span).Partition(sales)
			}
			return func(ctx context.Context) {
				everybody := s.plain.Query().Partition(sales)
				ask(ctx, s, "the first 20 of Sales by name",
					query(ranging(s.byName, compoundkey.All()).Top(20)),
					query(everybody).through(len(s.of(sales))).sorted(nameOrder).top(20).without(notNamed))
				ask(ctx, s, "everybody named Jones in Sales",
					query(ranging(s.byName, compoundkey.Exactly(compoundkey.String("Jones")))),
					query(everybody.Where(tables.Eq("LastName", "Jones"))).through(len(s.of(sales))).sorted(nameOrder).without(notNamed))
				from, to := time.Date(2012, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
				ask(ctx, s, "hired in 2012 by Sales, in order",
					query(ranging(s.byHireDate, compoundkey.Between(compoundkey.Time(from), compoundkey.Time(to)))),
					query(everybody.Where(tables.Ge("HireDate", from), tables.Lt("HireDate", to))).through(len(s.of(sales))).
						sorted(func(a, b *Employee) int { return cmp.Or(a.HireDate.Compare(b.HireDate), a.ID-b.ID) }))
			}
		},
	}
}

// parallelQueries ask all departments at once. Guide: "Asynchronous and parallel operations".
func parallelQueries() scenario {
	return scenario{
		title: "All departments side by side",
		guide: "Asynchronous and parallel operations",
		shows: []show{{"Parallel operations", "everybody named Jones", "", "ten departments at once, merged in order"}},
		open: func(s *scene) func(context.Context) {
			return func(ctx context.Context) {
				named := s.byName.Query(compoundkey.Exactly(compoundkey.String("Jones")))
				ask(ctx, s, "everybody named Jones",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Employee, error] {
						return named.AllPartitions(ctx, departmentNames(), nil)
					}),
					query(s.plain.Query().Where(tables.Eq("LastName", "Jones")).AllowTableScan()).through(len(s.staff)).
						sorted(func(a, b *Employee) int {
							return cmp.Or(compoundkey.Compare(a.Department, b.Department), nameOrder(a, b))
						}).without(notNamed))
			}
		},
	}
}

// projection reads parts of entities, and writes parts: a merge keeps what the program does not know.
// Guide: "Server-side projection", "Merge or replace".
func projection() scenario {
	return scenario{
		title: "Parts of an employee read and written",
		guide: "Server-side projection; Merge or replace",
		plain: "whole employees",
		shows: []show{{"Projection, merge or replace", "the emails of Sales", "", "less is sent; a merge loses nothing"}},
		open: func(s *scene) func(context.Context) {
			type card struct { // what one program knows of an employee's card, and what a later version of it does
				tables.Meta
				PartitionKey, RowKey string
				Color                string
			}
			type newerCard struct {
				tables.Meta
				PartitionKey, RowKey string
				Color, Chip          string
			}
			table := s.store.Table("Cards")
			older, newer := must(tables.RowsOf[card](table)), must(tables.RowsOf[newerCard](table))
			return func(ctx context.Context) {
				whole := s.plain.Query().Partition(sales)
				ask(ctx, s, "the emails of Sales", query(whole.Select("ID", "Email")),
					query(whole).without(func(e *Employee) { *e = Employee{ID: e.ID, Email: e.Email} }))

				for _, x := range []struct {
					what, outcome, chip string
					write               func(context.Context, *card) error
				}{
					{"a color merged by an older program", "the chip, which it does not know, stays", "A1", older.Merge},
					{"the card replaced by it", "the chip is gone", "", older.Replace},
				} {
					key := tables.Key{Partition: sales, Row: "card_" + x.outcome}
					try(newer.Insert(ctx, &newerCard{PartitionKey: key.Partition, RowKey: key.Row, Color: "red", Chip: "A1"}))
					mine := must(older.Get(ctx, key))
					mine.Color = "blue"
					s.act(x.what, x.outcome, func() error { return x.write(ctx, mine) })
					got := must(newer.Get(ctx, key))
					s.check(got.Color == "blue" && got.Chip == x.chip, "%s: the card is %s with chip %q", x.what, got.Color, got.Chip)
				}
			}
		},
	}
}

// paging reads a list in pages whose tokens could be kept anywhere in between, such as in a web page.
// Guide: "Retrieving large numbers of entities from a query".
func paging() scenario {
	return scenario{
		title: "Pages",
		guide: "Retrieving large numbers of entities from a query",
		shows: []show{{"Continuation tokens", "the rest, 25 at a time", "", "each once, in order, from a kept token"}},
		open: func(s *scene) func(context.Context) {
			page := func(ctx context.Context, token string) (tables.Page[Employee], error) {
				return s.byEmail.Query(compoundkey.All()).Partition(sales).PageSize(25).Page(ctx, token)
			}
			return func(ctx context.Context) {
				var first tables.Page[Employee]
				s.act("the first 25 of Sales by email", "", func() (err error) {
					first, err = page(ctx, "")
					return err
				}).says("a continuation token of %d characters", len(first.Next))
				seen := first.Items
				s.act("the rest, 25 at a time", "each once, in order", func() error {
					for next := first.Next; next != ""; {
						p, err := page(ctx, next)
						if err != nil {
							return err
						}
						seen, next = append(seen, p.Items...), p.Next
					}
					return nil
				})
				s.check(len(seen) == len(s.of(sales)), "%d employees came, there are %d", len(seen), len(s.of(sales)))
				for i, e := range seen {
					try(same(e, s.employee(e.ID), nil))
					s.check(i == 0 || compoundkey.Compare(seen[i-1].Email, e.Email) < 0, "employee %d is out of order", e.ID)
				}
				s.refused("the token with another query", tables.ErrInvalid, func() error {
					_, err := s.employees.Query().Partition(sales).Page(ctx, first.Next)
					return err
				})
			}
		},
	}
}
