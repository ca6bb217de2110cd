package intrapartition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestQueriesStayInTheirIndex: Rows and Row narrow what an index reads, and never lead to another index's copies: those
// of "name" hold less, and an entity made of one must not pass for the whole.
func TestQueriesStayInTheirIndex(t *testing.T) {
	ctx := context.Background()
	repo, x, requests := open(t)
	for i, email := range []string{"a", "g", "m"} {
		e := jones()
		e.ID, e.Email = i, email
		if err := repo.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	byEmail := x.email.Query().Partition("Sales")
	upTo := x.email.Query(compoundkey.Below(compoundkey.String("h"))).Partition("Sales")
	own := repo.Query().Partition("Sales")
	copied := compoundkey.Join("name", compoundkey.String("Jones"), compoundkey.String("Jun"), compoundkey.Int(0, 6))
	for name, c := range map[string]struct {
		query    tables.Query[employee]
		want     []string
		class    tables.QueryClass
		requests int
	}{
		"rows within":                  {byEmail.Rows(compoundkey.Range("email_g", "email_z")), []string{"g", "m"}, tables.RangeQuery, 1},
		"rows across the end":          {byEmail.Rows(compoundkey.Range("email_h", "")), []string{"m"}, tables.RangeQuery, 1},
		"both spans":                   {upTo.Rows(compoundkey.Range("email_b", "")), []string{"g"}, tables.RangeQuery, 1},
		"both spans, wider":            {upTo.Rows(compoundkey.Starting("email")), []string{"a", "g"}, tables.RangeQuery, 1},
		"all rows":                     {byEmail.Rows(compoundkey.All()), []string{"a", "g", "m"}, tables.RangeQuery, 1},
		"rows of another index":        {byEmail.Rows(compoundkey.Starting("name")), nil, tables.RangeQuery, 0},
		"a row within":                 {byEmail.Row("email_g"), []string{"g"}, tables.PointQuery, 1},
		"a row beyond the span":        {upTo.Row("email_m"), nil, tables.PointQuery, 0},
		"a row of another index":       {byEmail.Row(copied), nil, tables.PointQuery, 0},
		"an entity's own row":          {byEmail.Row("empid_000000"), nil, tables.PointQuery, 0},
		"a row and rows without it":    {byEmail.Row("email_a").Rows(compoundkey.Range("email_b", "")), nil, tables.PointQuery, 0},
		"a copy among entities":        {own.Row("email_a"), nil, tables.PointQuery, 0},
		"an entity":                    {own.Row("empid_000001"), []string{"g"}, tables.PointQuery, 1},
		"copies as rows of entities":   {own.Rows(compoundkey.Starting("name")), nil, tables.RangeQuery, 0},
		"entities from the second one": {own.Rows(compoundkey.Range("empid_000001", "zzz")), []string{"g", "m"}, tables.RangeQuery, 1},
	} {
		requests.Reset()
		var got []string
		for e, err := range c.query.All(ctx) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, e.Email)
		}
		plan, err := c.query.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) || requests.Count() != c.requests || plan.Class != c.class && c.requests > 0 {
			t.Errorf("%s: %q in %d requests, a %v (%s); want %q in %d", name, got, requests.Count(), plan.Class, plan.Filter, c.want, c.requests)
		}
	}
	bad := byEmail.Rows(compoundkey.Prefix("\xff").Span)
	if _, err := bad.Plan(); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a span that is none: %v", err)
	}
}

// TestConditionsOnWhatCopiesHold: a condition on a property that an index does not keep would find nothing, and say so
// by silence.
func TestConditionsOnWhatCopiesHold(t *testing.T) {
	ctx := context.Background()
	repo, x, requests := open(t)
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	q := x.name.Query()
	q = q.Partition("Sales")
	requests.Reset()
	for i, refused := range []tables.Query[employee]{
		q.Where(tables.Gt("Age", 40)),
		q.Where(tables.Eq("LastName", "Jones"), tables.Or(tables.Eq("FirstName", "Jun"), tables.Not(tables.Eq("Email", "x")))),
		q.Filter("LastName eq 'Jones' and Age gt 40L"),
		q.Filter("40L lt Age"),
		q.Filter("Active"),
		q.Select("LastName", "Age"),
		x.email.Query(compoundkey.Below(compoundkey.String("z"))).Partition("Sales").Where(tables.Eq("Agee", 40)),
		x.email.Query(compoundkey.Below(compoundkey.String("z"))).Partition("Sales").Select("Agee"),
		repo.Query().Partition("Sales").Where(tables.Eq("Agee", 40)),
	} {
		for _, err := range refused.All(ctx) {
			if !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("query %d: %v", i, err)
			}
		}
		if _, err := refused.Plan(); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("plan %d: %v", i, err)
		}
	}
	if requests.Count() != 0 {
		t.Errorf("%d requests", requests.Count())
	}
	found := q.Where(tables.Eq("LastName", "Jones"), tables.Gt("RowKey", "name"), tables.Gt("Timestamp", jones().Timestamp.AddDate(1999, 0, 0))).Filter("FirstName eq 'Jun'")
	if e, err := found.First(ctx); err != nil || e.LastName != "Jones" {
		t.Errorf("%v, %v", e, err)
	}
	whole := x.email.Query()
	if e, err := whole.Partition("Sales").Where(tables.Gt("Age", 40)).First(ctx); err != nil || e.Age != 41 {
		t.Errorf("%v, %v", e, err)
	}
}

// TestGetFullTakesKeysOfAnyKind: also for an index by a number, or by several properties.
func TestGetFullTakesKeysOfAnyKind(t *testing.T) {
	ctx := context.Background()
	repo, x, _ := open(t)
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	e, err := x.name.In("Sales").GetFull(ctx, compoundkey.Tuple(compoundkey.String("Jones"), compoundkey.String("Jun"), compoundkey.Int(223, 6)))
	if err != nil || e.Age != 41 {
		t.Fatalf("%v, %v", e, err)
	}
	e.Age++
	if err := repo.Replace(ctx, e); err != nil {
		t.Fatal(err)
	}
	if _, err := x.name.In("Sales").GetFull(ctx, compoundkey.String("Jones")); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("half a key: %v", err)
	}
}

// TestHowManyKeysCanMove: each key that changes takes a delete and an insert of the transaction's 100 operations.
func TestHowManyKeysCanMove(t *testing.T) {
	ctx := context.Background()
	repo, _, requests := open(t)
	tags := func(prefix string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(prefix, i))
		}
		return list
	}
	e := &employee{Department: "Sales", ID: 1}
	for _, c := range []struct {
		from, to int
		kind     error
	}{{49, 49, nil}, {50, 50, tables.ErrTooLarge}} { // beside the tags, each has a copy of "name", which stays
		e.Tags = tags("a", c.from)
		if err := repo.Upsert(ctx, e); err != nil {
			t.Fatal(err)
		}
		requests.Reset()
		e.Tags = tags("b", c.to)
		if err := repo.Replace(ctx, e); !errors.Is(err, c.kind) {
			t.Errorf("%d keys: %v", c.to, err)
		} else if c.kind != nil && requests.Count() != 0 {
			t.Errorf("%d requests", requests.Count())
		}
		if err := repo.DeleteUnconditional(ctx, e.Key()); err != nil {
			t.Fatal(err)
		}
	}
	e = &employee{Department: "Sales", ID: 2, Tags: tags("a", 98)}
	if err := repo.Insert(ctx, e); err != nil {
		t.Errorf("99 copies: %v", err)
	}
}
