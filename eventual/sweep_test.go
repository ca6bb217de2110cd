package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fates is what became of messages, by their id: how often each one was handled, and how many entries it has.
type fates struct {
	handled map[string]int
	poison  map[string]int
}

// readFates lets all that is hidden appear, and has a fresh worker without faults handle everything.
func readFates(ctx context.Context, s *storagetest.Service, name string) (fates, error) {
	f := fates{map[string]int{}, map[string]int{}}
	q, err := openQueue(s, name, nil)
	if err != nil {
		return f, err
	}
	count := func(_ context.Context, m *eventual.Message) error {
		f.handled[m.ID]++
		return nil
	}
	for range 3 { // a redelivery that finds the body missing can hide the message again
		s.Wait(2 * time.Minute)
		w, err := eventual.NewWorker(q, map[string]eventual.Handler{"a": count, "b": count}, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 50, RetryDelay: atOnce})
		if err != nil {
			return f, err
		}
		if _, err := w.Drain(ctx); err != nil {
			return f, err
		}
	}
	found, err := q.Poison().Peek(ctx, 32)
	for _, e := range found {
		f.poison[e.ID]++
	}
	if n, lengthErr := q.Length(ctx); err == nil && (lengthErr != nil || n != 0) {
		err = fmt.Errorf("%d messages are left (%w)", n, lengthErr)
	}
	return f, err
}

const sweptQueue = "orders"

func sweptWorld(t testing.TB, s *storagetest.Service) *eventual.Queue {
	q := assert.Must[*eventual.Queue](t)(openQueue(s, sweptQueue, nil))
	assert.Check(t, q.Create(t.Context()))
	return q
}

// TestSweepSend: a message that was accepted is handled, one that surely was not is not, and neither leaves a body behind
// unless its sender does not know.
func TestSweepSend(t *testing.T) {
	for name, body := range map[string]string{"small": "x", "large": large} {
		t.Run(name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: map[string]int{"small": 32, "large": 60}[name], Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				q := sweptWorld(t, s)
				var accepted []string
				refusals, unknown := 0, 0
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						q, err := openQueue(s, sweptQueue, nil)
						if err != nil {
							return err
						}
						id, err := q.Send(ctx, "a", body, nil)
						switch {
						case err == nil:
							accepted = append(accepted, id)
						case errors.Is(err, tables.ErrUnknownOutcome):
							unknown++
						default:
							refusals++
						}
						return err
					},
					Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
						f, err := readFates(ctx, s, sweptQueue)
						if err != nil {
							return err
						}
						for _, id := range accepted {
							if f.handled[id] == 0 {
								return fmt.Errorf("accepted message %s is lost", id)
							}
						}
						died := end.Point.Caller == storagetest.ProcessDies || end.Point.Caller == storagetest.ProcessRestarts
						if n := len(f.handled) - len(accepted); !died && n > unknown {
							return fmt.Errorf("%d messages more than were accepted, %d unknown", n, unknown)
						}
						if left := claimed(t, q); !died && len(left) > unknown {
							return fmt.Errorf("%d bodies are left, %d outcomes unknown", len(left), unknown)
						}
						return nil
					},
				}
			}})
		})
	}
}

// TestSweepHandle: whatever befalls a worker, each message is handled or poisoned, and no body stays without its message.
func TestSweepHandle(t *testing.T) {
	for name, tc := range map[string]struct {
		body  string
		fails bool
		floor int
	}{"small": {"x", false, 124}, "large": {large, false, 184}, "poison": {"x", true, 156}, "poison large": {large, true, 188},
		"poison entry in a blob": {strings.Repeat("x", 48_900), true, 184}} {
		t.Run(name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: tc.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				q := sweptWorld(t, s)
				id := assert.Must[string](t)(q.Send(t.Context(), "a", tc.body, nil))
				handled := 0
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						q, err := openQueue(s, sweptQueue, nil)
						if err != nil {
							return err
						}
						w, err := eventual.NewWorker(q, map[string]eventual.Handler{"a": func(context.Context, *eventual.Message) error {
							if tc.fails {
								return errors.New("no")
							}
							handled++
							return nil
						}}, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 1})
						if err != nil {
							return err
						}
						_, err = w.Drain(ctx)
						return err
					},
					Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
						f, err := readFates(ctx, s, sweptQueue)
						if err != nil {
							return err
						}
						if handled+f.handled[id]+f.poison[id] == 0 {
							return errors.New("the message is lost")
						}
						if _, err := q.Poison().Purge(ctx, nil); err != nil {
							return err
						}
						if f.poison[id] > 0 {
							return nil // a Purge leaves the body to SweepClaims
						}
						if left := claimed(t, q); len(left) > allowedOrphans(end) {
							return fmt.Errorf("bodies are left: %q", left)
						}
						return nil
					},
				}
			}})
		})
	}
}

// allowedOrphans: an entry's body whose putter does not know whether the entry is there, or died, may be one too many.
func allowedOrphans(end storagetest.Ending) int {
	if slices.Contains([]storagetest.Kind{storagetest.PutMessage, storagetest.PutBlob}, end.Point.Call.Kind) {
		return 1
	}
	return 0
}

// TestSweepPoisonQueue: whatever befalls who looks after it, no entry is lost that was not to be deleted.
func TestSweepPoisonQueue(t *testing.T) {
	match := func(e eventual.PoisonMessage) bool { return e.Type == "a" }
	for name, tc := range map[string]struct {
		floor int
		purge bool
	}{"requeue": {152, false}, "purge": {120, true}} {
		t.Run(name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: tc.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				q := sweptWorld(t, s)
				matching := assert.Must[string](t)(q.Send(t.Context(), "a", large, nil))
				other := assert.Must[string](t)(q.Send(t.Context(), "b", "x", nil))
				w := newWorker(t, q, nil, &eventual.WorkerOptions{MaxDequeues: 1})
				assert.Must[int](t)(w.Drain(t.Context()))
				acted := 0 // as the calls say; none where the entry was hidden by a get whose answer was lost
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						q, err := openQueue(s, sweptQueue, nil)
						if err != nil {
							return err
						}
						do := q.Poison().Requeue
						if tc.purge {
							do = q.Poison().Purge
						}
						n, err := do(ctx, match)
						acted += n
						return err
					},
					Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
						f, err := readFates(ctx, s, sweptQueue)
						if err != nil {
							return err
						}
						switch {
						case f.poison[other] != 1 || f.handled[other] != 0:
							return fmt.Errorf("the entry that does not match: %+v", f)
						case !tc.purge && f.handled[matching]+f.poison[matching] == 0:
							return fmt.Errorf("the entry to requeue is lost: %+v", f)
						case !tc.purge && acted > 0 && f.handled[matching] == 0:
							return fmt.Errorf("the entry to requeue is not: %+v", f)
						case tc.purge && (f.handled[matching] != 0 || acted > 0 && f.poison[matching] != 0):
							return fmt.Errorf("the entry to purge: %+v", f)
						case acted > 1 || end.Point.Fault == nil && acted != 1:
							return fmt.Errorf("acted %d times", acted)
						}
						return nil
					},
				}
			}})
		})
	}
}

// TestSweepSteps: however often the message comes, a step that was noted is not done again, the others are, in their order.
func TestSweepSteps(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 208, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		q := sweptWorld(t, s)
		assert.Must[string](t)(q.Send(t.Context(), "steps", nil, nil))
		var did []string
		run := func(ctx context.Context, s *storagetest.Service) error {
			q, err := openQueue(s, sweptQueue, nil)
			if err != nil {
				return err
			}
			step := func(name string) eventual.Step {
				return eventual.Step{Name: name, Do: func(context.Context) error { did = append(did, name); return nil }}
			}
			w, err := eventual.NewWorker(q, map[string]eventual.Handler{"steps": func(ctx context.Context, m *eventual.Message) error {
				return m.Steps(ctx, step("1"), step("2"), step("3"))
			}}, &eventual.WorkerOptions{Concurrency: 1, RetryDelay: atOnce})
			if err != nil {
				return err
			}
			_, err = w.Drain(ctx)
			return err
		}
		return storagetest.World{
			Operate: run,
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				s.Wait(2 * time.Minute)
				return run(ctx, s)
			},
			Check: func(ctx context.Context, _ *storagetest.Service, _ storagetest.Ending) error {
				twice := 0
				for i := 1; i < len(did); i++ {
					if did[i] == did[i-1] {
						twice++
					} else if did[i] < did[i-1] {
						return fmt.Errorf("a step that was noted is done again: %v", did)
					}
				}
				if once := slices.Compact(slices.Clone(did)); !slices.Equal(once, []string{"1", "2", "3"}) || twice > 1 {
					return fmt.Errorf("done: %v", did)
				}
				n, err := q.Length(ctx)
				if err == nil && n != 0 {
					err = fmt.Errorf("%d messages left", n)
				}
				return err
			},
		}
	}})
}
