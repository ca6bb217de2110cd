package logtail_test

import (
	"context"
	"errors"
	"fmt"
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

// follower is one that begins at a cursor, as a new process does.
func follower(t testing.TB, l *logtail.Log[claim], cursor string) *logtail.Follower[claim] {
	t.Helper()
	return assert.Must[*logtail.Follower[claim]](t)(l.Follower("223", cursor, nil))
}

// write puts an entry of a time into the log without asking how late it is.
func write(t testing.TB, l *logtail.Log[claim], amount int, at time.Time) {
	t.Helper()
	if err := l.Repository().Insert(t.Context(), &claim{Entry: logtail.Entry{LoggedAt: at, LogID: fmt.Sprint(amount)}, Employee: "223", Amount: amount}); err != nil {
		t.Fatal(err)
	}
}

func TestFollow(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	poll := func(f *logtail.Follower[claim], want ...int) {
		t.Helper()
		if got := amounts(t, f.Poll(ctx)); !slices.Equal(got, slices.Concat([]int{}, want)) {
			t.Errorf("Poll yields %v, want %v", got, want)
		}
	}
	f := follower(t, l, "")
	poll(f)
	for i := range 3 {
		c.pass(time.Second)
		assert.Check(t, l.Append(ctx, &claim{Employee: "223", Amount: i}))
	}
	poll(f, 0, 1, 2)
	poll(f)
	// A late one, by a clock that is behind, and one of the same tick as the newest.
	write(t, l, 3, c.at.Add(-20*time.Second))
	write(t, l, 4, c.at)
	poll(f, 3, 4)
	// The loop is left, and another process goes on.
	write(t, l, 5, c.at.Add(time.Second))
	write(t, l, 6, c.at.Add(2*time.Second))
	for range f.Poll(ctx) {
		break
	}
	g := follower(t, l, f.Cursor())
	poll(g, 6)
	poll(follower(t, l, g.Cursor()))
	from := assert.Must[*logtail.Follower[claim]](t)(l.Follower("223", "", &logtail.FollowOptions{From: c.at.Add(time.Second)}))
	poll(from, 5, 6)
}

// TestFollowWindow holds the bound: what becomes visible within the window is yielded once, whatever came before it; what comes
// later is missed by those who are beyond it, and seen by Latest.
func TestFollowWindow(t *testing.T) {
	c := &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	f := follower(t, l, "")
	poll := func(want ...int) {
		t.Helper()
		f = follower(t, l, f.Cursor())
		if got := amounts(t, f.Poll(t.Context())); !slices.Equal(got, slices.Concat([]int{}, want)) {
			t.Errorf("Poll yields %v, want %v", got, want)
		}
	}
	write(t, l, 1, day)
	poll(1)
	c.pass(logtail.DefaultWindow)
	write(t, l, 2, c.at)
	poll(2)
	write(t, l, 3, day) // as old as the window, to the tick
	poll(3)
	write(t, l, 4, day.Add(-100))
	poll()
	// A quiet log's horizon stays a window behind its newest entry, however late it is by the clock.
	c.pass(24 * time.Hour)
	write(t, l, 5, day.Add(time.Second))
	poll(5)
	// An entry that is ahead of all clocks moves nothing.
	write(t, l, 6, c.at.AddDate(0, 0, 7))
	poll(6)
	poll()
	write(t, l, 7, c.at.Add(-logtail.DefaultWindow))
	poll(7)
	assert.Slices(t, amountsOf(assert.Must[[]*claim](t)(l.Latest(t.Context(), "223", 10))), []int{6, 7, 2, 5, 1, 3, 4}, "Latest")
}

// TestFollowIdle: a process that follows a log in which nothing happens reads the window again until it is over, and its cursor
// gets short.
func TestFollowIdle(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	c := &clock{day}
	l := openLog(t, s, c.now)
	logtail.SetUptime(l, func() time.Duration { return c.at.Sub(day) })
	all := make([]*claim, 1500)
	for i := range all {
		all[i] = &claim{Employee: "223", Amount: i}
		assert.Check(t, l.Stamp(all[i]))
	}
	if _, err := l.Repository().BulkNonAtomic(t.Context(), func(yield func(*claim, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	f := follower(t, l, "")
	for i, want := range []struct{ entries, requests, cursor int }{{1500, 3, 30_000}, {0, 3, 30_000}, {0, 3, 200}, {0, 1, 200}} {
		if i == 2 {
			c.pass(logtail.DefaultWindow + time.Second)
		}
		requests.Reset()
		got := amounts(t, f.Poll(t.Context()))
		if len(got) != want.entries || requests.Count() != want.requests || len(f.Cursor()) > want.cursor+1000 || len(f.Cursor()) < want.cursor/6 {
			t.Errorf("poll %d: %d entries, %d requests, a cursor of %d; want %v", i, len(got), requests.Count(), len(f.Cursor()), want)
		}
		if !slices.IsSorted(got) {
			t.Errorf("poll %d is not oldest first", i)
		}
	}
}

// TestFollowerClockIsSetAhead: an idle log is complete up to the time that has really passed, not up to the time of a clock that is set ahead meanwhile:
// an entry that was stamped before the newest one may still be on its way.
func TestFollowerClockIsSetAhead(t *testing.T) {
	s, right, own := storagetest.Simulator(t, nil), &clock{day}, &clock{day}
	writer := openLog(t, s, right.now)
	reader := openTable(t, s, writer.Table().Name(), schemaAt(own.now))
	logtail.SetUptime(reader, func() time.Duration { return right.at.Sub(day) })
	f := follower(t, reader, "")
	late := &claim{Employee: "223", Amount: 1}
	assert.Check(t, writer.Stamp(late))
	right.pass(9 * time.Second)
	own.pass(9 * time.Second)
	assert.Check(t, writer.Append(t.Context(), &claim{Employee: "223", Amount: 2}))
	got := amounts(t, f.Poll(t.Context()))
	own.pass(time.Hour)
	got = append(got, amounts(t, f.Poll(t.Context()))...)
	right.pass(time.Second)
	if err := writer.Append(t.Context(), late); err != nil { // within the window
		t.Fatal(err)
	}
	for range 3 {
		got = append(got, amounts(t, f.Poll(t.Context()))...)
		own.pass(time.Minute)
	}
	if !slices.Equal(got, []int{2, 1}) {
		t.Errorf("the follower has seen %v, and 2 and 1 were appended in time", got)
	}
}

// TestFollowBacklog: a long backlog comes oldest first, in memory of some pages, and can be left and continued anywhere. Pages
// are cut at any place, or empty.
func TestFollowBacklog(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	c := &clock{day.AddDate(0, 0, 1)}
	l := openLog(t, s, c.now)
	const n = 550
	logtail.SetPage(l, 100)
	fill(t, l, "223", n)
	write(t, l, n+1, day.Add(n*time.Second))
	for name, chaos := range map[string]storagetest.Chaos{"calm": {}, "cut": {ShortPages: 0.3, EmptyPages: 0.2}} {
		t.Run(name, func(t *testing.T) {
			s.SetChaos(chaos)
			cursor, want := "", 1
			for want <= n+1 {
				f := follower(t, l, cursor)
				for v, err := range f.Poll(t.Context()) {
					assert.Check(t, err)
					if v.Amount != want {
						t.Fatalf("%d comes where %d is due", v.Amount, want)
					}
					want++
					if want%170 == 0 {
						break // the process dies
					}
				}
				cursor = f.Cursor()
			}
			if len(cursor) > 2500 {
				t.Errorf("a cursor of %d characters, with 60 entries in the window", len(cursor))
			}
			assert.Len(t, amounts(t, follower(t, l, cursor).Poll(t.Context())), 0, "behind the end")
		})
	}
}

// TestFollowOneTick: more entries of one tick than a page holds are not divided.
func TestFollowOneTick(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	c := &clock{day}
	l := openLog(t, s, c.now)
	logtail.SetPage(l, 100)
	for at := range 3 {
		if _, err := l.Repository().BulkNonAtomic(t.Context(), func(yield func(*claim, error) bool) {
			for i := range 130 {
				e := logtail.Entry{LoggedAt: day.Add(time.Duration(at) * time.Second), LogID: fmt.Sprintf("%04d", i)}
				if !yield(&claim{Entry: e, Employee: "223", Amount: at*130 + 129 - i}, nil) {
					return
				}
			}
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := amounts(t, follower(t, l, "").Poll(t.Context()))
	if len(got) != 390 || !slices.IsSorted(got) {
		t.Errorf("%d entries, in order: %v", len(got), slices.IsSorted(got))
	}
}

// TestFollowAll: All waits for what comes, and ends with its context.
func TestFollowAll(t *testing.T) {
	l := openLog(t, storagetest.Open(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := assert.Must[*logtail.Follower[claim]](t)(l.Follower("223", "", &logtail.FollowOptions{Interval: time.Millisecond}))
	assert.Check(t, l.Append(ctx, &claim{Employee: "223"}))
	got, last := []int{}, error(nil)
	for v, err := range f.All(ctx) {
		if last = err; err != nil {
			break
		}
		if got = append(got, v.Amount); len(got) == 10 {
			cancel()
		} else if err := l.Append(ctx, &claim{Employee: "223", Amount: len(got)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || !errors.Is(last, context.Canceled) {
		t.Errorf("All yields %v and ends with %v", got, last)
	}
}

func TestCursorsAreChecked(t *testing.T) {
	c := &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	write(t, l, 1, day)
	f := follower(t, l, "")
	amounts(t, f.Poll(t.Context()))
	good := f.Cursor()
	for name, cursor := range map[string]string{
		"no base64": "?", "short": good[:10], "cut off": good[:len(good)-2], "another version": "Ag" + good[2:],
		"of a time that is none": good[:12] + strings.Repeat("_", 7) + good[19:], "too far": good[:24] + strings.Repeat("_", 40),
	} {
		assert.ErrorIs(t, assert.Err(l.Follower("223", cursor, nil)), tables.ErrInvalid, name)
	}
	assert.ErrorIs(t, assert.Err(l.Follower("224", good, nil)), tables.ErrInvalid, "the cursor of another partition")
	assert.ErrorIs(t, assert.Err(l.Follower("223", "", &logtail.FollowOptions{Interval: -1})), tables.ErrWiring, "a negative interval")
	if _, err := l.Follower("223", "", &logtail.FollowOptions{From: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)}); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("from the year 10001: %v, want ErrInvalid", err)
	}
}
