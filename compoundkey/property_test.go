package compoundkey

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// law is what every part type is held to.
type law[V any] struct {
	draw    func(*rapid.T) (a, b, c V)
	part    func(V) Part
	compare func(a, b V) int
	target  func(*V) Target
}

func (l law[V]) check(t *testing.T, n int) {
	t.Helper()
	checkCases(t, n, func(rt *rapid.T) {
		a, b, c := l.draw(rt)
		l.order(rt, a, b)
		l.roundTrip(rt, a)
		l.spans(rt, a, b, c)
	})
}

// order: keys sort as values do and are equal only if the values are, alone,
// behind a prefix, before another part, and in a tuple.
func (l law[V]) order(t *rapid.T, a, b V) {
	want := sign(l.compare(a, b))
	x, y := l.part(a), l.part(b)
	for _, keys := range [][2]string{
		{Join("", x), Join("", y)},
		{Join("p", x, Int(9, 1)), Join("p", y, Int(1, 1))},
		{Join("p", Tuple(x, String("z"))), Join("p", Tuple(y, String("a")))},
	} {
		for _, key := range keys {
			assert.NoError(assert.Fatal(t), CheckKey(key), "%q", key)
		}
		order := utf16Compare(keys[0], keys[1])
		if want != 0 && sign(order) != want || want == 0 && (keys[0] == keys[1]) != (order == 0) {
			t.Fatalf("values %v, keys %q %q are %d, want %d", []V{a, b}, keys[0], keys[1], order, want)
		}
		if got := Compare(keys[0], keys[1]); got != sign(order) {
			t.Fatalf("Compare(%q, %q) = %d, want %d", keys[0], keys[1], got, sign(order))
		}
	}
	if want == 0 && Join("", x) != Join("", y) {
		t.Fatalf("one value, two keys: %q %q", Join("", x), Join("", y))
	}
}

func (l law[V]) roundTrip(t *rapid.T, a V) {
	p := l.part(a)
	for _, c := range []struct {
		key  string
		into func(*V, *int) []Target
	}{
		{Join("p", p), func(v *V, _ *int) []Target { return []Target{l.target(v)} }},
		{Join("p", p, Int(7, 2)), func(v *V, n *int) []Target { return []Target{l.target(v), ToInt(n, 2)} }},
		{Join("p", Int(7, 2), p), func(v *V, n *int) []Target { return []Target{ToInt(n, 2), l.target(v)} }},
	} {
		var got V
		n := 7
		assert.NoError(assert.Fatal(t), Parse(c.key, "p", c.into(&got, &n)...), "%q", c.key)
		if l.compare(got, a) != 0 || n != 7 {
			t.Fatalf("%q: got %v, want %v", c.key, got, a)
		}
	}
}

// spans: a key is in a span exactly if its value is in the range.
func (l law[V]) spans(t *rapid.T, a, b, c V) {
	from, to, p := l.part(a), l.part(b), l.part(c)
	low, high := l.compare(a, c) <= 0, l.compare(c, b)
	for _, s := range []struct {
		name string
		span Span
		want bool
	}{
		{"Between", Between(from, to).Span, low && high < 0},
		{"Through", Through(from, to).Span, low && high <= 0},
		{"AtLeast", AtLeast(from).Span, low},
		{"Below", Below(to).Span, high < 0},
		{"Exactly", Exactly(from).Span, l.compare(a, c) == 0},
		{"All", All(), true},
	} {
		lead := String("l.")
		for _, at := range []struct {
			span Span
			keys []string
		}{
			{s.span, []string{Join("", p), Join("", p, String("\x00")), Join("", p, String("\U0010FFFF\uFFFF"))}},
			{s.span.Under("p"), []string{Join("p", p), Join("p", p, Int(-9, 1))}},
			{s.span.Under("p", lead), []string{Join("p", lead, p), Join("p", lead, p, Bool(true))}},
		} {
			checkBounds(t, at.span)
			for _, key := range at.keys {
				if got := at.span.Contains(key); got != s.want {
					t.Fatalf("%s(%v, %v) = [%q, %q) contains %q: %v, want %v",
						s.name, a, b, at.span.From(), at.span.To(), key, got, s.want)
				}
			}
		}
	}
	if s, want := Starting("p", from), l.compare(a, c) == 0; s.Contains(Join("p", p)) != want ||
		s.Contains(Join("p", p, Bytes([]byte{0xFF}))) != want {
		t.Fatalf("Starting(%v) = [%q, %q) and %v", a, s.From(), s.To(), c)
	}
}

// checkBounds: both bounds are legal keys.
func checkBounds(t assert.T, s Span) {
	for _, bound := range []string{s.From(), s.To()} {
		assert.NoError(assert.Fatal(t), CheckKey(bound), "bound %q", bound)
	}
}

func TestStringLaws(t *testing.T) {
	law[string]{threeStrings, String, utf16Compare, ToString}.check(t, cases)
}

func TestBytesLaws(t *testing.T) {
	gen := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 0x0F, 0x10, 0x7F, 0x80, 0xFF}), rapid.Byte()), 0, 4)
	law[[]byte]{func(t *rapid.T) (a, b, c []byte) { return three(t, gen) }, Bytes, bytes.Compare, ToBytes}.check(t, cases)
}

func TestIntLaws(t *testing.T) {
	widths := []int{1, 6, 18, maxIntWidth}
	for _, width := range widths {
		t.Run(fmt.Sprint("width", width), func(t *testing.T) {
			limit := int64(pow10(min(width, 18)))
			low, high := 1-limit, limit-1
			if width == maxIntWidth {
				low, high = -1<<63, 1<<63-1
			}
			gen := near(low, high, 0, 9, 10, -10, 99, -99)
			law[int64]{
				func(t *rapid.T) (a, b, c int64) { return three(t, gen) },
				func(v int64) Part { return Int(v, width) },
				cmp.Compare[int64],
				func(v *int64) Target { return ToInt(v, width) },
			}.check(t, cases/len(widths))
		})
	}
}

func TestUintLaws(t *testing.T) {
	law[uint64]{
		func(t *rapid.T) (a, b, c uint64) { return three(t, anyUint()) },
		func(v uint64) Part { return Uint(v, maxUintWidth) },
		cmp.Compare[uint64],
		func(v *uint64) Target { return ToUint(v, maxUintWidth) },
	}.check(t, cases)
}

func threeTimes(t *rapid.T) (a, b, c time.Time) {
	x, y, z := three(t, anyTicks())
	return timeOf(x), timeOf(y), timeOf(z)
}

func TestTimeLaws(t *testing.T) {
	law[time.Time]{threeTimes, Time, time.Time.Compare, ToTime}.check(t, cases)
}

func TestTimeDescLaws(t *testing.T) {
	newest := func(a, b time.Time) int { return b.Compare(a) }
	law[time.Time]{threeTimes, TimeDesc, newest, ToTimeDesc}.check(t, cases)
}

func TestUUIDLaws(t *testing.T) {
	law[uuid.UUID]{
		func(t *rapid.T) (a, b, c uuid.UUID) { return three(t, anyUUID()) },
		UUID[uuid.UUID],
		func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) },
		ToUUID,
	}.check(t, cases)
}

func TestBoolLaws(t *testing.T) {
	rank := map[bool]int{true: 1}
	law[bool]{
		func(t *rapid.T) (a, b, c bool) { return three(t, rapid.Bool()) },
		Bool, func(a, b bool) int { return rank[a] - rank[b] }, ToBool,
	}.check(t, cases)
}

func TestEnumLaws(t *testing.T) {
	type status string
	names := []status{"zeta", "alpha", "", "_", "open", "Open", "mu", "nu", "xi", "pi", "rho", "last"}
	e := NewEnum(2, names...)
	at := func(s status) int {
		for i, name := range names {
			if name == s {
				return i
			}
		}
		return -1
	}
	law[status]{
		func(t *rapid.T) (a, b, c status) { return three(t, rapid.SampledFrom(names)) },
		e.Part, func(a, b status) int { return at(a) - at(b) }, e.To,
	}.check(t, cases)
}
