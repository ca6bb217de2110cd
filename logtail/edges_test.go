package logtail_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestFollowAllWaits: between entries All looks again after its Interval, give or take a half, and no more often; it ends with its
// context, and goes on when it is called again.
func TestFollowAllWaits(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		counted, requests := harness.CountedService(s)
		l := openLog(t, counted, nil)
		writer := openTable(t, s, l.Table().Name(), schemaAt(nil))
		f := assert.Must[*logtail.Follower[claim]](t)(l.Follower("223", "", &logtail.FollowOptions{Interval: 10 * time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		go func() {
			for i := range 3 {
				time.Sleep(3 * time.Minute)
				assert.NoError(t, writer.Append(ctx, &claim{Employee: "223", Amount: i}))
			}
		}()
		requests.Reset()
		var got []int
		var last error
		for c, err := range f.All(ctx) {
			if last = err; err != nil {
				break
			}
			if age := time.Since(c.LoggedAt); age > 15*time.Second {
				t.Errorf("entry %d came after %v", c.Amount, age)
			}
			got = append(got, c.Amount)
		}
		if !slices.Equal(got, []int{0, 1, 2}) || !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("All yields %v and ends with %v", got, last)
		}
		if n := requests.Count(); n < 40 || n > 120 {
			t.Errorf("%d requests in ten minutes", n)
		}
		assert.Check(t, writer.Append(t.Context(), &claim{Employee: "223", Amount: 3}))
		for c, err := range f.All(t.Context()) {
			if err != nil || c.Amount != 3 {
				t.Errorf("All goes on with %v, %v", c, err)
			}
			break
		}
	})
}

// TestRowsOfNoEntry: what another program has written under the prefix, and is no entry, ends a Poll with an error, and yields
// nothing made up; so it does behind more entries than are read at once.
func TestRowsOfNoEntry(t *testing.T) {
	for _, entries := range []int{0, 3, 1500} {
		s := storagetest.Simulator(t, nil)
		c := &clock{day.Add(time.Hour)}
		l := openLog(t, s, c.now)
		fill(t, l, "223", entries)
		row := &tables.Entity{Key: tables.Key{Partition: "223", Row: "log_2519936321679999999x"}}
		assert.Check(t, l.Table().Entities().Insert(t.Context(), row))
		n := 0
		var last error
		for _, err := range follower(t, l, "").Poll(t.Context()) {
			if last = err; err == nil {
				n++
			}
		}
		if n != 0 || !errors.Is(last, tables.ErrGarbled) || !strings.Contains(last.Error(), "give the row another key") {
			t.Errorf("with %d entries: %d were yielded, and then %v", entries, n, last)
		}
	}
}

// TestNothingIsAppended: nil is refused, and a type whose Entry is a pointer.
func TestNothingIsAppended(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	l := openLog(t, s, nil)
	for _, err := range []error{l.Append(t.Context(), nil), l.Stamp(nil)} {
		assert.ErrorIs(t, err, tables.ErrInvalid)
	}
	type pointing struct {
		tables.Meta
		*logtail.Entry
	}
	if _, err := logtail.New(l.Table(), logtail.Schema[pointing]{Partition: func(*pointing) string { return "" }}); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a pointer to Entry: %v, want ErrWiring", err)
	}
	c := &claim{Employee: "223"}
	if err := l.Append(t.Context(), c); err != nil || l.Key(c) != c.Key() {
		t.Errorf("%v: %v, %v", err, l.Key(c), c.Key())
	}
	for range l.Between(t.Context(), "223", time.Time{}, time.Time{}) {
		break
	}
}
