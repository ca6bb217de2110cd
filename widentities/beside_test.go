package widentities_test

import (
	"context"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

var quick = &patterns.JobOptions{Lag: time.Millisecond}

// TestMaintenanceBesideADelete: a concurrent writer deletes an entity of several rows, or inserts it again with fewer, after any
// one request of Verify, Repair and Rebuild. None of them panics or reports the entity.
func TestMaintenanceBesideADelete(t *testing.T) {
	for name, run := range map[string]func(context.Context, *process) error{
		"Verify": func(ctx context.Context, p *process) error {
			assert.NoError(t, harness.Clean(ctx, p.profiles.Verify, quick), "Verify")
			return nil
		},
		"Repair": func(ctx context.Context, p *process) error {
			assert.NoError(t, harness.Clean(ctx, p.profiles.Repair, quick), "Repair")
			return nil
		},
		"Rebuild": func(ctx context.Context, p *process) error {
			failed, err := harness.Findings(ctx, p.profiles.Rebuild, nil)
			if len(failed) > 0 {
				t.Errorf("Rebuild reports %v", failed)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, again := range []bool{false, true} {
				points := 0
				for i := 0; deletedAt(t, i, again, run); i++ {
					points++
				}
				t.Logf("inserted again: %v: %d points", again, points)
			}
		})
	}
}

// deletedAt has the delete follow request i of the run, and reports whether there was such a request.
func deletedAt(t *testing.T, i int, again bool, run func(context.Context, *process) error) (met bool) {
	t.Helper()
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	p, table := open(t, s)
	for id := 1; id <= 3; id++ {
		assert.Check(t, p.profiles.Insert(ctx, withNumbers(id, 900)))
	}
	faulty, _ := s.Faulty(storagetest.OnIndex(i, storagetest.Always(storagetest.After("delete", func() {
		met = true
		assert.Check(t, p.profiles.DeleteUnconditional(ctx, at(2)))
		if again {
			assert.Check(t, p.profiles.Insert(ctx, withNumbers(2, 400)))
		}
	}))))
	broken := assert.Must[*process](t)(start(faulty, table))
	assert.Check(t, run(ctx, broken))
	assert.NoError(assert.Fatal(t), harness.Clean(ctx, p.profiles.Verify, quick), "after a delete with request %d", i)
	return met
}
