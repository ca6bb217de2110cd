package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// paging reads a list in pages whose tokens could be kept anywhere in between, such as in a web page.
func paging() scenario {
	return scenario{
		title: "Pages",
		guide: "Retrieving large numbers of entities from a query",
		shows: []show{
			{"Continuation tokens", "the rest, 25 at a time", "", "each once, in order, from a kept token"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			var token string
			var seen []*Employee
			if err := c.act(s, "the first 25 of Sales by email", func() (string, error) {
				page, err := c.emailPage(ctx, "")
				if err != nil {
					return "", err
				}
				seen, token = page.Items, page.Next
				return fmt.Sprintf("a continuation token of %d characters", len(token)), nil
			}); err != nil {
				return err
			}
			if err := c.act(s, "the rest, 25 at a time", func() (string, error) {
				for next := token; next != ""; {
					page, err := c.emailPage(ctx, next)
					if err != nil {
						return "", err
					}
					seen, next = append(seen, page.Items...), page.Next
				}
				return fmt.Sprintf("%s employees, each once, in order", grouped(len(seen))), c.checkSales(seen)
			}); err != nil {
				return err
			}
			return c.act(s, "the token with another query", func() (string, error) {
				_, err := c.employees.Query().Partition(sales).Page(ctx, token)
				if !errors.Is(err, tables.ErrInvalid) {
					return "", fmt.Errorf("it was not refused: %w", err)
				}
				return "refused: the continuation token belongs to another query", nil
			})
		},
	}
}

// emailPage makes its query again each time, as the next request to a web server would.
func (c *company) emailPage(ctx context.Context, token string) (tables.Page[Employee], error) {
	query, err := c.indexes.email.Query(compoundkey.All())
	if err != nil {
		return tables.Page[Employee]{}, err
	}
	return query.Partition(sales).PageSize(25).Page(ctx, token)
}

// checkSales fails unless the employees are those of Sales in the order of their emails.
func (c *company) checkSales(seen []*Employee) error {
	if want := len(c.of(sales)); len(seen) != want {
		return fmt.Errorf("%d employees came, there are %d", len(seen), want)
	}
	for i, e := range seen {
		if e.record() != c.employee(e.ID).record() || i > 0 && compoundkey.Compare(seen[i-1].Email, e.Email) >= 0 {
			return fmt.Errorf("employee %d is not as stored, or out of order", e.ID)
		}
	}
	return nil
}
