package scatter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestEpochsHaveALimit: a record with as many changes of n as it holds takes no more, and goes on being read.
func TestEpochsHaveALimit(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	table := newTable(t, s)
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("%d %d", i, 1+i%2))
	}
	record := &tables.Entity{Key: tables.Key{Partition: "scatter_event", Row: "epochs"}, Properties: tables.Properties{
		{Name: "Version", Value: tables.Int32(1)}, {Name: "Order", Value: tables.String("number:6")},
		{Name: "Horizon", Value: tables.Int64(2000)}, {Name: "Epochs", Value: tables.String(strings.Join(lines, "\n"))}}}
	assert.Check(t, assert.Must[*tables.Account](t)(account(s)).Table(table).Entities().Insert(ctx, record))
	p := assert.Must[spread](t)(open(s, table, numbered(10, 3), nil))
	harness.WantKind(t, assert.Err(p.Resize(ctx, 5)), tables.ErrTooLarge)
	for _, number := range []int64{0, 1, 998, 1999, 2000} {
		assert.Check(t, p.Insert(ctx, &event{Number: number}))
	}
	assert.Len(t, assert.Must[[]string](t)(placed(ctx, s, table, numbered(10, 3))), 5, "rows")
}

// TestConflictsOnTheRecord: a writer whose every write of the record meets a concurrent writer gives up after MaxAttempts, with ErrConflict and
// nothing written; one that waits for its turn ends with its context.
func TestConflictsOnTheRecord(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		ctx, table, schema := t.Context(), newTable(t, s), numbered(10, 2)
		assert.Check(t, assert.Must[spread](t)(open(s, table, schema, nil)).Insert(ctx, &event{Number: 1}))
		concurrent := assert.Must[spread](t)(open(s, table, schema, nil))
		n, slow := 2, make(chan bool)
		comes := storagetest.On(storagetest.ReplaceEntity, storagetest.Always(storagetest.Before("a concurrent writer", func() {
			n++
			assert.NoError(t, assert.Err(concurrent.Resize(ctx, n)))
			if n == 3 {
				slow <- true
				<-slow
			}
		})))
		faulty, _ := s.Faulty(comes)
		schema.MaxAttempts = 3
		p := assert.Must[spread](t)(open(faulty, table, schema, nil))
		moved := make(chan error)
		go func() { moved <- p.Insert(ctx, &event{Number: 50}) }()
		<-slow
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var told *tables.Error
		if err := p.Insert(short, &event{Number: 51}); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &told) {
			t.Errorf("the one that waits: %v", err)
		}
		slow <- true
		harness.WantKind(t, <-moved, tables.ErrConflict)
		if n != 5 {
			t.Errorf("%d attempts", n-2)
		}
		assert.Len(t, assert.Must[[]string](t)(placed(ctx, s, table, numbered(10, 2))), 1, "rows")
	})
}

// TestVerbsThatAreMetered: each counts what it sends.
func TestVerbsThatAreMetered(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newStopwatch()
	meter := w.meter(t, scatter.MeterOptions{Target: 1})
	p := assert.Must[spread](t)(open(s, newTable(t, s), numbered(0, 2), &scatter.Options{Meter: meter}))
	all := func(yield func(*event, error) bool) {
		for n := range int64(20) {
			if !yield(&event{Number: n}, nil) {
				return
			}
		}
	}
	assert.Must[tables.BulkReport](t)(p.BulkNonAtomic(ctx, all, nil))
	assert.Check(t, p.DeleteUnconditional(ctx, rowOf(3, "")))
	assert.Must[tables.BulkReport](t)(p.BulkNonAtomic(ctx, func(yield func(*event, error) bool) {
		_ = yield(&event{Number: 0}, nil) && yield(&event{Number: 20}, nil)
	}, &tables.BulkOptions{Resume: "1"}))
	total := 0
	for _, l := range meter.Hot() {
		total += l.Total
	}
	if len(meter.Hot()) != 2 || total != 22 {
		t.Errorf("written: %v", meter.Loads())
	}
	harness.WantKind(t, p.DeleteUnconditional(ctx, "event_3"), tables.ErrInvalid)
	_, err := p.Update(ctx, "event_3", nil)
	harness.WantKind(t, err, tables.ErrInvalid)
	for e, err := range p.GetMany(ctx, nil, nil) {
		t.Errorf("of no rows: %v, %v", e, err)
	}
	missing := assert.Must[spread](t)(open(s, s.TableName(t), numbered(0, 0), nil))
	for _, err := range missing.GetMany(ctx, []string{rowOf(1, "")}, nil) {
		harness.WantKind(t, err, tables.ErrMissingResource)
	}
	harness.WantKind(t, assert.Err(missing.Epochs(ctx)), tables.ErrMissingResource)
}
