package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// consistency changes employees, and the index rows with them.
func consistency() scenario {
	return scenario{
		title: "Changes that keep the copies consistent",
		guide: "Ensuring consistency in your stored entities",
		shows: []show{
			{"Entity group transactions", "replaced, with another email and age", "", "an employee and all copies change together"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			return steps(ctx, s, c.changeEmail, c.refuseDuplicate, c.hireAndFire)
		},
	}
}

// changeEmail reads through one index and moves a copy of another in the same transaction.
func (c *company) changeEmail(ctx context.Context, s *section) error {
	const renamed = "june.jones@contoso.com"
	var e *Employee
	err := c.act(s, "read by email", func() (string, error) {
		var err error
		e, err = c.indexes.email.Get(ctx, sales, compoundkey.String(jonesEmail))
		return "the copy is the whole employee", err
	})
	if err != nil {
		return err
	}
	e.Email, e.Age = renamed, e.Age+1
	x, err := c.employees.Explain(ctx, driver.ChangeReplace, e)
	if err != nil {
		return err
	}
	s.explain("The replacement, by Repository.Explain, before it was sent:", x)
	if err := c.act(s, "replaced, with another email and age", func() (string, error) {
		return fmt.Sprintf("%d rows in one transaction", len(x.Rows)), c.employees.Replace(ctx, e)
	}); err != nil {
		return err
	}
	*c.employee(e.ID) = *e
	return c.act(s, "read by the old email and by the new", func() (string, error) {
		if _, err := c.indexes.email.Get(ctx, sales, compoundkey.String(jonesEmail)); !errors.Is(err, tables.ErrNotFound) {
			return "", fmt.Errorf("the old email still finds somebody: %w", err)
		}
		got, err := c.indexes.email.Get(ctx, sales, compoundkey.String(renamed))
		if err != nil {
			return "", err
		}
		if got.record() != e.record() {
			return "", errors.New("the copy differs from the employee")
		}
		return "not found, found", nil
	})
}

// newHire is an employee with the next free id.
func (c *company) newHire(email string) *Employee {
	return &Employee{Department: sales, ID: len(c.staff) + 1, FirstName: "Jon", LastName: "Jones", Email: email, Age: 30, Salary: 50_000,
		HireDate: time.Date(2025, 1, 2, 9, 0, 0, 0, time.UTC)}
}

func (c *company) refuseDuplicate(ctx context.Context, s *section) error {
	other := c.newHire(c.employee(jones).Email)
	if err := c.act(s, "a new employee with that email", func() (string, error) {
		err := c.employees.Insert(ctx, other)
		var e *tables.Error
		if !errors.As(err, &e) || !errors.Is(err, tables.ErrDuplicate) || e.Pattern != "email" {
			return "", fmt.Errorf("the duplicate was not refused: %w", err)
		}
		return fmt.Sprintf("refused: %v, of index %q; who has it was looked at", tables.ErrDuplicate, e.Pattern), nil
	}); err != nil {
		return err
	}
	if _, err := c.employees.Get(ctx, employeeKey(other.Department, other.ID)); !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("the refused employee left something: %w", err)
	}
	return nil
}

func (c *company) hireAndFire(ctx context.Context, s *section) error {
	e := c.newHire("jon.jones@contoso.com")
	if err := c.act(s, "inserted with an email of his own", func() (string, error) {
		return "4 rows", c.employees.Insert(ctx, e)
	}); err != nil {
		return err
	}
	e.Age = 31
	if err := c.act(s, "his age merged", func() (string, error) {
		return "the first request reads what the copies hold", c.employees.Merge(ctx, e, "Age")
	}); err != nil {
		return err
	}
	return c.act(s, "deleted", func() (string, error) {
		return "4 rows", c.employees.Delete(ctx, e)
	})
}
