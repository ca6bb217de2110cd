package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// querying asks by keys and by other properties: the guide's four classes of query.
func querying() scenario {
	return scenario{
		title: "Point queries, ranges and scans",
		guide: "How your choice of PartitionKey and RowKey impacts query performance",
		shows: []show{
			{"Point queries", "employee 000223 of Sales", "", "a key finds a row; scans have to be allowed"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			return steps(ctx, s, c.askByID, c.askByIDRange, c.askByKeys, c.askByAge, c.refuseTableScan)
		},
	}
}

// askByID: where the id is no key, the whole table is read.
func (c *company) askByID(ctx context.Context, s *section) error {
	without, err := answering(c.plain.Query().Where(tables.Eq("ID", jones)).AllowTableScan())
	without.searched = len(c.staff)
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: fmt.Sprintf("employee %06d of Sales", jones), without: without,
		with: reading(func(ctx context.Context) (*Employee, error) { return c.employees.Get(ctx, employeeKey(sales, jones)) })})
}

func (c *company) askByIDRange(ctx context.Context, s *section) error {
	with, err := answering(c.employees.Query().Partition(sales).Rows(compoundkey.Through(id(100), id(199)).Under("empid")))
	if err != nil {
		return err
	}
	without, err := answering(c.plain.Query().Partition(sales).Where(tables.Ge("ID", 100), tables.Le("ID", 199)))
	without.searched = len(c.of(sales))
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "ids 000100 to 000199 in Sales", with: with, without: without})
}

// askByKeys: row keys joined by or are a partition scan to the service; their keys, read side by side, are not.
func (c *company) askByKeys(ctx context.Context, s *section) error {
	staff := c.of(sales)
	var conditions []tables.Condition
	for _, e := range []*Employee{staff[0], staff[len(staff)/2], staff[len(staff)-1]} {
		conditions = append(conditions, tables.Eq("RowKey", plainKey(e.Department, e.ID).Row))
	}
	query := c.plain.Query().Partition(sales).Where(tables.Or(conditions...))
	plan, err := query.Plan()
	if err != nil {
		return err
	}
	if len(plan.Keys) != len(conditions) {
		return fmt.Errorf("the plan has %d keys for %d row keys", len(plan.Keys), len(conditions))
	}
	with := way{class: tables.PointQuery, searched: len(plan.Keys), ask: func(ctx context.Context) iter.Seq2[*Employee, error] {
		return c.plain.GetMany(ctx, plan.Keys, nil)
	}}
	without := way{class: plan.Class, searched: len(staff), ask: query.All}
	return c.ask(ctx, s, question{text: "three ids joined by or", with: with, without: without})
}

// askByAge: no index helps, and to name the department still saves reading the others.
func (c *company) askByAge(ctx context.Context, s *section) error {
	with, err := answering(c.employees.Query().Partition(sales).Where(tables.Gt("Age", 40)))
	with.searched = len(c.of(sales))
	if err != nil {
		return err
	}
	without, err := answering(c.plain.Query().Where(tables.Eq("Department", sales), tables.Gt("Age", 40)).AllowTableScan())
	without.searched = len(c.staff)
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "older than 40 in Sales", with: with, without: without})
}

func (c *company) refuseTableScan(ctx context.Context, s *section) error {
	return c.act(s, "LastName eq 'Jones', of the whole table", func() (string, error) {
		_, err := c.employees.Query().Where(tables.Eq("LastName", "Jones")).First(ctx)
		if !errors.Is(err, tables.ErrTableScan) {
			return "", fmt.Errorf("a table scan was not refused: %w", err)
		}
		return "refused: " + tables.ErrTableScan.Error(), nil
	})
}
