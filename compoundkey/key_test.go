package compoundkey

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

type (
	email    string
	badge    int16
	otherID  [16]byte
	someText Folded
)

// TestKeys: the type of a key says how it is stored.
func TestKeys(t *testing.T) {
	when := time.Date(2012, 12, 31, 0, 0, 0, 0, time.UTC)
	id := uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	for _, c := range []struct{ got, want Part }{
		{Of("June"), String("June")},
		{Of(email("June")), String("June")},
		{Of(Folded("June")), Fold("JUNE")},
		{Of(someText("June")), String("June")},
		{Of(when), Time(when)},
		{Of(Newest(when)), TimeDesc(when)},
		{Of(0), Int(0, 19)},
		{Of(badge(-5)), Int(-5, 19)},
		{Of(time.Minute), Int(int64(time.Minute), 19)},
		{Of(int64(math.MinInt64)), Int(int64(math.MinInt64), 19)},
		{Of(uint64(math.MaxUint64)), Uint(uint64(math.MaxUint64), 20)},
		{Of(id), UUID(id)},
		{Of(otherID(id)), UUID(id)},
		{Of(Tuple(Of("a"), Of(1))), Tuple(String("a"), Int(1, 19))},
	} {
		if got, want := Join("", c.got), Join("", c.want); got != want || Err(got) != nil {
			t.Errorf("%q, want %q", got, want)
		}
	}
	zero := time.Date(1, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600))
	for i, empty := range []Part{Of(""), Of(Folded("")), Of(email("")), Of(time.Time{}), Of(zero), Of(Newest{}), Of(Newest(zero)), Of(uuid.Nil), Of(otherID{}), Of(Part{})} {
		if !empty.IsZero() {
			t.Errorf("empty key %d is in an index", i)
		}
	}
}

// TestOrderOfKeys: stored keys of integers sort as the integers do, and those of Newest against the times.
func TestOrderOfKeys(t *testing.T) {
	var stored []string
	for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -10, -9, -1, 0, 1, 9, 10, math.MaxInt64} {
		stored = append(stored, Join("n", Of(n)))
	}
	for _, at := range []int{3, 2, 1} {
		stored = append(stored, Join("t", Of(Newest(time.Unix(int64(at), 0)))))
	}
	if !slices.IsSortedFunc(stored, Compare) {
		t.Errorf("not in order: %q", stored)
	}
}

// TestIntervals: an interval selects by the type of its bounds; empty bounds are bounds too.
func TestIntervals(t *testing.T) {
	lead := func(text string) Part { return Tuple(Int(1, 2), String(text)) }
	for i, c := range []struct {
		span Span
		key  Part
		want bool
	}{
		{Between(-5, 5).Span, Of(-1), true},
		{Between(-5, 5).Span, Of(5), false},
		{Through[badge](-5, 5).Span, Of(5), true},
		{AtLeast("").Span, Of("a"), true},
		{Below(Folded("K")).Span, Of(Folded("june")), true},
		{Exactly(Newest(time.Unix(5, 0))).Span, TimeDesc(time.Unix(5, 0)), true},
		{Prefix(Folded("JON")).Span, Of(Folded("Jones")), true},
		{Prefix("").Span, String("Jones"), true},
		{Prefix(String("a/")).Span, String("a/b"), true},
		{Prefix(lead("a/")).Span, lead("a/b"), true},
		{Prefix(lead("a/")).Span, lead("a0"), false},
		{Prefix(lead("a/")).Span, Tuple(Int(2, 2), String("a/b")), false},
		{Prefix(lead("")).Span, lead("\U0010FFFF"), true},
		{Prefix(lead("")).Span, Tuple(Int(2, 2), String("")), false},
		{AtLeast(3).Intersect(Below(5).Span), Of(3), true},
		{AtLeast(3).Intersect(Below(5).Span), Of(5), false},
		{Below(5).Intersect(AtLeast(3).Span), Of(2), false},
		{All().Intersect(Below(5).Span), Of(2), true},
		{Below(5).Intersect(All()), Of(7), false},
	} {
		if got := c.span.Contains(Join("", c.key)); got != c.want || c.span.Err() != nil {
			t.Errorf("%d: %v, %v", i, got, c.span.Err())
		}
	}
	for _, bad := range []Span{Prefix(Int(1, 2)).Span, Prefix(Tuple(String("a"), Int(1, 2))).Span, Prefix("\xff").Span, Prefix(Part{}).Span,
		Below(5).Intersect(Prefix("\xff").Span), Prefix("\xff").Intersect(Below(5).Span)} {
		if bad.Err() == nil {
			t.Errorf("%q to %q is no error", bad.From(), bad.To())
		}
	}
}
