package scatter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inserts is a process that inserts numbers, one after another, and stops at the first failure that is not a concurrent writer's success.
func inserts(table string, schema scatter.Schema[event], numbers ...int64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		p, err := open(s, table, schema, nil)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if err := p.Insert(ctx, &event{Number: n}); err != nil && !errors.Is(err, tables.ErrExists) {
				return err
			}
		}
		return nil
	}
}

func resizes(table string, schema scatter.Schema[event], ns ...int) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		p, err := open(s, table, schema, nil)
		if err != nil {
			return err
		}
		for _, n := range ns {
			if _, err := p.Resize(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestWalk goes through every order of requests, and of one death, of two programs that insert the same numbers at both
// sides of the horizon while a third changes n.
func TestWalk(t *testing.T) {
	const table = "Events"
	schema := numbered(2, 1)
	cases := map[string]explore.InterleavingCase{
		"same numbers":   {Crashes: 1, Stage: walked(table, schema, 2, inserts(table, schema, 1, 2), inserts(table, schema, 2), resizes(table, schema, 3))},
		"two changes":    {Stage: walked(table, schema, 2, inserts(table, schema, 2), inserts(table, schema, 3, 5), resizes(table, schema, 3, 4))},
		"an empty table": {Crashes: 1, Stage: walked(table, schema, 0, inserts(table, schema, 1), inserts(table, schema, 1), resizes(table, schema, 3))},
	}
	if race.Enabled {
		delete(cases, "two changes")
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if harness.Shortened() {
				c.Crashes = 0
			}
			w := explore.Interleavings(t, c)
			w.MustConverge(t)
			t.Logf("%d states, %d ends, errors %v", w.States, w.Ends, w.Returned)
			if w.Returned[""] == 0 || w.Ends < 2 {
				t.Errorf("%d ends, %v: the walk shows nothing", w.Ends, w.Returned)
			}
		})
	}
}

// walked is a world in which the numbers below before are there.
func walked(table string, schema scatter.Schema[event], before int64, actors ...explore.Actor) func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	return func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		assert.Check(t, assert.Must[*tables.Account](t)(account(s)).Table(table).Create(t.Context()))
		p := assert.Must[spread](t)(open(s, table, schema, nil))
		for n := range before {
			assert.Check(t, p.Insert(t.Context(), &event{Number: n, Tag: "before"}))
		}
		return explore.InterleavingStage{Processes: actors, Check: func(ctx context.Context, s *storagetest.Service) error {
			rows, err := placed(ctx, s, table, schema)
			if int64(len(rows)) < before {
				err = errors.Join(err, fmt.Errorf("of %d rows that were there before, not all are in %v", before, rows))
			}
			return err
		}}
	}
}
