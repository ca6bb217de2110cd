package compoundkey

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestPrefixLaws: a key is in Prefix(s) exactly if its value starts with s.
func TestPrefixLaws(t *testing.T) {
	checkCases(t, cases, func(rt *rapid.T) {
		value, start, _ := threeStrings(rt)
		if rapid.Bool().Draw(rt, "from value") {
			r := []rune(value)
			start = string(r[:rapid.IntRange(0, len(r)).Draw(rt, "n")])
		}
		want := strings.HasPrefix(value, start)
		v := String(value)
		for _, at := range []struct {
			span Span
			keys []string
		}{
			{Prefix(start).Span, []string{Join("", v), Join("", v, Int(3, 1))}},
			{Prefix(start).Under("p.-9"), []string{Join("p.-9", v), Join("p.-9", v, String("\uFFFF"))}},
			{Prefix(start).Under("", String("/")), []string{Join("", String("/"), v)}},
			{Prefix(start).Under("", Int(-9, 1)).Under("p"), []string{Join("p", Int(-9, 1), v)}},
		} {
			checkBounds(rt, at.span)
			for _, key := range at.keys {
				if got := at.span.Contains(key); got != want {
					rt.Fatalf("Prefix(%q) = [%q, %q) contains %q: %v", start, at.span.From(), at.span.To(), key, got)
				}
			}
		}
		for _, key := range []string{"", "p", Join("o", v), Join("pp", v), Join("p", v), Join("q", v), Join("p.-90", v)} {
			if s := Prefix(start).Under("p.-9"); s.Contains(key) {
				rt.Fatalf("Prefix(%q) = [%q, %q) contains %q of another prefix", start, s.From(), s.To(), key)
			}
		}
	})
}

// TestStartingNeedsTheSeparator: what Starting contains begins with the prefix and the separator, and not with the prefix alone.
func TestStartingNeedsTheSeparator(t *testing.T) {
	for key, want := range map[string]bool{
		"empid_1": true, "empid_": true, "empid_x_2": true, Join("empid", String("zzz\U0010FFFD")): true,
		"empidx_1": false, "empid": false, "empid-1": false, "empid`": false, "empie": false, "emp": false, Join("empid.", Int(1, 1)): false,
	} {
		if Starting("empid").Contains(key) != want || All().Under("empid").Contains(key) != want {
			t.Errorf("Starting(%q) contains %q: %v", "empid", key, !want)
		}
	}
	// A key of another width is of another schema, which must have another prefix.
	for key, want := range map[string]bool{"empid_1": true, "empid_1_x": true, "empid_10": true, "empid_2": false, "empidx_1": false} {
		if Starting("empid", Int(1, 1)).Contains(key) != want {
			t.Errorf("Starting(%q, 1) contains %q: %v", "empid", key, !want)
		}
	}
}

// TestSuccessorLaws: nothing lies between the texts that start with s and its
// successor, and the successor is the first behind them.
func TestSuccessorLaws(t *testing.T) {
	checkCases(t, cases, func(rt *rapid.T) {
		s, other, _ := threeStrings(rt)
		next, ok := successor(s)
		if !ok {
			assert.Equal(assert.Fatal(rt), strings.Trim(s, "\uFFFF"), "", "successor(%q) is none", s)
			return
		}
		if in := utf16Compare(s, other) <= 0 && utf16Compare(other, next) < 0; in != strings.HasPrefix(other, s) {
			rt.Fatalf("%q in [%q, %q): %v", other, s, next, in)
		}
	})
}

// TestClipLaws: clip changes no answer for keys of at most 512 units.
func TestClipLaws(t *testing.T) {
	checkCases(t, cases, func(rt *rapid.T) {
		head := strings.Repeat("a", MaxUnits-rapid.IntRange(0, 4).Draw(rt, "room"))
		a, b, _ := threeStrings(rt)
		bound, key := head+Join("", String(a)), head+Join("", String(b))
		if rapid.Bool().Draw(rt, "raw") { // all that a key may hold, not only what parts hold
			bound, key = head+onlyLegal(a), head+onlyLegal(b)
		}
		for countUnits(key) > MaxUnits {
			r := []rune(key)
			key = string(r[:len(r)-1])
		}
		cut := clip(bound)
		if err := CheckKey(cut); err != nil {
			rt.Fatalf("clip(%q) = %q: %v", a, cut[len(head)-4:], err)
		}
		if got, want := Compare(key, cut) < 0, utf16Compare(key, bound) < 0; got != want {
			rt.Fatalf("%q below %q: %v, below clip %q: %v", b, a, want, cut, got)
		}
	})
}

func onlyLegal(s string) string {
	return strings.Map(func(r rune) rune {
		if legal(r) {
			return r
		}
		return -1
	}, s)
}

// TestNextRune walks all characters in order, once each.
func TestNextRune(t *testing.T) {
	var walked []rune
	for r, ok := rune(0), true; ok; r, ok = nextRune(r) {
		walked = append(walked, r)
	}
	if want := 0x110000 - 0x800; len(walked) != want {
		t.Fatalf("%d characters, want %d", len(walked), want)
	}
	if !slices.IsSortedFunc(walked, func(a, b rune) int { return utf16Compare(string(a), string(b)) }) {
		t.Fatal("not in UTF-16 order")
	}
}

// TestEveryRune escapes every character there is: legal, reversible, in order.
func TestEveryRune(t *testing.T) {
	before, count := "", 0
	for r, ok := rune(0), true; ok; r, ok = nextRune(r) {
		key := Join("", String(string(r)))
		assert.NoError(assert.Fatal(t), CheckKey(key), "%U", r)
		if strings.ContainsAny(key, "%' ") {
			t.Fatalf("%U: %q holds a character that must be escaped", r, key)
		}
		if count > 0 && Compare(before, key) >= 0 {
			t.Fatalf("%U: %q is not above %q", r, key, before)
		}
		if got, ok := unescape(key); !ok || got != string(r) {
			t.Fatalf("%U: %q reads as %q, %v", r, key, got, ok)
		}
		before = key
		count++
	}
	t.Logf("%d characters", count)
}

// TestEverySpecialText puts all texts of up to two special characters in order:
// no key may be out of it, with anything behind the part.
func TestEverySpecialText(t *testing.T) {
	texts := []string{""}
	for _, a := range specials {
		texts = append(texts, string(a))
		for _, b := range specials {
			texts = append(texts, string([]rune{a, b}))
		}
	}
	slices.SortFunc(texts, utf16Compare)
	for i, text := range texts[1:] {
		low, high := texts[i], text
		for _, keys := range [][2]string{
			{Join("", String(low)), Join("", String(high))},
			{Join("", String(low), String("\U0010FFFF\uFFFF")), Join("", String(high), String(""))},
			{Join("", String(low), Int(9, 1)), Join("", String(high), Int(-9, 1))},
		} {
			if Compare(keys[0], keys[1]) >= 0 {
				t.Fatalf("%q, %q: keys %q, %q", low, high, keys[0], keys[1])
			}
		}
	}
	t.Logf("%d texts", len(texts))
}
