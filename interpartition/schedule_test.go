package interpartition_test

import (
	"testing"

	mathrand "math/rand/v2"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// scheduledSeeds is how many schedules to run.
func scheduledSeeds(seeds int) int {
	if testing.Short() || raceDetector {
		return seeds / 10
	}
	return seeds
}

// TestSchedule: three writers and two workers, whose calls fail or arrive late, who die, and who are held up for longer than
// messages are hidden. In the end the indexes hold what the entities say, and what was refused was not done.
func TestSchedule(t *testing.T) {
	log := &rivalryLog{}
	storagetest.Schedules(t, storagetest.ScheduleCase{Seeds: scheduledSeeds(5000), Pauses: rivalPauses,
		Stage: func(t testing.TB, s *storagetest.Service) storagetest.Stage {
			rng := mathrand.New(mathrand.NewPCG(scheduleSeed(), 1))
			trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
			r := &rivalry{entities: 2 + rng.IntN(2), changes: 3, trouble: trouble, deaths: trouble / 5, log: log}
			return r.stage(t, s)
		}})
	t.Log(log)
	for what, n := range map[string]int64{"unknown outcomes": int64(log.unknown), "deaths": int64(log.deaths), "late requests": int64(log.late),
		"lost leases": log.lost, "duplicates": log.duplicates} {
		if n == 0 {
			t.Errorf("no %s: the schedules show nothing of them", what)
		}
	}
}
