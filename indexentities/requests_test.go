package indexentities_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestRequestCounts holds what the package comment says.
func TestRequestCounts(t *testing.T) {
	for _, c := range []struct {
		world
		insert, stays, moves, merge, remove int
	}{
		{world{option: inPartition}, 2, 2, 3, 3, 2},
		{world{option: outside}, 3, 1, 3, 2, 3},
	} {
		t.Run(c.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			requests := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), requests)
			w := c.world
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(&counted))
			for _, e := range []*employee{with(1, "Jones"), with(2, "Jones"), with(3, "Smith")} {
				if err := p.repo.Insert(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			e := with(4, "Jones")
			for _, step := range []struct {
				name string
				want int
				do   func() error
			}{
				{"Insert", c.insert, func() error { return p.repo.Insert(ctx, e) }},
				{"Replace, same value", c.stays, func() error { e.Note = "again"; return p.repo.Replace(ctx, e) }},
				{"Merge", c.merge, func() error { return p.repo.Merge(ctx, e, "Note") }},
				{"Replace, another value", c.moves, func() error { e.LastName = "Smith"; return p.repo.Replace(ctx, e) }},
				{"Delete", c.remove, func() error { return p.repo.Delete(ctx, e) }},
				{"Keys", 1, func() error { _, err := p.index.In("Sales").Keys(ctx, compoundkey.String("Jones")); return err }},
				{"Find", 3, func() error { idsOf(t, p.index.In("Sales").Find(ctx, compoundkey.String("Jones"), nil)); return nil }},
				{"Page", 2, func() error { _, err := p.index.In("Sales").Page(ctx, compoundkey.String("Jones"), 1, ""); return err }},
				{"Values", 1, func() error {
					for _, err := range p.index.In("Sales").Values(ctx) {
						if err != nil {
							return err
						}
					}
					return nil
				}},
			} {
				requests.Reset()
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if got := requests.Count(); got != step.want {
					t.Errorf("%s: %d requests, want %d", step.name, got, step.want)
				}
			}
		})
	}
}

// placeOf is how facts call the list of a name in Sales.
func (w *world) placeOf(name string) string { return "Sales\tlastname_" + name }
