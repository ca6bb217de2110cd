package composition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestEverythingFaults breaks the changes of an item at storage calls; then workers drain, and what the item is then is agreed on by
// all that is kept of it. One point in many is run: each makes an office of its own.
func TestEverythingFaults(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after string
		floor         int
	}{{"Insert", "", "b", 840}, {"Replace", "a", "b", 1_036}, {"Delete", "a", "", 752}} {
		if c.name != "Replace" && harness.Shortened() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			every := 59
			switch {
			case harness.Thorough():
				every = 13
			case harness.Shortened():
				every *= 3
			}
			storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, Every: every, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				return sweptOffice(t, s, c.before, c.after)
			}})
		})
	}
}

// sweptOffice is an office in which one item comes, changes or goes; "" is no item.
func sweptOffice(t testing.TB, s *storagetest.Service, before, after string) storagetest.World {
	o := newOffice(t, s)
	if before != "" {
		d := assert.Must[*desk](t)(o.open(s))
		assert.Check(t, d.items.Insert(t.Context(), d.itemOf(1, before)))
	}
	var mu sync.Mutex
	surely := false // somebody was told that it is done
	return storagetest.World{
		Operate: func(ctx context.Context, s *storagetest.Service) error {
			d, err := o.open(s)
			if err != nil {
				return err
			}
			err = d.change(ctx, before, after)
			mu.Lock()
			defer mu.Unlock()
			surely = surely || err == nil
			return err
		},
		Recover: func(ctx context.Context, s *storagetest.Service) error { return o.drain(ctx, s) },
		Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
			d, err := o.open(s)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			err = d.consistent(ctx, d.itemsOf(after), d.itemsOf(before))
			if err != nil && !surely {
				err = d.consistent(ctx, d.itemsOf(before), d.itemsOf(after))
			}
			return errors.Join(err, clean(ctx, d.items), d.swept(ctx, s))
		},
	}
}

// change makes an item what it is to be. Repeated, it finds its own work done.
func (d *desk) change(ctx context.Context, before, after string) error {
	key := plainKey(d.itemOf(1, "a"))
	old, err := d.items.Get(ctx, key)
	switch gone := errors.Is(err, tables.ErrNotFound); {
	case before == "" && gone:
		return d.items.Insert(ctx, d.itemOf(1, after))
	case after == "" && gone:
		return nil
	case err != nil:
		return err
	case before == "":
		return nil
	case after == "":
		return d.items.Delete(ctx, old)
	}
	next := d.itemOf(1, after)
	next.Meta = old.Meta
	return d.items.Replace(ctx, next)
}

func (d *desk) itemsOf(state string) []*item {
	if state == "" {
		return nil
	}
	return []*item{d.itemOf(1, state)}
}

// drain lets all messages appear, and has workers of fresh processes handle them.
func (o *office) drain(ctx context.Context, s *storagetest.Service) error {
	return harness.Drain(ctx, s, visibility, func(s *storagetest.Service) (*eventual.Queue, error) {
		d, err := o.open(s)
		if err != nil {
			return nil, err
		}
		return d.queue, nil
	})
}

// swept is an error unless each photo belongs to an item after a sweep.
func (d *desk) swept(ctx context.Context, s *storagetest.Service) error {
	s.Wait(3 * time.Hour)
	var report largeentities.SweepReport
	for range 2 {
		var err error
		if report, err = d.photo.Sweep(ctx, nil); err != nil {
			return err
		}
	}
	if report.Listed != report.Referenced {
		return fmt.Errorf("a second sweep of the blobs: %+v", report)
	}
	return nil
}
