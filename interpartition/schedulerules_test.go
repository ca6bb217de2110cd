package interpartition_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestScheduleRules: the schedules can fail. Without one of the rules of engine.Reconcile, some of them end with
// indexes that do not agree. The seeds do nothing more once one is found.
//
// Without the third rule, that leases end, so many things must come together (somebody stands still while its message is
// carried out and a concurrent writer comes, and dies at once when it goes on) that only one schedule in a thousand finds it:
// TestStallFindsNoExpiry is about that.
func TestScheduleRules(t *testing.T) {
	for name, c := range map[string]struct {
		lease.Rules
		*scheduleKind
	}{"OwnKeys": {lease.OwnKeys, crowded()}, "Reread": {lease.Reread, crowded()}} {
		t.Run(name, func(t *testing.T) {
			var found error
			tried, log := 0, &harness.Log{}
			nothing := explore.Stage{
				Actors: []explore.Actor{func(context.Context, *storagetest.Service) error { return nil }},
				Check:  func(context.Context, *storagetest.Service, []error) error { return nil },
			}
			explore.Schedules(t, explore.ScheduleCase{Seeds: 1000, Pauses: c.pauses,
				Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
					if found != nil {
						return nothing
					}
					tried++
					stage := c.stage(t, s, c.Rules, log)
					check := stage.Check
					stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
						found = check(ctx, s, errs)
						return nil
					}
					return stage
				}})
			if found == nil {
				t.Fatalf("%d schedules without the rule, and all agree: %v", tried, log)
			}
			t.Logf("found by seed %d: %v", tried-1, found)
		})
	}
}
