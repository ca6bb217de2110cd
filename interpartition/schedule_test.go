package interpartition_test

import (
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// scheduleKind says how the worlds of a test's seeds are made.
type scheduleKind struct {
	pauses []time.Duration
	calm   bool // nothing fails, and nobody dies
	make   func(rng *mathrand.Rand) *scheduleWorld
}

// stage is the stage of one seed.
func (c *scheduleKind) stage(t testing.TB, s *storagetest.Service, waive lease.Rules, log *harness.Log) explore.Stage {
	r := c.make(mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 1)))
	r.Waive, r.Log = waive, log
	return r.stage(t, s)
}

// mixed meet all kinds of trouble, or none. Mostly no time passes, sometimes so much that holders renew, and sometimes so
// much that messages appear again.
func mixed() *scheduleKind {
	return &scheduleKind{
		pauses: harness.Pauses(visibility),
		make: func(rng *mathrand.Rand) *scheduleWorld {
			trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
			return &scheduleWorld{entities: 2 + rng.IntN(2), changes: 3, kept: 2 * rng.IntN(2), Trouble: harness.Trouble{Faults: trouble, Deaths: trouble / 5}}
		}}
}

// heldUp are few entities whose writers and workers are slow and die young.
func heldUp() *scheduleKind {
	return &scheduleKind{
		pauses: []time.Duration{time.Millisecond, time.Millisecond, visibility + 2*time.Second},
		make: func(rng *mathrand.Rand) *scheduleWorld {
			return &scheduleWorld{entities: 1 + rng.IntN(2), changes: 3, kept: rng.IntN(3), Trouble: harness.Trouble{Deaths: 0.06}}
		}}
}

// repaired are concurrent writers with Repair beside them, whose reservations' terms are over now and then.
func repaired() *scheduleKind {
	return &scheduleKind{
		pauses: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, 3 * time.Second, visibility + 2*time.Second},
		make: func(rng *mathrand.Rand) *scheduleWorld {
			trouble := []float64{0, 0.03, 0.1}[rng.IntN(3)]
			return &scheduleWorld{entities: 1 + rng.IntN(3), changes: 3, repairs: true, Trouble: harness.Trouble{Faults: trouble, Deaths: trouble / 5}}
		}}
}

// crowded is one entity that all change at the same time.
func crowded() *scheduleKind {
	return &scheduleKind{calm: true, pauses: []time.Duration{time.Millisecond},
		make: func(*mathrand.Rand) *scheduleWorld { return &scheduleWorld{entities: 1, changes: 3} }}
}

// TestSchedule: three writers, two workers, and maintenance runs in some, whose calls fail or arrive late, who die, and who are held up for longer than
// messages are hidden. In the end the indexes hold what the entities say, what cannot be carried out is poisoned and nothing
// else, and what was refused was not done.
func TestSchedule(t *testing.T) {
	for name, c := range map[string]struct {
		seeds int
		*scheduleKind
	}{"mixed": {3500, mixed()}, "held up": {1500, heldUp()}, "crowded": {750, crowded()}, "repaired": {1500, repaired()}} {
		t.Run(name, func(t *testing.T) {
			log := &harness.Log{}
			explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(c.seeds), Pauses: c.pauses,
				Stage: func(t testing.TB, s *storagetest.Service) explore.Stage { return c.stage(t, s, 0, log) }})
			t.Log(log)
			if c.calm || harness.Shortened() { // too few seeds for each to be met
				return
			}
			log.MustHave(t, harness.Deaths, harness.Lost, duplicates, harness.Failed)
			if name == "repaired" {
				log.MustHave(t, removed, repairedCopies)
			} else {
				log.MustHave(t, "runs of Verify", "runs of Repair", "runs of Rebuild")
			}
			if name == "mixed" {
				log.MustHave(t, harness.Late, harness.Faults)
			}
		})
	}
}
