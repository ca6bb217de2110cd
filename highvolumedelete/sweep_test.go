package highvolumedelete_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSweepWriter breaks the first Insert of a period, of the present one and of one that is over, at every storage call.
func TestSweepWriter(t *testing.T) {
	for name, at := range map[string]time.Time{"Today": noon, "Late": noon.AddDate(0, 0, -1)} {
		t.Run(name, func(t *testing.T) {
			floor := map[string]int{"Today": 176, "Late": 208}[name]
			storagetest.Sweep(t, storagetest.SweepCase{Floor: floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return written(t, s, at)
			}})
		})
	}
}

// written is a world in which one login is inserted, and a caller repeats it as it is.
func written(t testing.TB, s *storagetest.Service, at time.Time) storagetest.World {
	schema := schemaOf("Logins", func() time.Time { return noon })
	insert(t, mustStart(t, s, schema), "otto", noon.AddDate(0, 0, -2)) // another day is there
	surely := false                                                    // refused, and never left open
	open := false
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			logins, err := start(s, schema)
			if err != nil {
				return err
			}
			err = logins.Insert(ctx, &login{User: "june", At: at, Address: "::1"})
			surely = surelyNot(err) && !errors.Is(err, tables.ErrExists)
			open = open || !surely
			return err
		},
		Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			logins, err := start(s, schema)
			if err != nil {
				return err
			}
			there, err := times(ctx, logins.Between(ctx, time.Time{}, time.Time{}, &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}}))
			switch {
			case err != nil:
				return err
			case len(there) > 1:
				return fmt.Errorf("there are %v", there)
			case len(there) == 0 && end.Succeeded():
				return errors.New("it is lost")
			case len(there) == 1 && surely && !open:
				return errors.New("it is there, although it was refused")
			case end.Point.Caller == storagetest.CallerRetries && end.Err != nil && !errors.Is(end.Err, tables.ErrExists):
				return fmt.Errorf("five attempts, and still %w", end.Err)
			}
			return nil
		},
	}
}

// TestSweepDrop breaks the retention job, the very first one and one with a mark to move, at every storage call. Nothing
// above the mark goes, a job that was cut off is finished by the next one, and whatever was marked never comes back.
func TestSweepDrop(t *testing.T) {
	for name, marked := range map[string]bool{"First": false, "Next": true} {
		t.Run(name, func(t *testing.T) {
			floor := map[string]int{"First": 240, "Next": 176}[name]
			storagetest.Sweep(t, storagetest.SweepCase{Floor: floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return dropped(t, s, marked)
			}})
		})
	}
}

// dropped is a world with five days, of which three are to be dropped.
func dropped(t testing.TB, s *storagetest.Service, marked bool) storagetest.World {
	schema := schemaOf("Logins", func() time.Time { return noon })
	logins := mustStart(t, s, schema)
	for day := range 5 {
		insert(t, logins, "june", noon.AddDate(0, 0, -day))
	}
	if marked {
		assert.Check(t, assert.Err(logins.Drop(t.Context(), noon.AddDate(0, 0, -10), noGrace())))
	}
	before := noon.AddDate(0, 0, -1)
	all := &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}}
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			logins, err := start(s, schema)
			if err != nil {
				return err
			}
			_, err = logins.Drop(ctx, before, noGrace())
			return err
		},
		Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			logins, err := start(s, schema)
			if err != nil {
				return err
			}
			there, err := times(ctx, logins.Between(ctx, time.Time{}, time.Time{}, all))
			if err != nil {
				return err
			}
			kept := []string{"june 21T12:00", "june 22T12:00"}
			if len(there) < 2 || !slices.Equal(there[len(there)-2:], kept) || end.Succeeded() && len(there) != 2 {
				return fmt.Errorf("there are %v", there)
			}
			mark, err := logins.Mark(ctx)
			if err != nil {
				return err
			}
			moved := mark.Equal(before.Truncate(24 * time.Hour))
			if end.Succeeded() && !moved || !moved && len(there) != 5 {
				return fmt.Errorf("the mark is %v, and there are %v", mark, there)
			}
			return afterwards(ctx, s, schema, moved)
		},
	}
}

// afterwards lets a late writer and the next job come, and then time pass until dropped names are free again.
func afterwards(ctx context.Context, s *storagetest.Service, schema highvolumedelete.Schema[login], moved bool) error {
	lateAt := noon.AddDate(0, 0, -4)
	tryLate := func() error {
		logins, err := start(s, schema)
		if err != nil {
			return err
		}
		return logins.Insert(ctx, &login{User: "late", At: lateAt})
	}
	if err := tryLate(); moved && !errors.Is(err, highvolumedelete.ErrLate) || !moved && err != nil {
		return fmt.Errorf("with moved=%v a late writer hears %w", moved, err)
	}
	logins, err := start(s, schema)
	if err != nil {
		return err
	}
	if _, err := logins.Drop(ctx, noon.AddDate(0, 0, -1), noGrace()); err != nil {
		return err
	}
	s.Wait(41 * time.Second)
	if err := tryLate(); !errors.Is(err, highvolumedelete.ErrLate) {
		return fmt.Errorf("once the names are free, a late writer hears %w", err)
	}
	names, err := logins.List(ctx)
	if err != nil || !slices.Equal(names, []string{"LoginsD20140821", "LoginsD20140822"}) {
		return fmt.Errorf("the tables are %v: %w", names, err)
	}
	return nil
}
