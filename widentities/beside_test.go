package widentities_test

import (
	"context"
	"testing"
	"time"

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
			if err := harness.Clean(ctx, p.profiles.Verify, quick); err != nil {
				t.Errorf("Verify yields %v", err)
			}
			return nil
		},
		"Repair": func(ctx context.Context, p *process) error {
			if err := harness.Clean(ctx, p.profiles.Repair, quick); err != nil {
				t.Errorf("Repair yields %v", err)
			}
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
		harness.Check(t, p.profiles.Insert(ctx, withNumbers(id, 900)))
	}
	faulty, _ := s.Faulty(storagetest.OnIndex(i, storagetest.Always(storagetest.After("delete", func() {
		met = true
		harness.Check(t, p.profiles.DeleteUnconditional(ctx, at(2)))
		if again {
			harness.Check(t, p.profiles.Insert(ctx, withNumbers(2, 400)))
		}
	}))))
	broken, err := start(faulty, table)
	harness.Check(t, err, run(ctx, broken))
	if err := harness.Clean(ctx, p.profiles.Verify, quick); err != nil {
		t.Fatalf("delete after request %d leaves %v", i, err)
	}
	return met
}
