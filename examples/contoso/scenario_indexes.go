package main

import (
	"context"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// secondaryIndexes finds employees by email, through copies under another row key.
func secondaryIndexes() scenario {
	return scenario{
		title: "Employees by email",
		guide: "Intra-partition secondary index pattern",
		shows: []show{
			{"Intra-partition secondary index", "jonesj@contoso.com in Sales", "", "one row, however many employees there are"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			if err := c.askByEmail(ctx, s); err != nil {
				return err
			}
			return c.askByEmailPrefix(ctx, s)
		},
	}
}

func (c *company) askByEmail(ctx context.Context, s *section) error {
	without, err := answering(c.plain.Query().Partition(sales).Where(tables.Eq("Email", jonesEmail)))
	without.searched = len(c.of(sales))
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: jonesEmail + " in Sales", without: without,
		with: reading(func(ctx context.Context) (*Employee, error) {
			return c.indexes.email.Get(ctx, sales, compoundkey.String(jonesEmail))
		})})
}

func (c *company) askByEmailPrefix(ctx context.Context, s *section) error {
	query, err := c.indexes.email.Query(compoundkey.Prefix("a"))
	if err != nil {
		return err
	}
	with, err := answering(query.Partition(sales))
	if err != nil {
		return err
	}
	without, err := answering(c.plain.Query().Partition(sales).Where(tables.Ge("Email", "a"), tables.Lt("Email", "b")))
	without.searched = len(c.of(sales))
	without.sort = func(a, b *Employee) int { return strings.Compare(a.Email, b.Email) }
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "emails that start with a, in Sales", with: with, without: without})
}
