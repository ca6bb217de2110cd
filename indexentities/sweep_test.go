package indexentities_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// swept is an operation on employee 223, who is there before where states begins with her, beside others named as she is
// before and after. states are the texts of her before the operation, and after it was applied once and more often.
func swept(w world, before *employee, states []string, operate func(ctx context.Context, repo *patterns.Repository[employee]) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := w
		w.open(t, s)
		p := assert.Must[*process](t)(w.start(s))
		there := []*employee{with(1, "Jones"), with(2, "Kwok")}
		if before != nil {
			copied := *before
			there = append(there, &copied)
		}
		for _, e := range there {
			if err := p.repo.Insert(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = operate(ctx, p.repo)
				}
				said.Add(err)
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				found, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(found[at(223)], states)
			},
		}
	}}
}

// sweeps are the changes to break. A name that begins a list and one that ends it are among them, and lists that go on.
func sweeps(w world) map[string]storagetest.SweepCase {
	update := func(lastName, note string) func(ctx context.Context, repo *patterns.Repository[employee]) error {
		return func(ctx context.Context, repo *patterns.Repository[employee]) error {
			_, err := repo.Update(ctx, at(223), func(e *employee) error {
				e.LastName, e.Note = lastName, note
				return nil
			})
			return err
		}
	}
	return map[string]storagetest.SweepCase{
		"Insert": swept(w, nil, []string{"", "Jones: first"}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
			return repo.Insert(ctx, with(223, "Jones"))
		}),
		"Move":  swept(w, with(223, "Jones"), []string{"Jones: first", "Kwok: moved"}, update("Kwok", "moved")),
		"Begin": swept(w, with(223, ""), []string{": first", "Smith: moved"}, update("Smith", "moved")),
		"End":   swept(w, with(223, "Smith"), []string{"Smith: first", "Jones: moved"}, update("Jones", "moved")),
		"Stay":  swept(w, with(223, "Jones"), []string{"Jones: first", "Jones: stays"}, update("Jones", "stays")),
		"Upsert": swept(w, with(223, "Smith"), []string{"Smith: first", "Kwok: first"}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
			return repo.Upsert(ctx, with(223, "Kwok"))
		}),
		"Delete": swept(w, with(223, "Jones"), []string{"Jones: first", ""}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
			return repo.DeleteUnconditional(ctx, at(223))
		}),
	}
}

// TestSweep breaks every change of an entity in a list, with each of the options, at every storage call, in every way.
func TestSweep(t *testing.T) {
	floors := map[option]map[string]int{
		inPartition: {"Insert": 88, "Move": 152, "Begin": 120, "End": 152, "Stay": 92, "Upsert": 152, "Delete": 120},
		outside:     {"Insert": 84, "Move": 116, "Begin": 116, "End": 116, "Stay": 60, "Upsert": 116, "Delete": 116},
	}
	for _, o := range options {
		for name, c := range sweeps(world{option: o}) {
			c.Floor, c.Every = floors[o][name], harness.SweepEvery()
			t.Run(string(o)+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}
