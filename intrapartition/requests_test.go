package intrapartition_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCounts holds what the package comment and docs/reference/costs.md say of reads and of changes through an index.
// TestEveryChangeMovesTheCopies counts the other changes.
func TestRequestCounts(t *testing.T) {
	ctx := context.Background()
	repo, x, requests := open(t)
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	name := compoundkey.Tuple(compoundkey.String("Jones"), compoundkey.String("Jun"), compoundkey.Int(223, 6))
	byTag := func() (*employee, error) {
		return x.tag.In("Sales").Get(ctx, compoundkey.Tuple(compoundkey.String("go"), compoundkey.Int(223, 6)))
	}
	steps := []struct {
		name string
		want int
		do   func() error
	}{
		{"Get", 1, func() error {
			_, err := x.email.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com"))
			return err
		}},
		{"Get with a Tuple", 1, func() error { _, err := byTag(); return err }},
		{"GetFull", 2, func() error {
			_, err := x.email.In("Sales").GetFull(ctx, compoundkey.String("jonesj@contoso.com"))
			return err
		}},
		{"Range", 1, func() error {
			for _, err := range x.name.In("Sales").Range(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"read through a copy, and Replace", 3, func() error {
			e, err := byTag()
			if err != nil {
				return err
			}
			e.Email = "june@contoso.com"
			return repo.Replace(ctx, e)
		}},
		{"removal of a copy that is gone, read and Replace", 5, func() error {
			e, err := byTag()
			if err != nil {
				return err
			}
			copied := tables.Key{Partition: "Sales", Row: compoundkey.Join("email", compoundkey.String(e.Email))}
			if err := repo.Table().Entities().DeleteUnconditional(ctx, copied); err != nil {
				return err
			}
			e.Email = "jun@contoso.com"
			return repo.Replace(ctx, e) // refused, and sent again without that row
		}},
		{"read through a projection, and Merge", 3, func() error {
			e, err := x.name.In("Sales").Get(ctx, name)
			if err != nil {
				return err
			}
			return repo.Merge(ctx, e, "LastName")
		}},
		{"read through a projection, and Delete", 3, func() error {
			e, err := x.name.In("Sales").Get(ctx, name)
			if err != nil {
				return err
			}
			return repo.Delete(ctx, e)
		}},
	}
	for _, step := range steps {
		requests.Reset()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := requests.Count(); got != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, got, step.want)
		}
	}
}
