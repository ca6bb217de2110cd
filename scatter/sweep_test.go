package scatter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// swept is an operation on a table that has the numbers 5 and 10 to 12, inserted under 3 partitions and 4, and a horizon at 20.
// states are what may be there when it was not applied, and when it was.
type swept struct {
	floor   int
	empty   bool // nothing was there before
	operate func(ctx context.Context, p spread) error
	state   func(ctx context.Context, p spread, rows []string) (string, error)
	without string
	with    string
}

func rowsState(_ context.Context, _ spread, rows []string) (string, error) {
	var numbers []string
	for _, row := range rows {
		numbers = append(numbers, strings.TrimLeft(row[len("event_"):len("event_")+numberDigits], "0"))
	}
	return strings.Join(numbers, " "), nil
}

func epochsState(ctx context.Context, p spread, _ []string) (string, error) {
	epochs, err := p.Epochs(ctx)
	return fmt.Sprint(epochs), err
}

func (c swept) world(t testing.TB, s *storagetest.Service) storagetest.World {
	table, schema := newTable(t, s), numbered(10, 3)
	before := assert.Must[spread](t)(open(s, table, schema, nil))
	if !c.empty {
		assert.Check(t, before.Insert(t.Context(), &event{Number: 5, Text: "old"}))
		assert.Must[scatter.Epoch](t)(before.Resize(t.Context(), 4))
		for n := int64(10); n < 13; n++ {
			assert.Check(t, before.Insert(t.Context(), &event{Number: n}))
		}
	}
	var mu sync.Mutex
	var said []error
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			p, err := open(s, table, schema, nil)
			if err == nil {
				err = c.operate(ctx, p)
			}
			mu.Lock()
			defer mu.Unlock()
			said = append(said, err)
			return err
		},
		Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
			rows, err := placed(ctx, s, table, schema)
			if err != nil {
				return err
			}
			// Whoever comes now gets on, whatever was left behind.
			next := &event{Number: 33, Tag: "next"}
			p, err := open(s, table, schema, nil)
			if err != nil {
				return err
			}
			got, err := c.state(ctx, p, rows)
			if err != nil {
				return err
			}
			applied := slices.Contains(said, nil)
			unsure := slices.ContainsFunc(said, harness.OutcomeUnknown)
			if got != c.with && got != c.without || applied && got != c.with || !applied && !unsure && got != c.without && !slices.ContainsFunc(said, isExists) {
				return fmt.Errorf("there is %q after %q", got, said)
			}
			if err := p.Insert(ctx, next); err != nil {
				return err
			}
			_, err = placed(ctx, s, table, schema)
			return err
		},
	}
}

func isExists(err error) bool {
	return errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrNotFound)
}

// TestSweep breaks every operation at every storage call, in every way.
func TestSweep(t *testing.T) {
	const epochs = "[{0001-01-01 00:00:00 +0000 UTC 0 3} {0001-01-01 00:00:00 +0000 UTC 10 4}"
	for name, c := range map[string]swept{
		"FirstInsert": {floor: 88, empty: true, operate: func(ctx context.Context, p spread) error { return p.Insert(ctx, &event{Number: 7}) },
			state: rowsState, without: "", with: "7"},
		"Insert": {floor: 60, operate: func(ctx context.Context, p spread) error { return p.Insert(ctx, &event{Number: 13}) },
			state: rowsState, without: "5 10 11 12", with: "5 10 11 12 13"},
		"InsertBehindTheHorizon": {floor: 88, operate: func(ctx context.Context, p spread) error { return p.Insert(ctx, &event{Number: 22}) },
			state: rowsState, without: "5 10 11 12", with: "5 10 11 12 22"},
		"Resize": {floor: 60, operate: func(ctx context.Context, p spread) error { _, err := p.Resize(ctx, 9); return err },
			state: epochsState, without: epochs + "]", with: epochs + " {0001-01-01 00:00:00 +0000 UTC 20 9}]"},
		"FirstResize": {floor: 60, empty: true, operate: func(ctx context.Context, p spread) error { _, err := p.Resize(ctx, 9); return err },
			state: epochsState, without: "[]", with: "[{0001-01-01 00:00:00 +0000 UTC 0 9}]"},
		"ResizeAndInsert": {floor: 148, operate: func(ctx context.Context, p spread) error {
			_, err := p.Resize(ctx, 9)
			if err == nil {
				err = p.Insert(ctx, &event{Number: 22})
			}
			return err
		}, state: rowsState, without: "5 10 11 12", with: "5 10 11 12 22"},
		"Update": {floor: 92, operate: func(ctx context.Context, p spread) error {
			_, err := p.Update(ctx, rowOf(5, ""), func(e *event) error { e.Text = "new"; return nil })
			return err
		}, state: textState, without: "old", with: "new"},
		"Upsert": {floor: 92, operate: func(ctx context.Context, p spread) error { return p.Upsert(ctx, &event{Number: 5, Text: "new"}) },
			state: textState, without: "old", with: "new"},
		"Delete": {floor: 92, operate: func(ctx context.Context, p spread) error { return p.DeleteUnconditional(ctx, rowOf(5, "")) },
			state: rowsState, without: "5 10 11 12", with: "10 11 12"},
	} {
		sweep := storagetest.SweepCase{World: c.world, Floor: c.floor, Every: harness.SweepEvery()}
		if harness.Shortened() {
			sweep.Callers, sweep.Floor = []storagetest.Caller{storagetest.ProcessRestarts, storagetest.CallerRetries}, 0
		}
		if race.Enabled {
			sweep.Callers = []storagetest.Caller{storagetest.CallerRetries}
		}
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, sweep) })
	}
}

func textState(ctx context.Context, p spread, _ []string) (string, error) {
	e, err := p.Get(ctx, rowOf(5, ""))
	if err != nil {
		return "", err
	}
	return e.Text, nil
}
