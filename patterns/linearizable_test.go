package patterns_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

const (
	linearizableSeeds      = 10_000
	linearizableOperations = 50
	linearizableShards     = 8
	// linearizableSeed is the environment variable that chooses one seed.
	linearizableSeed = "LINEARIZABLE_SEED"
)

// TestLinearizable: concurrent writers on the entities of one partition, whose calls fail, are answered late, or kill them.
// Whatever each of them is told about an entity must fit into one order of all operations on it, and at every moment all
// copies are equal to their entities.
//
// The seeds are independent and run side by side. Their schedules are made here and not by explore.Schedules, which
// has one subtest for each seed, one at a time.
func TestLinearizable(t *testing.T) {
	seeds := linearizableSeeds / 30
	switch {
	case race.Enabled: // a seed takes ten times as long
		seeds = linearizableSeeds / 100
	case testing.Short():
		seeds = linearizableSeeds / 60
	case harness.Thorough():
		seeds = linearizableSeeds
	}
	first, last := 0, seeds
	if text := os.Getenv(linearizableSeed); text != "" {
		first = assert.Must[int](t)(strconv.Atoi(text))
		last = first + 1
	}
	// The heap is small and short-lived: without this, a third of the time goes into collecting it.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	begin := time.Now()
	var total linearizableCounts
	t.Run("seeds", func(t *testing.T) {
		for shard := range linearizableShards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				// A bubble, so that the library's waiting between two attempts costs nothing.
				synctest.Test(t, func(t *testing.T) {
					for seed := first + shard; seed < last && !t.Failed(); seed += linearizableShards {
						h := newHistory(t, storagetest.Simulator(t, nil), uint64(seed))
						if err := h.run(t.Context()); err != nil {
							t.Errorf("seed %d: %v\nalone: %s=%d go test -run '^TestLinearizable$' ./patterns\n%s", seed, err, linearizableSeed, seed, h.text())
						}
						total.add(h)
					}
				})
			})
		}
	})
	t.Logf("linearizability: %d seeds, %s, in %v", last-first, total.text(), time.Since(begin).Round(time.Millisecond))
}

// linearizableCounts say that the histories were rich enough to prove something.
type linearizableCounts struct {
	operations, calls, faults, applied, refused, unknown, failed, late, deaths, echoes atomic.Int64
}

func (c *linearizableCounts) add(h *history) {
	c.operations.Add(int64(h.operations))
	c.calls.Add(int64(h.calls))
	c.faults.Add(int64(h.faults))
	c.applied.Add(int64(h.applied))
	c.refused.Add(int64(h.refused))
	c.unknown.Add(int64(h.unknown))
	c.failed.Add(int64(h.failed))
	c.late.Add(int64(h.lateOnes))
	c.deaths.Add(int64(h.deaths))
	c.echoes.Add(int64(h.echoed))
}

func (c *linearizableCounts) text() string {
	return fmt.Sprintf("%d operations (%d writes applied, %d refused, %d unknown, %d other failures), %d calls, %d faults (%d arrived late, %d deaths), %d members inserted twice by a repetition",
		c.operations.Load(), c.applied.Load(), c.refused.Load(), c.unknown.Load(), c.failed.Load(), c.calls.Load(), c.faults.Load(), c.late.Load(), c.deaths.Load(), c.echoes.Load())
}

// TestLinearizableIsDeterministic: a seed that fails would fail again.
func TestLinearizableIsDeterministic(t *testing.T) {
	seeds := uint64(20)
	if race.Enabled {
		seeds = 5
	}
	for seed := range seeds {
		var texts []string
		for range 3 {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, storagetest.Simulator(t, nil), seed)
				if err := h.run(t.Context()); err != nil {
					t.Error(err)
				}
				texts = append(texts, h.text())
			})
		}
		if texts[0] != texts[1] || texts[0] != texts[2] {
			t.Fatalf("seed %d: %s\n\nthen %s\n\nthen %s", seed, texts[0], texts[1], texts[2])
		}
	}
}

// TestLinearizableFindsALostUpdate: a writer that does not look at what is there is found out, in some seed.
func TestLinearizableFindsALostUpdate(t *testing.T) {
	found := 0
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, storagetest.Simulator(t, nil), seed)
			h.replace = func(ctx context.Context, m *members, v *member) error {
				// Without the condition, and without saying so.
				return m.ReplaceUnconditional(ctx, v)
			}
			if h.run(t.Context()) != nil {
				found++
			}
		})
	}
	if found < 10 {
		t.Errorf("%d of 50 seeds show the lost update", found)
	}
}
