package indexentities_test

import (
	mathrand "math/rand/v2"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestSchedule: three writers, and maintenance runs in some, whose calls fail or arrive late, who die, and who are held up for longer than a change may take. In the end the lists hold what the entities say, and what was refused was not
// done.
func TestSchedule(t *testing.T) {
	log := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(1000), Pauses: harness.Pauses(term),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 1))
			trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
			r := &scheduleWorld{world: world{option: options[rng.IntN(len(options))], global: rng.IntN(2) == 0, attempts: 40},
				entities: 2 + rng.IntN(2), changes: 3, kept: rng.IntN(3), Trouble: harness.Trouble{Faults: trouble, Deaths: trouble / 5, Log: log}}
			if r.option == inPartition {
				r.global = false
			}
			return r.stage(t, s)
		}})
	t.Log(log)
	log.MustHave(t, harness.Unknown, harness.Deaths, harness.Late, "runs of Verify", "runs of Repair", "runs of Rebuild")
}
