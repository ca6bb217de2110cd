package access

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Characters at and around everything that the order and the rules of keys turn on.
var pivots = []rune{' ', '!', '"', '$', '.', '0', '9', '>', '@', 'A', '[', ']', 'a', 'z', '~', 0xA0, 0xA1, 0x7FF, 0xD7FE, 0xD7FF, 0xE000, 0xE001, 0xFFFB, 0xFFFC,
	0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x10001, 0x103FF, 0x10400, 0x10FFFE, 0x10FFFF}

func anyText(least, most int) *rapid.Generator[string] {
	character := rapid.OneOf(rapid.SampledFrom(pivots), rapid.SampledFrom([]rune("ab_!")))
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(character, least, most).Draw(t, "characters")) })
}

// anyKey is short, or at the limit of a key's length, where little can follow.
func anyKey() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		key := anyText(1, 4).Draw(t, "key")
		if rapid.IntRange(0, 3).Draw(t, "long") == 0 {
			key = strings.Repeat("m", compoundkey.MaxUnits-edm.Units(key)-rapid.IntRange(0, 2).Draw(t, "short of")) + key
		}
		return key
	})
}

// near is a key that has much in common with another one.
func near(t *rapid.T, other string) string {
	runes := []rune(other)
	cut := rapid.IntRange(max(0, len(runes)-2), len(runes)).Draw(t, "common")
	key := string(runes[:cut]) + anyText(0, 3).Draw(t, "rest")
	if compoundkey.CheckKey(key) != nil {
		return other
	}
	return key
}

// TestBeforeIsNeverWider: the key that takes the place of an excluded end is a legal key below the end, and no key but those
// that go on with U+FFFD or above where it ends is lost.
func TestBeforeIsNeverWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := anyKey().Draw(t, "end")
		last, ok := before(end)
		if !ok || compoundkey.CheckKey(last) != nil || compoundkey.Compare(last, end) >= 0 {
			t.Fatalf("before %+q: %+q, %v", end, last, ok)
		}
		for range 10 {
			key := near(t, rapid.SampledFrom([]string{end, last}).Draw(t, "near"))
			lost := compoundkey.Compare(last, key) < 0 && compoundkey.Compare(key, end) < 0
			stem, filled := strings.CutSuffix(last, string(fill))
			rest, goesOn := strings.CutPrefix(key, stem)
			if lost && !(filled && goesOn && rest >= string(fill)) {
				t.Fatalf("%+q is between %+q and %+q", key, last, end)
			}
		}
	})
}

// TestBeforeLosesNoCompoundKey: of the keys that compoundkey makes, those of a span are just those that the token reaches.
func TestBeforeLosesNoCompoundKey(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pivots), rapid.SampledFrom([]rune("ab/\\#?_\x00\x7f\u0085"))), 0, 3).Draw(t, "text"))
	})
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		n := rapid.IntRange(-3, 12).Draw(t, "n")
		spans := []compoundkey.Span{
			compoundkey.Prefix(a).Under("e"), compoundkey.Between(compoundkey.String(a), compoundkey.String(b)).Under("e"),
			compoundkey.Through(compoundkey.String(a), compoundkey.String(b)).Under("e"), compoundkey.Exactly(compoundkey.String(a)).Under("e"),
			compoundkey.AtLeast(compoundkey.String(a)).Under("e"), compoundkey.Below(compoundkey.String(a)).Under("e"), compoundkey.All().Under("e"),
			compoundkey.Starting("e", compoundkey.String(a), compoundkey.Int(n, 2)), compoundkey.Starting("", compoundkey.Int(n, 2)),
		}
		for range 10 {
			c := rapid.OneOf(text, rapid.Just(a), rapid.Just(b), rapid.Just(a+b)).Draw(t, "c")
			m := rapid.IntRange(-3, 12).Draw(t, "m")
			keys := []string{compoundkey.Join("e", compoundkey.String(c)), compoundkey.Join("e", compoundkey.String(c), compoundkey.Int(m, 2)),
				compoundkey.Join("e", compoundkey.String(a), compoundkey.Int(n, 2), compoundkey.String(c)), compoundkey.Join("", compoundkey.Int(m, 2), compoundkey.String(c))}
			for i, span := range spans {
				r := Rows("p", span)
				if r.Err() != nil && !span.Empty() {
					t.Fatalf("span %d of %+q and %+q: %v", i, a, b, r.Err())
				}
				for _, key := range keys {
					in := r.Contains(tables.Key{Partition: "p", Row: key})
					if in != span.Contains(key) {
						t.Fatalf("span %d [%+q, %+q) contains %+q: %v; the range says %v", i, span.From(), span.To(), key, !in, in)
					}
					if in {
						reached++
					}
				}
			}
		}
	})
	if reached < 100 {
		t.Errorf("%d keys within their spans", reached)
	}
}

func TestBefore(t *testing.T) {
	long := strings.Repeat("m", compoundkey.MaxUnits-1)
	for _, c := range [][2]string{
		{"b", "a\uFFFD"}, {"empid_000124", "empid_000123\uFFFD"}, {"a ", "a"}, {" ", ""}, {"0", ".\uFFFD"}, {"$", "\"\uFFFD"}, {"@", ">\uFFFD"}, {"]", "[\uFFFD"},
		{"\u00A0", "~\uFFFD"}, {"\uE000", "\U0010FFFF\uFFFD"}, {"\U00010000", "\uD7FF\uFFFD"}, {"\U00010001", "\U00010000\uFFFD"},
		{long + "b", long + "a"}, {long + "\uE000", long + "\uD7FF"}, {long[1:] + "\uE000", long[1:] + "\U0010FFFF"},
	} {
		if got, ok := before(c[0]); got != c[1] || !ok {
			t.Errorf("before %+q: %+q, want %+q", c[0], got, c[1])
		}
	}
	if _, ok := before(""); ok {
		t.Error("there is something before the empty key")
	}
}
