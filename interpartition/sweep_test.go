package interpartition_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// changed is Jones after the swept change: both keys move.
func changed() *employee {
	e := jones()
	e.Name, e.Email, e.Badge = "June Smith", "smithj@contoso.com", "B-2"
	return e
}

// swept is an operation on Jones. states are the texts of her before it, and after it was applied once and more often.
func swept(k kind, before *employee, states []string, operate func(ctx context.Context, repo *patterns.Repository[employee]) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, k)
		if before != nil {
			p, copied := harness.Must[*process](t)(w.start(s)), *before
			if err := p.repo.Insert(t.Context(), &copied); err != nil {
				t.Fatal(err)
			}
			if err := w.drainNow(t.Context(), p); err != nil {
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
				if p != nil {
					err = errors.Join(err, p.close(ctx))
				}
				return err
			},
			Recover: w.drain,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				found, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(found[keyOf(jones())], states)
			},
		}
	}}
}

// TestSweep breaks every change of an entity with two inter-partition indexes at every storage call, in every way.
func TestSweep(t *testing.T) {
	old, now := textOf(jones()), textOf(changed())
	floors := map[string]int{
		"sync/Insert": 232, "sync/Update": 376, "sync/Upsert": 376, "sync/Delete": 264,
		"sync-unique/Insert": 344, "sync-unique/Update": 616, "sync-unique/Upsert": 616, "sync-unique/Delete": 392,
		"async/Insert": 88, "async/Update": 120, "async/Upsert": 120, "async/Delete": 120,
		"sync-background/Insert": 232, "sync-background/Update": 376, "sync-background/Upsert": 376, "sync-background/Delete": 264,
		"sync-unique-background/Insert": 344, "sync-unique-background/Update": 616, "sync-unique-background/Upsert": 616, "sync-unique-background/Delete": 392,
		"async-unique/Insert": 200, "async-unique/Update": 232, "async-unique/Upsert": 232, "async-unique/Delete": 120,
	}
	for _, k := range []kind{{}, {unique: true}, {async: true}, {async: true, unique: true}, {background: true}, {unique: true, background: true}} {
		for name, c := range map[string]storagetest.SweepCase{
			"Insert": swept(k, nil, []string{"", old}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
				return repo.Insert(ctx, jones())
			}),
			"Update": swept(k, jones(), []string{old, now}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
				_, err := repo.Update(ctx, keyOf(jones()), func(e *employee) error {
					e.Name, e.Email, e.Badge = changed().Name, changed().Email, changed().Badge
					return nil
				})
				return err
			}),
			"Upsert": swept(k, jones(), []string{old, now}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
				return repo.Upsert(ctx, changed())
			}),
			"Delete": swept(k, jones(), []string{old, ""}, func(ctx context.Context, repo *patterns.Repository[employee]) error {
				return repo.DeleteUnconditional(ctx, keyOf(jones()))
			}),
		} {
			name = k.String() + "/" + name
			c.Floor, c.Every = floors[name], harness.SweepEvery()
			t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}
