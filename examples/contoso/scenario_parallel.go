package main

import (
	"cmp"
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// parallelQueries ask all departments at once.
func parallelQueries() scenario {
	return scenario{
		title: "All departments side by side",
		guide: "Asynchronous and parallel operations",
		shows: []show{
			{"Parallel operations", "everybody named Jones", "", "ten departments at once, merged in order"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			jones, err := c.indexes.name.Query(compoundkey.Exactly(compoundkey.String("Jones")))
			if err != nil {
				return err
			}
			with := way{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Employee, error] {
				return jones.AllPartitions(ctx, departmentNames(), nil)
			}}
			without, err := answering(c.plain.Query().Where(tables.Eq("LastName", "Jones")).AllowTableScan())
			without.searched = len(c.staff)
			without.sort = func(a, b *Employee) int {
				return cmp.Or(compoundkey.Compare(a.Department, b.Department), byName(a, b))
			}
			if err != nil {
				return err
			}
			return c.ask(ctx, s, question{text: "everybody named Jones", with: with, without: without, record: (*Employee).named})
		},
	}
}
