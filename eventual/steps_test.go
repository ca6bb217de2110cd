package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestStepsGoOn at the first that is not done, at the next delivery and after a time on the poison queue.
func TestStepsGoOn(t *testing.T) {
	for name, body := range map[string]string{"small": "x", "large": large} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, storagetest.Open(t), nil)
			assert.Must[string](t)(q.Send(t.Context(), "steps", body, nil))
			var did []string
			failures := 0
			handlers := map[string]eventual.Handler{"steps": func(ctx context.Context, m *eventual.Message) error {
				var got string
				if err := m.Decode(&got); err != nil || got != body {
					t.Errorf("%d bytes arrive, %v", len(got), err)
				}
				step := func(name string) eventual.Step {
					return eventual.Step{Name: name, Do: func(context.Context) error {
						did = append(did, name)
						if name == "second" && failures < 6 {
							failures++
							return errors.New("no")
						}
						return nil
					}}
				}
				return m.Steps(ctx, step("first"), step("second"), step("third"))
			}}
			if stats := drain(t, q, handlers); stats.Poisoned != 1 {
				t.Fatalf("%+v", stats)
			}
			if e := entries(t, q); len(e) != 1 || e[0].Reason != `step "second": no` {
				t.Errorf("%+v", e)
			}
			assert.Must[int](t)(q.Poison().Requeue(t.Context(), nil))
			if stats := drain(t, q, handlers); stats.Handled != 1 {
				t.Errorf("%+v", stats)
			}
			if want := append([]string{"first"}, append(slices.Repeat([]string{"second"}, 7), "third")...); !slices.Equal(did, want) {
				t.Errorf("did %v", did)
			}
			wantClaims(t, q, 0)
		})
	}
}

// TestStepsThatFillTheMessage: a body that just fits moves into a blob when the names of steps need its room.
func TestStepsThatFillTheMessage(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	body := strings.Repeat("x", 49_000)
	assert.Must[string](t)(q.Send(t.Context(), "steps", body, nil))
	wantClaims(t, q, 0)
	did := map[string]int{}
	stats := drain(t, q, map[string]eventual.Handler{"steps": func(ctx context.Context, m *eventual.Message) error {
		var got string
		if err := m.Decode(&got); err != nil || got != body {
			t.Errorf("%d bytes arrive, %v", len(got), err)
		}
		var steps []eventual.Step
		for i := range 10 {
			name := fmt.Sprintf("a step with a longer name %d", i)
			steps = append(steps, eventual.Step{Name: name, Do: func(context.Context) error {
				did[name]++
				if i == 5 && did[name] == 1 {
					return errors.New("no")
				}
				return nil
			}})
		}
		err := m.Steps(ctx, steps...)
		wantClaims(t, q, 1)
		return err
	}})
	if stats.Handled != 1 || stats.Failed != 1 || len(did) != 10 || did["a step with a longer name 4"] != 1 || did["a step with a longer name 5"] != 2 {
		t.Errorf("%+v, %v", stats, did)
	}
	wantClaims(t, q, 0)
}

// TestRefusedSteps: names tell steps apart, so each has one of its own; nothing is done otherwise.
func TestRefusedSteps(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	assert.Must[string](t)(q.Send(t.Context(), "steps", nil, nil))
	do := func(context.Context) error { t.Error("done"); return nil }
	stats := drain(t, q, map[string]eventual.Handler{"steps": func(ctx context.Context, m *eventual.Message) error {
		for _, steps := range [][]eventual.Step{{{Name: "", Do: do}}, {{Name: "a", Do: do}, {Name: "a", Do: do}}, {{Name: "a", Do: do}, {Name: "b"}}} {
			harness.WantKind(t, m.Steps(ctx, steps...), tables.ErrWiring)
		}
		return nil
	}})
	assert.Equal(t, stats.Handled, 1, "%+v", stats)
}
