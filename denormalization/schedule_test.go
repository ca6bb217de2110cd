package denormalization_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestSchedule: writers of employees and of departments' budgets, and two workers, whose calls fail or arrive late, who die,
// and who are held up for longer than messages are hidden.
func TestSchedule(t *testing.T) {
	log := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(500), Pauses: harness.Pauses(visibility),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			return newScheduleWorld(0, log).stage(t, s)
		}})
	t.Log(log)
	log.MustHave(t, harness.Unknown, harness.Deaths, harness.Late, harness.Lost)
}
