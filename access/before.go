package access

import (
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// fill stands for all that can follow in a key. Keys made by compoundkey go on with U+FFFC at most, so what is left out
// by stopping here are only keys that somebody else has made and that hold U+FFFD to U+FFFF in just this place.
// U+FFFF would leave out fewer still, but is no character, and a proxy or a parser of addresses may refuse it.
const fill = '\uFFFD'

// before returns the key that ends a range which the service includes its end in, where end itself is not to be in it:
// the greatest key below end, but for the keys that fill leaves out. It is always below end. ok is false where nothing is
// below end.
//
// Keys are compared by UTF-16 code units. Below p+c come p itself, and p+b+anything for every b below c. So the key is p,
// the last legal character before c, and fill; or just p where no legal character is before c.
func before(end string) (last string, ok bool) {
	if end == "" {
		return "", false
	}
	c, n := utf8.DecodeLastRuneInString(end)
	p := end[:len(end)-n]
	b, ok := legalBefore(c, compoundkey.MaxUnits-unitsOf(p))
	if !ok {
		return p, true
	}
	last = p + string(b)
	if unitsOf(last) < compoundkey.MaxUnits {
		last += string(fill)
	}
	return last, true
}

// legalBefore is the last character before c, in the order of keys, that a key can hold and that needs no more than units
// code units; ok is false when there is none.
func legalBefore(c rune, units int) (rune, bool) {
	for c = characterBefore(c); c >= ' '; c = characterBefore(c) {
		if (c <= 0xFFFF || units >= 2) && compoundkey.CheckKey(string(c)) == nil {
			return c, true
		}
		if c > 0xFFFF {
			c = 0x10000 // no pair fits: on to what is before all of them
		}
	}
	return 0, false
}

// characterBefore is the character before c in the order of UTF-16 code units, where those above U+FFFF, being
// surrogates, come between U+D7FF and U+E000; -1 before the first.
func characterBefore(c rune) rune {
	switch c {
	case 0xE000:
		return utf8.MaxRune
	case 0x10000:
		return 0xD7FF
	}
	return c - 1
}

// unitsOf is the size of a key in UTF-16 code units.
func unitsOf(key string) int {
	units := 0
	for _, r := range key {
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return units
}
