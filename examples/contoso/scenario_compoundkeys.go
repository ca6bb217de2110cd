package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Review is a year's review of an employee, in the employee's own partition. Its row key is that of the employee with the
// year behind it: 000123_2012.
type Review struct {
	PartitionKey  string
	RowKey        string
	ManagerRating int
	PeerRating    int
	Comments      string
}

func newReview(department string, n, year int) *Review {
	return &Review{PartitionKey: department, RowKey: compoundkey.Join("", id(n), compoundkey.Int(year, 4)),
		ManagerRating: 3 + year%3, PeerRating: 2 + year%4, Comments: fmt.Sprintf("Objectives of %d met.", year)}
}

// compoundKeys keeps reviews beside their employee, so that one request reads both.
func compoundKeys() scenario {
	return scenario{
		title: "An employee with her reviews",
		guide: "Compound key pattern",
		shows: []show{
			{"Compound key", "read together", "", "an employee and her reviews are one range"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			table, err := c.table(ctx, "Reviewed")
			if err != nil {
				return err
			}
			if err := c.writeReviews(ctx, s, table); err != nil {
				return err
			}
			return c.readReviews(ctx, s, table)
		},
	}
}

// writeReviews writes the employee and her reviews in one transaction of the caller's own.
func (c *company) writeReviews(ctx context.Context, s *section, table *tables.Table) error {
	staff, err := newPlain(table)
	if err != nil {
		return err
	}
	reviews, err := tables.RowsOf[Review](table)
	if err != nil {
		return err
	}
	e := *c.employee(reviewed)
	return c.act(s, "an employee and three reviews written", func() (string, error) {
		x := table.NewTransaction()
		staff.StageInsert(x, &e)
		for _, year := range []int{2010, 2011, 2012} {
			row, err := reviews.Entity(newReview(sales, reviewed, year))
			if err != nil {
				return "", err
			}
			x.Insert(row)
		}
		_, err := x.Commit(ctx)
		return fmt.Sprintf("%d rows in one transaction", x.Len()), err
	})
}

func (c *company) readReviews(ctx context.Context, s *section, table *tables.Table) error {
	if err := c.act(s, "read together", func() (string, error) {
		return c.readTogether(ctx, table)
	}); err != nil {
		return err
	}
	return c.act(s, "the review of 2012 alone", func() (string, error) {
		reviews, err := tables.RowsOf[Review](table)
		if err != nil {
			return "", err
		}
		want := newReview(sales, reviewed, 2012)
		got, err := reviews.Get(ctx, tables.Key{Partition: want.PartitionKey, Row: want.RowKey})
		if err != nil {
			return "", err
		}
		if *got != *want {
			return "", errors.New("it is not what was written")
		}
		return "row " + got.RowKey, nil
	})
}

// readTogether asks for the rows that start with the employee's number.
func (c *company) readTogether(ctx context.Context, table *tables.Table) (string, error) {
	query := table.Entities().Query().Partition(sales).Rows(compoundkey.Starting("", id(reviewed)))
	rows, err := collect(query.All(ctx))
	if err != nil {
		return "", err
	}
	var found, years []int
	for _, row := range rows {
		var n, year int
		switch {
		case compoundkey.Parse(row.Key.Row, "", compoundkey.ToInt(&n, 6)) == nil:
			found = append(found, n)
		case compoundkey.Parse(row.Key.Row, "", compoundkey.ToInt(&n, 6), compoundkey.ToInt(&year, 4)) == nil:
			years = append(years, year)
		default:
			return "", fmt.Errorf("row %q is neither an employee nor a review", row.Key.Row)
		}
	}
	if !slices.Equal(found, []int{reviewed}) || !slices.Equal(years, []int{2010, 2011, 2012}) {
		return "", fmt.Errorf("found employees %v and reviews of %v", found, years)
	}
	plan, err := query.Plan()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("1 employee, 3 reviews: %s", plan.Filter), nil
}
