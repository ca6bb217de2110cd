package scatter

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

func orders() []Order {
	return []Order{ByTime("event", 0), ByTimeDesc("event", time.Hour), ByNumber("event", 6, 10), ByNumber("event", 18, 0)}
}

// part is the part of a row key that stands for a position.
func (o Order) part(position int64) compoundkey.Part {
	switch {
	case o.falling:
		return compoundkey.TimeDesc(o.time(position))
	case o.isTime():
		return compoundkey.Time(o.time(position))
	}
	return compoundkey.Int(position, o.width)
}

// TestPositions: positions are those of compoundkey's parts, there and back, and rise with the values.
func TestPositions(t *testing.T) {
	for _, o := range orders() {
		rapid.Check(t, func(t *rapid.T) {
			want := rapid.OneOf(rapid.Int64Range(0, o.limit-1), rapid.SampledFrom([]int64{0, 1, o.limit - 2, o.limit - 1})).Draw(t, "position")
			for _, row := range []string{compoundkey.Join("event", o.part(want)), compoundkey.Join("event", o.part(want), compoundkey.String(rapid.String().Draw(t, "tag")))} {
				if compoundkey.Err(row) != nil {
					continue // text that is not UTF-8
				}
				if got, err := o.position(row); err != nil || got != want {
					t.Fatalf("%s: position %d of %s (%v), want %d", o.name, got, row, err, want)
				}
			}
		})
	}
}

func TestPositionRefuses(t *testing.T) {
	for _, row := range []string{"", "event", "event_", "event_12345", "event_1234567", "event_12345a", "event_-12345", "event_+12345", "other_123456", "event_123456a", "event_123456_/",
		compoundkey.Join("event", compoundkey.Int(1_000_000, 6))} {
		if p, err := ByNumber("event", 6, 0).position(row); err == nil {
			t.Errorf("%q has the position %d", row, p)
		}
	}
	for _, row := range []string{"event_3155378976000000000", "event_9999999999999999999"} {
		if p, err := ByTime("event", 0).position(row); err == nil {
			t.Errorf("%q has the position %d", row, p)
		}
	}
}

// TestRegions: a region has exactly the row keys of its positions, and a span overlaps it where a key says so.
func TestRegions(t *testing.T) {
	for _, o := range orders() {
		rapid.Check(t, func(t *rapid.T) {
			anywhere := rapid.OneOf(rapid.Int64Range(0, min(50, o.limit-1)), rapid.Int64Range(o.limit-50, o.limit-1), rapid.Int64Range(0, o.limit-1))
			from, to, p := anywhere.Draw(t, "from"), anywhere.Draw(t, "to")+rapid.Int64Range(0, 1).Draw(t, "end"), anywhere.Draw(t, "position")
			row := compoundkey.Join("event", o.part(p), compoundkey.String("x"))
			first, end := o.region(from, to)
			if got := compoundkey.Compare(first, row) <= 0 && compoundkey.Compare(row, end) < 0; got != (from <= p && p < to) {
				t.Fatalf("%s: %s in [%s, %s) is %v, position %d, region %d to %d", o.name, row, first, end, got, p, from, to)
			}
			exactly := compoundkey.Exactly(o.part(p)).Under("event")
			if got := o.overlaps(exactly, from, to); got != (from <= p && p < to) {
				t.Fatalf("%s: position %d overlaps %d to %d: %v", o.name, p, from, to, got)
			}
			if got := o.overlaps(compoundkey.All().Under("event"), from, to); got != (from < to) {
				t.Fatalf("%s: all overlaps %d to %d: %v", o.name, from, to, got)
			}
			if next := o.behind(p); next <= p || next > o.limit || next-p > o.step || next != o.limit && next%o.step != 0 {
				t.Fatalf("%s: the horizon moves from %d to %d", o.name, p, next)
			}
		})
	}
}

func TestOrdersAreChecked(t *testing.T) {
	for name, o := range map[string]Order{
		"no prefix": ByTime("", 0), "a prefix with a separator": ByTime("a_b", 0), "a step below a tick": ByTime("a", 99), "a negative step": ByTimeDesc("a", -time.Hour),
		"no digits": ByNumber("a", 0, 0), "19 digits": ByNumber("a", 19, 0), "a negative step of numbers": ByNumber("a", 5, -1),
	} {
		if o.err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if o := ByNumber("a", 18, math.MaxInt64); o.err != nil || o.behind(5) != o.limit {
		t.Errorf("a step without end: %v, %d", o.err, o.behind(5))
	}
}

// TestResized: the epochs of a layout rise, none begins above the horizon, neighbours differ, and what is below the horizon
// never changes.
func TestResized(t *testing.T) {
	o := ByNumber("event", 6, 10)
	rapid.Check(t, func(t *rapid.T) {
		l := &layout{epochs: []epoch{{0, rapid.IntRange(1, 5).Draw(t, "first")}}}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			old := l
			if n := rapid.IntRange(0, 5).Draw(t, "n"); n > 0 {
				if next := l.resized(n); next != nil {
					l = next
				}
				if got := l.epochs[len(l.epochs)-1].n; got != n {
					t.Fatalf("resized to %d, the last is %d", n, got)
				}
			} else {
				l = &layout{horizon: o.behind(l.horizon), epochs: l.epochs}
			}
			for p := range old.horizon {
				if old.partitions(p) != l.partitions(p) {
					t.Fatalf("%d is in %d partitions, and was in %d", p, l.partitions(p), old.partitions(p))
				}
			}
			r := &record{}
			l.store(r, o)
			if again, err := r.read(o); err != nil || fmt.Sprint(again) != fmt.Sprint(l) {
				t.Fatalf("stored %v, read %v (%v)", l, again, err)
			}
			for i := 1; i < len(l.epochs); i++ {
				if l.epochs[i].from <= l.epochs[i-1].from || l.epochs[i].from > l.horizon || l.epochs[i].n == l.epochs[i-1].n {
					t.Fatalf("%v", l)
				}
			}
		}
		checkMost(t, o, l)
	})
}

// checkMost compares the partitions of a span with those of its positions, one by one.
func checkMost(t *rapid.T, o Order, l *layout) {
	from := rapid.Int64Range(0, 60).Draw(t, "from")
	to := rapid.Int64Range(from, 80).Draw(t, "to")
	want := 0
	for p := from; p < min(to, l.horizon); p++ {
		want = max(want, l.partitions(p))
	}
	if got := l.most(o, compoundkey.Between(o.part(from), o.part(to)).Under("event")); got != want {
		t.Fatalf("%d to %d of %v: %d partitions, want %d", from, to, l, got, want)
	}
}

func TestRecordsAreChecked(t *testing.T) {
	o := ByNumber("event", 6, 0)
	for name, r := range map[string]record{
		"a later version": {Version: 2, Order: o.name, Epochs: "0 1"}, "another order": {Version: 1, Order: "time", Epochs: "0 1"},
		"no epochs": {Version: 1, Order: o.name}, "no first": {Version: 1, Order: o.name, Horizon: 9, Epochs: "5 1"}, "not rising": {Version: 1, Order: o.name, Horizon: 9, Epochs: "0 1\n5 2\n5 3"},
		"above the horizon": {Version: 1, Order: o.name, Horizon: 9, Epochs: "0 1\n10 2"}, "no partitions": {Version: 1, Order: o.name, Epochs: "0 0"},
		"too many": {Version: 1, Order: o.name, Epochs: "0 1001"}, "not a number": {Version: 1, Order: o.name, Epochs: "0 x"},
		"a horizon behind everything": {Version: 1, Order: o.name, Horizon: 1_000_001, Epochs: "0 1"},
	} {
		if l, err := r.read(o); err == nil {
			t.Errorf("%s: %v", name, l)
		}
	}
	r := &record{}
	many := &layout{horizon: 999_999}
	for i := range int64(maxEpochs) {
		many.epochs = append(many.epochs, epoch{timeLimit - maxEpochs + i, MaxPartitions})
	}
	if many.store(r, o); len(r.Epochs) > tables.MaxStringUnits {
		t.Errorf("%d epochs are %d characters", maxEpochs, len(r.Epochs))
	}
}
