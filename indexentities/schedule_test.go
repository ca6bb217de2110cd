package indexentities_test

import (
	mathrand "math/rand/v2"
	"testing"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// scheduledSeeds is how many schedules to run.
func scheduledSeeds(seeds int) int {
	if testing.Short() || raceDetector {
		return seeds / 10
	}
	return seeds
}

// TestSchedule: three writers, and two workers where there are intents, whose calls fail or arrive late, who die, and who are
// held up for longer than messages are hidden. In the end the lists hold what the entities say, and what was refused was not
// done.
func TestSchedule(t *testing.T) {
	log := &rivalryLog{}
	storagetest.Schedules(t, storagetest.ScheduleCase{Seeds: scheduledSeeds(1000), Pauses: rivalPauses,
		Stage: func(t testing.TB, s *storagetest.Service) storagetest.Stage {
			rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 1))
			trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
			r := &rivalry{world: world{option: options[rng.IntN(len(options))], organisation: rng.IntN(2) == 0, attempts: 40},
				entities: 2 + rng.IntN(2), changes: 3, trouble: trouble, deaths: trouble / 5, log: log}
			if r.option == inPartition {
				r.organisation = false
			}
			return r.stage(t, s)
		}})
	t.Log(log)
	for what, n := range map[string]int64{"unknown outcomes": int64(log.unknown), "deaths": int64(log.deaths), "late requests": int64(log.late), "lost leases": log.lost} {
		if n == 0 {
			t.Errorf("no %s: the schedules show nothing of them", what)
		}
	}
}
