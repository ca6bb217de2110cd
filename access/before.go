package access

import (
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// fill ends a key that must sort above every key of package compoundkey that continues the same text. In a
// key of compoundkey the next character is at most U+FFFC. So a range that ends with fill omits only keys of
// other programs that have U+FFFD to U+FFFF at this position. U+FFFF would omit fewer still, but it is not a
// character, and a proxy or URL parser may refuse it.
const fill = '\uFFFD'

// before returns the last key below end. The service's ranges include their end, so a range up to end,
// without end, must end at the key before it. The keys that fill omits are below end, too, but lie outside of
// the resulting range. ok is false if no key is below end.
//
// Keys are compared by UTF-16 code units. If end is p followed by the character c, the keys below end are p
// itself, and p+b+anything for every character b below c. So the key is p, the last legal character before c,
// and fill; or just p if no legal character is before c.
func before(end string) (last string, ok bool) {
	if end == "" {
		return "", false
	}
	c, n := utf8.DecodeLastRuneInString(end)
	p := end[:len(end)-n]
	b, ok := legalBefore(c, compoundkey.MaxUnits-edm.Units(p))
	if !ok {
		return p, true
	}
	last = p + string(b)
	if edm.Units(last) < compoundkey.MaxUnits {
		last += string(fill)
	}
	return last, true
}

// legalBefore returns the last character before c, in the order of keys, that is legal in a key and takes at most units code units; ok is
// false if there is none.
func legalBefore(c rune, units int) (rune, bool) {
	for c = characterBefore(c); c >= ' '; c = characterBefore(c) {
		if (c <= 0xFFFF || units >= 2) && compoundkey.CheckKey(string(c)) == nil {
			return c, true
		}
		if c > 0xFFFF {
			c = 0x10000 // no surrogate pair fits: continue with the character before all of them
		}
	}
	return 0, false
}

// characterBefore is the character before c in the order of UTF-16 code units, where those above U+FFFF,
// being surrogates, sort between U+D7FF and U+E000; or -1 if c is the first character.
func characterBefore(c rune) rune {
	switch c {
	case 0xE000:
		return utf8.MaxRune
	case 0x10000:
		return 0xD7FF
	}
	return c - 1
}
