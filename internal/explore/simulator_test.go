package explore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// Two clients that count up one number: without the ETag they lose counts, in some schedule, and with it in none.
func TestSchedulesOnTheSimulator(t *testing.T) {
	lost := 0
	for _, conditional := range []bool{false, true} {
		explore.Schedules(t, explore.ScheduleCase{
			Name: fmt.Sprintf("conditional=%v", conditional), Seeds: 100,
			Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
				table := tablesOf(t, s).NewClient("Counts")
				assert.Check(t, assert.Err(table.CreateTable(t.Context(), nil)))
				_, err := table.AddEntity(t.Context(), entityOf("p", "r", `"N":0`), nil)
				assert.Check(t, err)
				actor := func(ctx context.Context, s *storagetest.Service) error { return countUp(ctx, t, s, conditional) }
				return explore.Stage{
					Actors: []explore.Actor{actor, actor},
					Check: func(ctx context.Context, _ *storagetest.Service, errs []error) error {
						got, err := table.GetEntity(ctx, "p", "r", nil)
						assert.Check(t, errors.Join(append(errs, err)...))
						switch {
						case strings.Contains(string(got.Value), `"N":2`):
							return nil
						case conditional:
							return fmt.Errorf("stored: %s", got.Value)
						}
						lost++
						return nil
					},
				}
			},
		})
	}
	if lost < 20 || lost > 80 {
		t.Errorf("%d of 100 seeds show the lost count", lost)
	}
}

func countUp(ctx context.Context, t testing.TB, s *storagetest.Service, conditional bool) error {
	table := tablesOf(t, s).NewClient("Counts")
	for {
		got, err := table.GetEntity(ctx, "p", "r", nil)
		if err != nil {
			return err
		}
		o := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		if conditional {
			o.IfMatch = &got.ETag
		}
		next := `"N":1`
		if strings.Contains(string(got.Value), `"N":1`) {
			next = `"N":2`
		}
		_, err = table.UpdateEntity(ctx, entityOf("p", "r", next), o)
		var answer *azcore.ResponseError
		if !errors.As(err, &answer) || answer.StatusCode != http.StatusPreconditionFailed {
			return err
		}
	}
}

// The library's own clients wait for random times, and draw random ids; neither changes what a seed decides.
func TestSchedulesOfTheLibraryAreDeterministic(t *testing.T) {
	stage := func(t testing.TB, s *storagetest.Service) explore.Stage {
		_, err := newStaff(t.Context(), s, "Staff")
		assert.Check(t, err)
		actor := func(id string) explore.Actor {
			return func(ctx context.Context, s *storagetest.Service) error {
				s, _ = s.Faulty(storagetest.Randomly(0.2, 3, storagetest.LostAnswer))
				staff, err := openStaff(s, "Staff")
				if err != nil {
					return err
				}
				for i := range 3 {
					for range 3 {
						if hire(ctx, staff, "Sales", fmt.Sprint(id, i)) == nil {
							break
						}
						time.Sleep(time.Second)
					}
				}
				return nil
			}
		}
		return explore.Stage{Actors: []explore.Actor{actor("a"), actor("b")},
			Check: func(context.Context, *storagetest.Service, []error) error { return nil }}
	}
	c := explore.ScheduleCase{Stage: stage, Pauses: []time.Duration{time.Second, time.Minute}, Steps: 200}
	for seed := range uint64(10) {
		first := strings.Join(explore.TraceOf(t, c, seed), "\n")
		if strings.Count(first, "Batch") < 6 {
			t.Fatalf("seed %d: %s", seed, first)
		}
		for range 3 {
			if again := strings.Join(explore.TraceOf(t, c, seed), "\n"); again != first {
				t.Fatalf("seed %d: %s\n\nthen %s", seed, first, again)
			}
		}
	}
}

// Three hire at once, their calls in another order for each seed.
func TestHireConcurrently(t *testing.T) {
	explore.Schedules(t, explore.ScheduleCase{Seeds: 100, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		_, err := newStaff(t.Context(), s, "Staff")
		assert.Check(t, err)
		hireAs := func(id string) explore.Actor {
			return func(ctx context.Context, s *storagetest.Service) error {
				staff, err := openStaff(s, "Staff")
				if err != nil {
					return err
				}
				return hire(ctx, staff, "Sales", id)
			}
		}
		return explore.Stage{
			Actors: []explore.Actor{hireAs("1"), hireAs("2"), hireAs("3")},
			Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
				n, err := checkStaff(ctx, s, "Staff")
				if err == nil && n != 3 {
					return fmt.Errorf("%d hired: %w", n, errors.Join(errs...))
				}
				return err
			},
		}
	}})
}
