package access_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// scheduleSettle is that of the concurrent writers in the schedules, whose time is virtual.
const scheduleSettle = 6 * time.Second

// changer is one way to change the policies of a table.
type changer interface {
	Create(ctx context.Context, policy access.Policy) error
	Revoke(ctx context.Context, id string) error
}

func withLock(table *tables.Table) (changer, error) {
	return access.NewPolicies(table, &access.PoliciesOptions{UnsafeSettle: scheduleSettle})
}

// concurrentStage is a world of two who revoke and two who create at once. In the end, what was revoked must be gone, and what was
// created be there.
func concurrentStage(t testing.TB, s *storagetest.Service, open func(*tables.Table) (changer, error)) explore.Stage {
	o := newOwner(t, s)
	for _, id := range []string{"bad", "worse", "stays"} {
		assert.Check(t, policiesOf(t, o.table, time.Millisecond).Create(t.Context(), whole(o, id)))
	}
	with := func(do func(ctx context.Context, c changer) error) explore.Actor {
		return func(ctx context.Context, s *storagetest.Service) error {
			account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
			if err != nil {
				return err
			}
			c, err := open(account.Table(o.table.Name()))
			if err != nil {
				return err
			}
			return do(ctx, c)
		}
	}
	revoke := func(id string) explore.Actor {
		return with(func(ctx context.Context, c changer) error { return c.Revoke(ctx, id) })
	}
	create := func(id string) explore.Actor {
		return with(func(ctx context.Context, c changer) error { return c.Create(ctx, whole(o, id)) })
	}
	return explore.Stage{
		Actors: []explore.Actor{revoke("bad"), create("new"), revoke("worse"), create("newer")},
		Check: func(_ context.Context, _ *storagetest.Service, errs []error) error {
			for i, err := range errs {
				if err != nil {
					return fmt.Errorf("actor %d: %w", i, err)
				}
			}
			ids := idsOf(t, policiesOf(t, o.table, scheduleSettle))
			slices.Sort(ids)
			if !slices.Equal(ids, []string{"new", "newer", "stays"}) {
				return fmt.Errorf("in the end %v", ids)
			}
			return nil
		},
	}
}

func seeds(few, many int) int {
	switch {
	case race.Enabled:
		return max(1, few/4)
	case testing.Short():
		return few
	}
	return many
}

func schedulePauses() []time.Duration {
	return []time.Duration{scheduleSettle / 4, scheduleSettle / 2, scheduleSettle, 8 * scheduleSettle}
}

// TestSchedulesOfPolicyChanges: in whatever order their requests come, and however long somebody stands still.
func TestSchedulesOfPolicyChanges(t *testing.T) {
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds(60, 400), Pauses: schedulePauses(),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage { return concurrentStage(t, s, withLock) }})
}

// TestTheDeadAreWaitedFor: a process that dies in its turn holds up the others for a while, and then no longer; another process
// that is asked for the same revocation makes sure of it.
func TestTheDeadAreWaitedFor(t *testing.T) {
	for at := range 4 {
		t.Run(fmt.Sprintf("after call %d", at), func(t *testing.T) {
			explore.Schedules(t, explore.ScheduleCase{Seeds: seeds(10, 60), Pauses: schedulePauses(),
				Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
					stage := concurrentStage(t, s, withLock)
					revoke := stage.Actors[0]
					stage.Actors[0] = func(ctx context.Context, s *storagetest.Service) error {
						dying, faults := s.Faulty(storagetest.OnIndex(at, storagetest.DiesAfter))
						died, cancel := faults.Context(ctx)
						err := revoke(died, dying)
						cancel()
						if err == nil && !faults.Dead() {
							return errors.New("nobody died")
						}
						if err := revoke(ctx, s); !errors.Is(err, tables.ErrNotFound) {
							return err
						}
						return nil
					}
					return stage
				}})
		})
	}
}

// TestRevokeMeetsEveryFault among concurrent writers: whoever gets an error and asks again has it revoked, and nobody else's change is lost.
func TestRevokeMeetsEveryFault(t *testing.T) {
	runs := 0
	for _, fault := range append(storagetest.FaultsOf(storagetest.SetTableACL), storagetest.CutSilently(0)) {
		for at := range 4 {
			t.Run(fmt.Sprintf("%d-%v", at, fault), func(t *testing.T) {
				explore.Schedules(t, explore.ScheduleCase{Seeds: seeds(2, 10), Pauses: schedulePauses(),
					Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
						runs++
						stage := concurrentStage(t, s, withLock)
						revoke := stage.Actors[0]
						stage.Actors[0] = func(ctx context.Context, s *storagetest.Service) error {
							faulty, _ := s.WithRetries(int32(at % 2)).Faulty(storagetest.OnIndex(at, storagetest.Always(fault)))
							err := revoke(ctx, faulty)
							for range 5 {
								if err == nil || errors.Is(err, tables.ErrNotFound) {
									return nil
								}
								err = revoke(ctx, faulty)
							}
							return err
						}
						return stage
					}})
			})
		}
	}
	if runs < 30 {
		t.Errorf("%d runs", runs)
	}
}

// TestSchedulesFindMissingLock: the schedules can fail. Of programs that read, write, and look whether it is as they wrote it, one
// undoes the other.
func TestSchedulesFindMissingLock(t *testing.T) {
	var found error
	tried := 0
	nothing := explore.Stage{Actors: []explore.Actor{func(context.Context, *storagetest.Service) error { return nil }},
		Check: func(context.Context, *storagetest.Service, []error) error { return nil }}
	explore.Schedules(t, explore.ScheduleCase{Seeds: 60, Pauses: schedulePauses(),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			if found != nil {
				return nothing
			}
			tried++
			stage := concurrentStage(t, s, func(table *tables.Table) (changer, error) { return byHand{table.Client()}, nil })
			check := stage.Check
			stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
				found = check(ctx, s, errs)
				return nil
			}
			return stage
		}})
	if found == nil {
		t.Fatalf("%d schedules, and nothing was lost", tried)
	}
	t.Logf("found by seed %d: %v", tried-1, found)
}

// byHand changes the list as the SDK has it, and looks afterwards.
type byHand struct{ client *aztables.Client }

func (b byHand) Create(ctx context.Context, p access.Policy) error {
	permission := p.Permissions.String()
	return b.change(ctx, p.ID, func(list []*aztables.SignedIdentifier) []*aztables.SignedIdentifier {
		return append(list, &aztables.SignedIdentifier{ID: &p.ID, AccessPolicy: &aztables.AccessPolicy{Permission: &permission, Start: &p.Start, Expiry: &p.Expiry}})
	}, true)
}

func (b byHand) Revoke(ctx context.Context, id string) error {
	return b.change(ctx, id, func(list []*aztables.SignedIdentifier) []*aztables.SignedIdentifier {
		return slices.DeleteFunc(list, func(s *aztables.SignedIdentifier) bool { return *s.ID == id })
	}, false)
}

func (b byHand) change(ctx context.Context, id string, apply func([]*aztables.SignedIdentifier) []*aztables.SignedIdentifier, want bool) error {
	for {
		before, err := b.client.GetAccessPolicy(ctx, nil)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(before.SignedIdentifiers, func(s *aztables.SignedIdentifier) bool { return *s.ID == id }) == want {
			return nil
		}
		if _, err := b.client.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: apply(before.SignedIdentifiers)}); err != nil {
			return err
		}
	}
}
