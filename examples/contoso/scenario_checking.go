package main

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/tables"
)

// checking reads the whole table of employees, to see that no row is missing, left over or different.
func checking() scenario {
	return scenario{
		title: "Every row checked",
		guide: "Intra-partition secondary index pattern",
		run: func(ctx context.Context, c *company, s *section) error {
			if err := c.checkOrder(ctx, s, "empid", c.employees.Query(), (*Employee).record); err != nil {
				return err
			}
			for _, x := range []struct {
				name  string
				index *intrapartition.Index[Employee]
				of    func(*Employee) record
			}{{"email", c.indexes.email, (*Employee).record}, {"name", c.indexes.name, (*Employee).named}, {"hired", c.indexes.hired, (*Employee).record}} {
				query, err := x.index.Query(compoundkey.All())
				if err != nil {
					return err
				}
				if err := c.checkOrder(ctx, s, x.name, query, x.of); err != nil {
					return err
				}
			}
			return c.checkCount(ctx, s)
		},
	}
}

// checkOrder reads everybody in one order, and compares with what was written.
func (c *company) checkOrder(ctx context.Context, s *section, prefix string, query tables.Query[Employee], of func(*Employee) record) error {
	return c.act(s, "rows "+prefix+"_...", func() (string, error) {
		seen := map[int]bool{}
		for e, err := range query.AllPartitions(ctx, departmentNames(), nil) {
			if err != nil {
				return "", err
			}
			if e.ID < 1 || e.ID > len(c.staff) || seen[e.ID] || of(e) != of(c.employee(e.ID)) {
				return "", fmt.Errorf("employee %d is there twice, or not as written", e.ID)
			}
			seen[e.ID] = true
		}
		if len(seen) != len(c.staff) {
			return "", fmt.Errorf("%d employees of %d", len(seen), len(c.staff))
		}
		return grouped(len(seen)) + " employees, each as written", nil
	})
}

// checkCount counts the table's rows: there are no others.
func (c *company) checkCount(ctx context.Context, s *section) error {
	return c.act(s, "all rows, by a table scan", func() (string, error) {
		rows := 0
		for _, err := range c.employees.Table().Entities().Query().Select("ID").AllowTableScan().All(ctx) {
			if err != nil {
				return "", err
			}
			rows++
		}
		if want := 4 * len(c.staff); rows != want {
			return "", fmt.Errorf("%d rows, there should be %d", rows, want)
		}
		return grouped(rows) + " rows, no other among them", nil
	})
}
