package denormalization_test

import (
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

// TestSchedule: writers of employees and of departments' budgets, and two workers, whose calls fail or arrive late, who die,
// and who are held up for longer than messages are hidden.
func TestSchedule(t *testing.T) {
	log := &rivalLog{}
	storagetest.Schedules(t, storagetest.ScheduleCase{Seeds: scheduledSeeds(500), Pauses: rivalPauses(),
		Stage: func(t testing.TB, s *storagetest.Service) storagetest.Stage {
			return newRivals(0, log).stage(t, s)
		}})
	t.Log(log)
	for what, n := range map[string]int64{"unknown outcomes": int64(log.unknown), "deaths": int64(log.deaths), "late requests": int64(log.late), "lost leases": log.lost} {
		if n == 0 {
			t.Errorf("no %s: the schedules show nothing of them", what)
		}
	}
}
