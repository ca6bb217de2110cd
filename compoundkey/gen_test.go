package compoundkey

import (
	"flag"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/race"
)

// cases is how many values each part type is tried with, whatever the flags of
// rapid. It is a tenth of them unless the test is to be thorough.
const cases = 100_000

// checkCases runs a property that often and says so.
func checkCases(t *testing.T, n int, prop func(*rapid.T)) {
	t.Helper()
	if os.Getenv("TABLEPATTERNS_THOROUGH") != "1" || testing.Short() || race.Enabled {
		n /= 10
	}
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	set := n
	if testing.Short() {
		set *= 5 // rapid runs a fifth of them then
	}
	assert.Check(t, checks.Value.Set(strconv.Itoa(set)))
	defer func() { _ = checks.Value.Set(before) }()
	ran := 0
	rapid.Check(t, func(rt *rapid.T) {
		prop(rt)
		ran++
	})
	if ran < n {
		t.Fatalf("%d cases ran, want %d", ran, n)
	}
	t.Logf("%d cases", ran)
}

// utf16Compare is the service's order done the slow way, to test Compare and
// everything else against.
func utf16Compare(a, b string) int {
	x, y := utf16.Encode([]rune(a)), utf16.Encode([]rune(b))
	for i := 0; i < len(x) && i < len(y); i++ {
		if x[i] != y[i] {
			return int(x[i]) - int(y[i])
		}
	}
	return len(x) - len(y)
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// specials are the characters at which an encoding can go wrong: those that are
// escaped, their neighbours, leads and codes of escapes, and the ends of the
// surrogates.
var specials = []rune{
	0, 1, 9, 0x1F, ' ', '!', '"', '#', '$', '%', '&', '\'', '(', '-', '.', '/', '0', '1', '2', '9', ':',
	'=', '>', '?', '@', 'A', 'V', 'X', 'Z', '[', '\\', ']', '^', '_', '`', 'a', 'c', 's', 'x', 'z', '}', '~',
	0x7F, 0x80, 0x85, 0x9E, 0x9F, 0xA0, 'é', 0x7FF, 0x800, 0xD7FE, 0xD7FF, 0xE000, 0xE001, 0xFDD0,
	0xFFFA, 0xFFFB, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x10001, 0x1F600, 0x10FFFE, 0x10FFFF,
}

var (
	anyRune = rapid.OneOf(
		rapid.SampledFrom(specials), rapid.SampledFrom(specials), rapid.SampledFrom(specials),
		rapid.RuneFrom([]rune{'a', 'b', '.', '/', '_', '!'}),
		rapid.Int32Range(0, 0xFF),
		rapid.Custom(func(t *rapid.T) rune {
			r := rapid.Int32Range(0, 0x10FFFF-0x800).Draw(t, "rune")
			if r >= 0xD800 {
				r += 0x800
			}
			return r
		}),
	)
	runes = rapid.SliceOfN(anyRune, 0, 3)
)

// three draws three values that are likely near each other or equal, since it is
// there that an order breaks.
func three[V any](t *rapid.T, gen *rapid.Generator[V]) (a, b, c V) {
	a, b, c = gen.Draw(t, "a"), gen.Draw(t, "b"), gen.Draw(t, "c")
	switch rapid.IntRange(0, 5).Draw(t, "same") {
	case 0:
		b = a
	case 1:
		c = a
	case 2:
		c = b
	}
	return a, b, c
}

// threeStrings start with a common text.
func threeStrings(t *rapid.T) (a, b, c string) {
	head := string(runes.Draw(t, "head"))
	a, b, c = three(t, rapid.Map(runes, func(r []rune) string { return string(r) }))
	return head + a, head + b, head + c
}

// near draws numbers at the ends of a range, around the numbers given, and
// anywhere in it.
func near(low, high int64, around ...int64) *rapid.Generator[int64] {
	points := []int64{low, high}
	for _, p := range around {
		if low <= p && p <= high {
			points = append(points, p)
		}
	}
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) int64 {
			p := rapid.SampledFrom(points).Draw(t, "point")
			d := rapid.Int64Range(-3, 3).Draw(t, "off")
			if v := p + d; v >= low && v <= high && (d < 0) == (v < p) {
				return v
			}
			return p
		}),
		rapid.Int64Range(low, high),
	)
}

func anyUint() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64(),
		rapid.Uint64Range(0, 12),
		rapid.Uint64Range(math.MaxUint64-12, math.MaxUint64),
		rapid.SampledFrom([]uint64{math.MaxInt64, math.MaxInt64 + 1, 1e18, 1e19 - 1, 1e19}),
	)
}

// anyTicks are instants as ticks, so that near can draw them.
func anyTicks() *rapid.Generator[int64] {
	return near(0, maxTicks, unixSeconds*ticksPerSecond, 1e18, 634925088000000000)
}

func timeOf(ticks int64) time.Time {
	return time.Unix(ticks/ticksPerSecond-unixSeconds, ticks%ticksPerSecond*100).UTC()
}

func anyUUID() *rapid.Generator[uuid.UUID] {
	return rapid.Custom(func(t *rapid.T) (u uuid.UUID) {
		high, low := anyUint().Draw(t, "high"), anyUint().Draw(t, "low")
		for i := range 8 {
			u[i], u[i+8] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
		}
		return u
	})
}
