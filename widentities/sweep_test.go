package widentities_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweep breaks each change of an entity that grows over rows, shrinks, or stays, at each of its calls. Afterwards the entity
// is as before or as after, its copy agrees, and no row is there that belongs to neither.
func TestSweep(t *testing.T) {
	merged := withNumbers(1, 700)
	merged.More["Answer00500"] = tables.String("another")
	for _, c := range []struct {
		name          string
		before, after *profile
		floor         int
		operate       func(ctx context.Context, p *process, v *profile) error
	}{
		{"Insert", nil, withNumbers(1, 700), 56, func(ctx context.Context, p *process, _ *profile) error {
			return p.profiles.Insert(ctx, withNumbers(1, 700))
		}},
		{"Grow", withNumbers(1, 20), withNumbers(1, 700), 88, replaceBy(withNumbers(1, 700))},
		{"Shrink", withNumbers(1, 700), withNumbers(1, 20), 120, replaceBy(withNumbers(1, 20))},
		{"Fewer rows", withText(1, 500_000), withText(1, 40_000), 120, replaceBy(withText(1, 40_000))},
		{"Merge", withNumbers(1, 700), merged, 184, func(ctx context.Context, p *process, v *profile) error {
			v.More = map[string]tables.Value{"Answer00500": tables.String("another")}
			return p.profiles.Merge(ctx, v, "Answer00500")
		}},
		{"Delete", withNumbers(1, 700), nil, 120, func(ctx context.Context, p *process, v *profile) error { return p.profiles.Delete(ctx, v) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return sweptWorld(t, s, c.before, c.after, c.operate)
			}})
		})
	}
}

func replaceBy(next *profile) func(context.Context, *process, *profile) error {
	return func(ctx context.Context, p *process, v *profile) error {
		v.More = next.More
		return p.profiles.Replace(ctx, v)
	}
}

func sweptWorld(t testing.TB, s *storagetest.Service, before, after *profile, operate func(context.Context, *process, *profile) error) storagetest.World {
	own, table := open(t, s)
	assert.Check(t, own.profiles.Insert(t.Context(), withNumbers(2, 300)))
	if before != nil {
		fresh := *before
		assert.Check(t, own.profiles.Insert(t.Context(), &fresh))
	}
	var mu sync.Mutex
	surely := false
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			p, err := start(s, table)
			if err != nil {
				return err
			}
			var v *profile
			if before != nil {
				if v, err = p.profiles.Get(ctx, at(1)); err != nil {
					return err
				}
			}
			err = operate(ctx, p, v)
			mu.Lock()
			defer mu.Unlock()
			surely = surely || err == nil
			return err
		},
		Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
			p, err := start(s, table)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			states := []*profile{after}
			if !surely {
				states = append(states, before)
			}
			return found(ctx, p, states)
		},
	}
}

// found compares the table with what may be in it.
func found(ctx context.Context, p *process, states []*profile) error {
	got, err := p.profiles.Get(ctx, at(1))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	is := slices.IndexFunc(states, func(state *profile) bool { return textOf(state) == textOf(got) })
	if is < 0 {
		return fmt.Errorf("there is %.200s", textOf(got))
	}
	copied, err := p.byEmail.In("red").Get(ctx, "p1@contoso.com")
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	if textOf(copied) != textOf(got) {
		return fmt.Errorf("the copy is %.200s", textOf(copied))
	}
	return harness.Clean(ctx, p.profiles.Verify, nil)
}

func textOf(p *profile) string {
	if p == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s", p.Team, p.ID, p.Email)
	for _, name := range slices.Sorted(maps.Keys(p.More)) {
		fmt.Fprintf(&b, " %s=%v", name, p.More[name].Any())
	}
	return b.String()
}
