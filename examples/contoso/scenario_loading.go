package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// loading makes the company's employees and stores them twice: with the indexes, and plain.
func loading() scenario {
	return scenario{title: "Loading", guide: "Entity Group Transactions", run: func(ctx context.Context, c *company, s *section) error {
		c.staff = newStaff(c.options.employees, c.options.seed)
		err := c.load(ctx, s, "four rows an employee", c.employees, func(e *Employee) *Employee { return e })
		if err != nil {
			return err
		}
		// Copies, since an employee remembers the row that it was written to.
		if err := c.load(ctx, s, "one row an employee", c.plain, func(e *Employee) *Employee { twin := *e; return &twin }); err != nil {
			return err
		}
		return c.explainInsert(ctx, s)
	}}
}

func (c *company) load(ctx context.Context, s *section, what string, repo *patterns.Repository[Employee], of func(*Employee) *Employee) error {
	return c.exposed(s, what, func() (string, error) {
		done, err := repo.BulkNonAtomic(ctx, all(c.staff, of), &tables.BulkOptions{Progress: c.progress.bulk(what, len(c.staff))})
		if err != nil {
			return "", err
		}
		if done.Written != int64(len(c.staff)) {
			return "", fmt.Errorf("%d of %d employees were loaded", done.Written, len(c.staff))
		}
		return fmt.Sprintf("%s rows in %s, %s employees a second", grouped(int(done.Rows)), counted(int(done.Transactions), "transaction"),
			grouped(int(float64(done.Written)/done.Elapsed.Seconds()))), nil
	})
}

func all(staff []*Employee, of func(*Employee) *Employee) iter.Seq2[*Employee, error] {
	return func(yield func(*Employee, error) bool) {
		for _, e := range staff {
			if !yield(of(e), nil) {
				return
			}
		}
	}
}

// explainInsert shows the rows of one employee.
func (c *company) explainInsert(ctx context.Context, s *section) error {
	x, err := c.employees.Explain(ctx, driver.ChangeInsert, c.employee(jones))
	if err != nil {
		return err
	}
	s.explain("The rows of one employee, by Repository.Explain:", x)
	return nil
}
