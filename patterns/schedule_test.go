package patterns_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestScheduleWriters: three writers that insert, replace, merge, update, upsert and delete the same members, whose calls
// fail and whose processes die; what each is told fits into one order, and copies equal their entities. In the second
// half one of the writers is a program that does not have the indexes yet.
func TestScheduleWriters(t *testing.T) {
	for _, rollout := range []bool{false, true} {
		var applied, refused, unknown int
		explore.Schedules(t, explore.ScheduleCase{Name: fmt.Sprintf("concurrent writers, roll-out %v", rollout), Seeds: harness.Seeds(500),
			Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
				h := newHistory(t, s, harness.ScheduleSeed())
				h.rollout = rollout
				stage := explore.Stage{Check: func(ctx context.Context, _ *storagetest.Service, errs []error) error {
					err := errors.Join(append(errs, h.finish(ctx))...)
					if err != nil {
						t.Log(h.text())
					}
					applied, refused, unknown = applied+h.applied, refused+h.refused, unknown+h.unknown
					return err
				}}
				for id := range historyActors {
					stage.Actors = append(stage.Actors, func(ctx context.Context, s *storagetest.Service) error {
						a := h.actor(id, s)
						a.restart()
						for h.begin() {
							a.next(ctx)
							if a.rng.IntN(6) == 0 {
								h.deliver(a.rng)
							}
						}
						return nil
					})
				}
				if !rollout {
					stage.Actors = append(stage.Actors, verifier)
				}
				return stage
			}})
		t.Logf("%d writes applied, %d refused, %d unknown", applied, refused, unknown)
	}
}

// verifier is a Verify beside writers whose copies are all in the entities' own transactions: whatever it reports is a false alarm.
func verifier(ctx context.Context, s *storagetest.Service) error {
	repo, err := openMembers(s, "Members")
	if err != nil {
		return err
	}
	return harness.Clean(ctx, repo.Verify, &patterns.JobOptions{Lag: time.Second, Concurrency: 1})
}

// TestScheduleCounters: every update that was told to be applied counts once, and one of unknown outcome at most once.
func TestScheduleCounters(t *testing.T) {
	const keys, updates = 2, 8
	log := &harness.Log{}
	open := func(s *storagetest.Service) (*members, error) { return openMembers(s, "Members") }
	jobs := harness.RepositoryJobs(func(m *members) *patterns.Repository[member] { return m.Repository }, time.Second)
	explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(500), Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
		rate := []float64{0, 0.1, 0.3}[rng.IntN(3)]
		repo := assert.Must[*members](t)(openMembers(s, "Members"))
		if err := repo.Table().Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id := range keys {
			if err := repo.Insert(t.Context(), &member{Team: "red", ID: id, Email: fmt.Sprint("m", id)}); err != nil {
				t.Fatal(err)
			}
		}
		said := [keys]*outcomes{{}, {}}
		writer := func() explore.Actor {
			seed := rng.Uint64()
			return func(ctx context.Context, s *storagetest.Service) error {
				return countUp(ctx, s, seed, rate, updates, said[:])
			}
		}
		keeper := harness.Keeper(&harness.Trouble{Faults: rate, Deaths: rate / 10, Visibility: time.Minute, Network: s.ClientOptions.Transport, Log: log}, rng.Uint64(), 2, open, jobs...)
		return explore.Stage{Actors: []explore.Actor{writer(), writer(), writer(), keeper},
			Check: func(ctx context.Context, _ *storagetest.Service, errs []error) error {
				rows, err := readStored(ctx, repo.Table(), "")
				if err != nil {
					return err
				}
				found, err := rows.members()
				if err != nil {
					return err
				}
				for id := range keys {
					least, most := said[id].bounds()
					if n := found[memberKey("red", id)].Count; n < int64(least) || n > int64(most) {
						return fmt.Errorf("member %d counts %d, and between %d and %d updates were applied: %q", id, n, least, most, said[id].errs)
					}
				}
				return errors.Join(errs...)
			}}
	}})
	t.Log(log)
	log.MustHave(t, "runs of Verify", "runs of Repair", "runs of Rebuild")
}

// countUp is a writer that updates the members in turn, and moves their copies. A process that dies has a successor.
func countUp(ctx context.Context, s *storagetest.Service, seed uint64, rate float64, updates int, said []*outcomes) error {
	for process := uint64(0); updates > 0; process++ {
		rng := mathrand.New(mathrand.NewPCG(seed, process))
		faulty, calls := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
			switch n := rng.Float64(); {
			case n < rate/10:
				return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
			case n < rate:
				faults := storagetest.FaultsOf(call.Kind)
				return faults[rng.IntN(len(faults))]
			}
			return nil
		}))
		repo, err := openMembers(faulty, "Members")
		if err != nil {
			return err
		}
		for ; updates > 0 && !calls.Dead(); updates-- {
			id := updates % len(said)
			_, err := repo.Update(ctx, memberKey("red", id), func(m *member) error {
				m.Count++
				m.Email = fmt.Sprintf("m%d.%d", id, m.Count%3)
				m.Tags = []string{fmt.Sprint(m.Count % 2)}
				return nil
			})
			said[id].add(err)
		}
	}
	return nil
}
