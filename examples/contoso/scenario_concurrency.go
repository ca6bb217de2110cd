package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// concurrency lets writers meet at one employee.
func concurrency() scenario {
	return scenario{
		title: "Concurrent writers",
		guide: "Managing concurrency",
		shows: []show{
			{"Optimistic concurrency", "8 writers raise one salary at once", "", "no update is lost"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			return steps(ctx, s, c.refuseStale, c.raiseTogether)
		},
	}
}

// refuseStale: two read the employee, one through an index, and the second to write is refused.
func (c *company) refuseStale(ctx context.Context, s *section) error {
	first, err := c.employees.Get(ctx, employeeKey(sales, jones))
	if err != nil {
		return err
	}
	second, err := c.indexes.email.Get(ctx, sales, compoundkey.String(first.Email))
	if err != nil {
		return err
	}
	first.Salary += 1000
	if err := c.act(s, "the first of two readers writes", func() (string, error) {
		return "replaced", c.employees.Replace(ctx, first)
	}); err != nil {
		return err
	}
	*c.employee(jones) = *first
	second.Salary += 2000
	return c.act(s, "the second one, who read the index, writes", func() (string, error) {
		if err := c.employees.Replace(ctx, second); !errors.Is(err, tables.ErrConflict) {
			return "", fmt.Errorf("a stale replace was not refused: %w", err)
		}
		return "refused: " + tables.ErrConflict.Error(), nil
	})
}

// raiseTogether: no raise is lost in spite of concurrent writers. Where it is not known whether a raise was applied, since its answer was
// lost and a concurrent writer has written over it, the salary does.
func (c *company) raiseTogether(ctx context.Context, s *section) error {
	const writers, raise = 8, 100
	before := c.employee(jones).Salary
	return c.exposed(s, fmt.Sprintf("%d writers raise one salary at once", writers), func() (string, error) {
		errs := make([]error, writers)
		var running sync.WaitGroup
		for i := range writers {
			running.Go(func() {
				_, errs[i] = c.employees.Update(ctx, employeeKey(sales, jones), func(e *Employee) error {
					e.Salary += raise
					return nil
				})
			})
		}
		running.Wait()
		unknown := 0
		for i, err := range errs {
			if errors.Is(err, tables.ErrUnknownOutcome) {
				unknown, errs[i] = unknown+1, nil
			}
		}
		if err := errors.Join(errs...); err != nil {
			return "", err
		}
		e, err := c.employees.Get(ctx, employeeKey(sales, jones))
		if err != nil {
			return "", err
		}
		*c.employee(jones) = *e
		applied := (e.Salary - before) / raise
		if applied < writers-unknown || applied > writers {
			return "", fmt.Errorf("%d raises of %d were applied, and the outcome of %d is unknown", applied, writers, unknown)
		}
		return fmt.Sprintf("every raise counts, %d in all", applied), nil
	})
}
