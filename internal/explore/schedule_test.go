package explore

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/toy"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// unlockedStage is a stage on which two writers each write both rows, without any agreement.
func unlockedStage(_ testing.TB, _ *storagetest.Service) Stage {
	writer := func(name string) Actor {
		return func(ctx context.Context, s *storagetest.Service) error {
			if err := put(ctx, s, "a", name); err != nil {
				return err
			}
			return put(ctx, s, "b", name)
		}
	}
	return Stage{
		Actors: []Actor{writer("one"), writer("two")},
		Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
			a, _ := get(ctx, s, "a")
			if b, _ := get(ctx, s, "b"); a != b || errs[0] != nil || errs[1] != nil {
				return fmt.Errorf("a is %q, b is %q", a, b)
			}
			return nil
		},
	}
}

// traced runs one seed, as a subtest that fails if the schedule does, and returns its steps.
func traced(t *testing.T, c ScheduleCase, seed uint64) (trace []string) {
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		c.setDefaults()
		c.run(t, seed, func(steps []string) { trace = steps })
	})
	return trace
}

// Every order of two times two calls comes, and each seed always has the same one.
func TestSchedulesAreSeeded(t *testing.T) {
	stage := func(t testing.TB, s *storagetest.Service) Stage {
		st := unlockedStage(t, s)
		st.Check = func(context.Context, *storagetest.Service, []error) error { return nil }
		return st
	}
	c := ScheduleCase{Stage: stage, Service: onToy}
	orders := map[string]bool{}
	for seed := range uint64(60) {
		first := traced(t, c, seed)
		if second := traced(t, c, seed); !slices.Equal(first, second) {
			t.Fatalf("seed %d: %q, then %q", seed, first, second)
		}
		assert.Len(assert.Fatal(t), first, 4, "seed %d", seed)
		orders[strings.Join(first, "; ")] = true
	}
	if len(orders) != 6 {
		t.Errorf("%d orders, want the 6 that there are: %v", len(orders), orders)
	}
}

// What a seed decides must not depend on how goroutines are run: actors that make calls in parallel, wait for random
// times, and fail and are repeated by the SDK.
func TestSchedulesAreDeterministic(t *testing.T) {
	stage := func(_ testing.TB, _ *storagetest.Service) Stage {
		busy := func(name string) Actor {
			return func(ctx context.Context, s *storagetest.Service) error {
				s, _ = s.Faulty(storagetest.Randomly(0.3, 7, storagetest.LostAnswer))
				var all sync.WaitGroup
				for i := range 4 {
					all.Go(func() {
						for j := range 3 {
							put(ctx, s, fmt.Sprintf("%s%d%d", name, i, j), name)
							time.Sleep(s.WithRetries(1).ClientOptions.Retry.MaxRetryDelay)
						}
					})
				}
				all.Wait()
				return nil
			}
		}
		return Stage{
			Actors: []Actor{busy("x"), busy("y"), busy("z")},
			Check:  func(context.Context, *storagetest.Service, []error) error { return nil },
		}
	}
	c := ScheduleCase{Stage: stage, Service: onToy, Pauses: []time.Duration{time.Second, time.Minute}}
	for seed := range uint64(10) {
		first := traced(t, c, seed)
		for range 5 {
			if again := traced(t, c, seed); !slices.Equal(first, again) {
				t.Fatalf("seed %d: %s\nthen %s", seed, strings.Join(first, "\n"), strings.Join(again, "\n"))
			}
		}
	}
}

// The scheduler's service is held back for its actors, and for nobody else.
func TestSchedulesLetOneCallGoAtATime(t *testing.T) {
	var s0 *toy.Toy
	stage := func(t testing.TB, s *storagetest.Service) Stage {
		st := unlockedStage(t, s)
		st.Check = func(context.Context, *storagetest.Service, []error) error { return nil }
		assert.Check(t, put(t.Context(), s, "before", "the actors"))
		return st
	}
	service := func(testing.TB) *storagetest.Service { s, service := newToy(); s0 = service; return s }
	trace := traced(t, ScheduleCase{Stage: stage, Service: service}, 3)
	if len(trace) != 4 || len(s0.Log()) != 5 {
		t.Fatalf("%q; the service saw %q", trace, s0.Log())
	}
	for i, step := range trace {
		// The row that a step names is the one that the service saw next.
		if !strings.Contains(step, "ReplaceEntity Rows") || !strings.HasPrefix(s0.Log()[i+1], "PUT /Rows(") {
			t.Errorf("step %d: %q, and the service saw %q", i, step, s0.Log()[i+1])
		}
	}
}

// A worker ends when the actors have; time passes when all wait for it.
func TestSchedulesEndWorkersAndPassTime(t *testing.T) {
	Schedules(t, ScheduleCase{Name: "a worker that polls", Seeds: 20, Service: onToy, Pauses: []time.Duration{time.Hour},
		Stage: func(t testing.TB, _ *storagetest.Service) Stage {
			begin := time.Now()
			return Stage{
				Actors: []Actor{func(ctx context.Context, s *storagetest.Service) error {
					if _, err := toy.Call(ctx, &s.ClientOptions, http.MethodPut, toy.Queue+"/1", "work"); err != nil {
						return err
					}
					for {
						if got, _ := get(ctx, s, "done"); got == "work" {
							return nil
						}
						time.Sleep(time.Minute)
					}
				}},
				Workers: []Actor{func(ctx context.Context, s *storagetest.Service) error {
					for ctx.Err() == nil {
						if got, err := toy.Call(ctx, &s.ClientOptions, http.MethodGet, toy.Queue+"/1", ""); err == nil {
							put(ctx, s, "done", got)
						}
						time.Sleep(30 * time.Second)
					}
					return ctx.Err()
				}},
				Check: func(_ context.Context, _ *storagetest.Service, errs []error) error {
					if time.Since(begin) == 0 {
						t.Log("done at once")
					}
					return errs[0]
				},
			}
		}})
}

// A call that waits for its turn is over when its context is.
func TestSchedulesHeldCallsObeyTheirContext(t *testing.T) {
	Schedules(t, ScheduleCase{Seeds: 10, Service: onToy, Pauses: []time.Duration{time.Hour},
		Stage: func(_ testing.TB, _ *storagetest.Service) Stage {
			return Stage{
				Actors: []Actor{func(ctx context.Context, s *storagetest.Service) error {
					for range 40 {
						ctx, cancel := context.WithTimeout(ctx, time.Minute)
						err := put(ctx, s, "a", "x")
						cancel()
						if err != nil {
							return err
						}
					}
					return nil
				}},
				Check: func(_ context.Context, _ *storagetest.Service, errs []error) error {
					if errs[0] != context.DeadlineExceeded {
						return fmt.Errorf("40 calls, none of them held for an hour: %v", errs[0])
					}
					return nil
				},
			}
		}})
}

// unlockedVariable tells this test binary, run again by the test, to let the concurrent writers fail.
const unlockedVariable = "STORAGETEST_UNLOCKED"

func TestSchedulesFindUnlockedWriters(t *testing.T) {
	if os.Getenv(unlockedVariable) != "" {
		Schedules(t, ScheduleCase{Name: "concurrent writers", Seeds: 20, Stage: unlockedStage, Service: onToy})
		return
	}
	self, err := os.Executable()
	assert.Check(t, err)
	again := func(run string) string {
		cmd := exec.CommandContext(t.Context(), self, "-test.run="+run, "-test.v")
		cmd.Env = append(os.Environ(), unlockedVariable+"=1")
		out, err := cmd.CombinedOutput()
		assert.Error(assert.Fatal(t), err, "two writers without an agreement were not caught:\n%s", out)
		return string(out)
	}
	out := again("^TestSchedulesFindUnlockedWriters$")
	failing := regexp.MustCompile(`alone: go test -run '(.*)'`).FindStringSubmatch(out)
	if failing == nil || !strings.Contains(out, "schedules concurrent writers: 20 seeds, 80 steps,") || !strings.Contains(out, "step 3: actor") {
		t.Fatalf("the log does not say what failed:\n%s", out)
	}
	// The seed that failed fails alone, in the same way.
	steps := func(out string) []string { return regexp.MustCompile(`step \d: .*`).FindAllString(out, 4) }
	alone := again(failing[1])
	if strings.Count(alone, "--- FAIL: TestSchedulesFindUnlockedWriters/") != 1 || !slices.Equal(steps(out), steps(alone)) {
		t.Errorf("at first %q\nalone %q", steps(out), steps(alone))
	}
}

func TestSchedulesThatDoNotEnd(t *testing.T) {
	if os.Getenv(unlockedVariable) != "" {
		for _, actor := range []Actor{
			func(ctx context.Context, s *storagetest.Service) error {
				for ctx.Err() == nil {
					put(ctx, s, "a", "for ever")
				}
				return nil
			},
			func(ctx context.Context, s *storagetest.Service) error {
				<-ctx.Done()
				return put(ctx, s, "a", "too late")
			},
		} {
			Schedules(t, ScheduleCase{Seeds: 1, Steps: 50, Service: onToy, Stage: func(testing.TB, *storagetest.Service) Stage {
				return Stage{Actors: []Actor{actor}, Check: func(context.Context, *storagetest.Service, []error) error { return nil }}
			}})
		}
		return
	}
	self, err := os.Executable()
	assert.Check(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSchedulesThatDoNotEnd$")
	cmd.Env = append(os.Environ(), unlockedVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not done after 50 steps") || !strings.Contains(string(out), "no actor has made a call for 33m20s") {
		t.Errorf("%v: %s", err, out)
	}
}

// onToy has the worlds on toys.
func onToy(testing.TB) *storagetest.Service { s, _ := newToy(); return s }
