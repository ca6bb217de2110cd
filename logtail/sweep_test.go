package logtail_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweep breaks Append, with and without an index, and a follower, at every storage call. A caller who repeats an Append
// does so with the entry that was stamped, also in another process.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		name, category string
		floor          int
	}{{"Append", "", 28}, {"AppendIndexed", "Travel", 56}} {
		t.Run(c.name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return appended(t, s, c.category)
			}})
		})
	}
	t.Run("Follow", func(t *testing.T) {
		storagetest.Sweep(t, storagetest.SweepCase{Floor: 96, Every: harness.SweepEvery(), World: followed})
	})
}

// appended is a world in which one entry is appended.
func appended(t testing.TB, s *storagetest.Service, category string) storagetest.World {
	clock := &clock{day}
	table := openLog(t, s, clock.now).Table().Name()
	entry := claim{Entry: logtail.Entry{LoggedAt: day, LogID: "one"}, Employee: "223", Category: category, Amount: 1} // as saved before
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			again := entry
			return openTable(t, s, table, schemaAt(clock.now)).Append(ctx, &again)
		},
		Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			l := openTable(t, s, table, schemaAt(clock.now))
			there, err := l.Latest(ctx, "223", 10)
			if err != nil {
				return err
			}
			surely := end.Err != nil && !errors.Is(end.Err, tables.ErrUnknownOutcome) && !errors.Is(end.Err, storagetest.ErrDied) && end.Attempts == 1
			switch {
			case len(there) > 1:
				return fmt.Errorf("%d entries", len(there))
			case len(there) == 0 && end.Succeeded():
				return errors.New("it is lost")
			case len(there) == 1 && surely:
				return errors.New("it is there, although it was refused")
			case end.Point.Caller == storagetest.CallerRetries && end.Err != nil:
				return fmt.Errorf("five attempts, and still %w", end.Err)
			}
			rows := 0
			for _, err := range l.Table().Entities().Query().Partition("223").All(ctx) {
				if rows++; err != nil {
					return err
				}
			}
			if want := len(there); category != "" && rows != 2*want || category == "" && rows != want {
				return fmt.Errorf("%d rows of %d entries", rows, want)
			}
			return nil
		},
	}
}

// followed is a world in which a backlog of several pages is followed, each entry counted together with the cursor.
func followed(t testing.TB, s *storagetest.Service) storagetest.World {
	const n = 25
	clock := &clock{day.Add(time.Hour)}
	l := openLog(t, s, clock.now)
	fill(t, l, "223", n)
	table := l.Table().Name()
	cursor, counts := "", map[int]int{}
	operate := func(ctx context.Context, s *storagetest.Service) error {
		l := openTable(t, s, table, schemaAt(clock.now))
		logtail.SetPage(l, 10)
		f, err := l.Follower("223", cursor, nil)
		if err != nil {
			return err
		}
		for v, err := range f.Poll(ctx) {
			if err != nil {
				return err
			}
			counts[v.Amount]++
			cursor = f.Cursor()
		}
		return nil
	}
	return storagetest.World{
		Operate: operate,
		Recover: func(ctx context.Context, s *storagetest.Service) error { return operate(ctx, s) },
		Check: func(context.Context, *storagetest.Service, storagetest.Ending) error {
			for i := 1; i <= n; i++ {
				if counts[i] != 1 {
					return fmt.Errorf("entry %d came %d times", i, counts[i])
				}
			}
			return nil
		},
	}
}
