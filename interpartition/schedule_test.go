package interpartition_test

import (
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// scheduledSeeds is how many schedules to run.
func scheduledSeeds(seeds int) int {
	if testing.Short() || raceDetector {
		return seeds / 10
	}
	return seeds
}

// rivals are how the rivalries of a test's seeds are made.
type rivals struct {
	pauses []time.Duration
	calm   bool // nothing fails, and nobody dies
	make   func(rng *mathrand.Rand) *rivalry
}

// stage is the stage of one seed.
func (c *rivals) stage(t testing.TB, s *storagetest.Service, waive lease.Rules, log *rivalryLog) storagetest.Stage {
	r := c.make(mathrand.New(mathrand.NewPCG(scheduleSeed(), 1)))
	r.waive, r.log = waive, log
	return r.stage(t, s)
}

// mixed meet all kinds of trouble, or none. Mostly no time passes, sometimes so much that holders renew, and sometimes so
// much that messages appear again.
func mixed() *rivals {
	const short = time.Millisecond
	return &rivals{
		pauses: []time.Duration{short, short, short, short, 3 * time.Second, 4 * time.Second, visibility + 2*time.Second},
		make: func(rng *mathrand.Rand) *rivalry {
			trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
			return &rivalry{entities: 2 + rng.IntN(2), changes: 3, trouble: trouble, deaths: trouble / 5}
		}}
}

// heldUp are few entities whose writers and workers are slow and die young.
func heldUp() *rivals {
	return &rivals{
		pauses: []time.Duration{time.Millisecond, time.Millisecond, visibility + 2*time.Second},
		make: func(rng *mathrand.Rand) *rivalry {
			return &rivalry{entities: 1 + rng.IntN(2), changes: 3, deaths: 0.06}
		}}
}

// crowded is one entity that all change at the same time.
func crowded() *rivals {
	return &rivals{calm: true, pauses: []time.Duration{time.Millisecond},
		make: func(*mathrand.Rand) *rivalry { return &rivalry{entities: 1, changes: 3} }}
}

// TestSchedule: three writers and two workers, whose calls fail or arrive late, who die, and who are held up for longer than
// messages are hidden. In the end the indexes hold what the entities say, what cannot be carried out is poisoned and nothing
// else, and what was refused was not done.
func TestSchedule(t *testing.T) {
	for name, c := range map[string]struct {
		seeds int
		*rivals
	}{"mixed": {3500, mixed()}, "held up": {750, heldUp()}, "crowded": {750, crowded()}} {
		t.Run(name, func(t *testing.T) {
			log := &rivalryLog{}
			storagetest.Schedules(t, storagetest.ScheduleCase{Seeds: scheduledSeeds(c.seeds), Pauses: c.pauses,
				Stage: func(t testing.TB, s *storagetest.Service) storagetest.Stage { return c.stage(t, s, 0, log) }})
			t.Log(log)
			if c.calm {
				return
			}
			seen := map[string]int64{"deaths": int64(log.deaths), "lost leases": log.lost, "duplicates": log.duplicates, "failed deliveries": log.failed}
			if name == "mixed" {
				seen["late requests"], seen["faults"] = int64(log.late), int64(log.faults)
			}
			for what, n := range seen {
				if n == 0 {
					t.Errorf("no %s: the schedules show nothing of them", what)
				}
			}
		})
	}
}
