package main

import (
	"cmp"
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/tables"
)

// sorting reads employees in orders other than that of their ids.
func sorting() scenario {
	return scenario{
		title: "Employees by name and by hire date",
		guide: "Sorting data in the Table service",
		shows: []show{
			{"Sorting data", "the first 20 of Sales by name", "", "the first ones are read, and no others"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			if err := c.askFirstByName(ctx, s); err != nil {
				return err
			}
			if err := c.askByLastName(ctx, s); err != nil {
				return err
			}
			return c.askByHireDate(ctx, s)
		},
	}
}

// byName is the order of the index: of the keys' text, which is that of the service and not of a telephone book.
func byName(a, b *Employee) int {
	return cmp.Or(compoundkey.Compare(a.LastName, b.LastName), compoundkey.Compare(a.FirstName, b.FirstName), a.ID-b.ID)
}

func byHireDate(a, b *Employee) int { return cmp.Or(a.HireDate.Compare(b.HireDate), a.ID-b.ID) }

// ranging is the way of a range of an index in Sales.
func ranging(x *intrapartition.Index[Employee], span compoundkey.Span, top int) (way, error) {
	query, err := x.Query(span)
	if err != nil {
		return way{}, err
	}
	return answering(query.Partition(sales).Top(top))
}

// scanning is the way of reading Sales whole.
func (c *company) scanning(order func(a, b *Employee) int, conditions ...tables.Condition) (way, error) {
	w, err := answering(c.plain.Query().Partition(sales).Where(conditions...))
	w.searched, w.sort = len(c.of(sales)), order
	return w, err
}

// askFirstByName: without the index, everybody is read to find who comes first.
func (c *company) askFirstByName(ctx context.Context, s *section) error {
	with, err := ranging(c.indexes.name, compoundkey.All(), 20)
	if err != nil {
		return err
	}
	without, err := c.scanning(byName)
	without.top = 20
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "the first 20 of Sales by name", with: with, without: without, record: (*Employee).named})
}

func (c *company) askByLastName(ctx context.Context, s *section) error {
	with, err := ranging(c.indexes.name, compoundkey.Exactly(compoundkey.String("Jones")), 0)
	if err != nil {
		return err
	}
	without, err := c.scanning(byName, tables.Eq("LastName", "Jones"))
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "everybody named Jones in Sales", with: with, without: without, record: (*Employee).named})
}

func (c *company) askByHireDate(ctx context.Context, s *section) error {
	from, to := time.Date(2012, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
	with, err := ranging(c.indexes.hired, compoundkey.Between(compoundkey.Time(from), compoundkey.Time(to)), 0)
	if err != nil {
		return err
	}
	without, err := c.scanning(byHireDate, tables.Ge("HireDate", from), tables.Lt("HireDate", to))
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "hired in 2012 by Sales, in order", with: with, without: without})
}
