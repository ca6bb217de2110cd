package wire

import "strings"

// IsETag reports whether text has the shape of an entity tag: W/"x" or "x", ASCII without blanks. A tag that was lost
// or cut on its way would be refused as a conflict only later, by an innocent write.
func IsETag(text string) bool {
	text = strings.TrimPrefix(text, "W/")
	if len(text) < 3 || text[0] != '"' || text[len(text)-1] != '"' {
		return false
	}
	for _, c := range []byte(text[1 : len(text)-1]) {
		if c <= ' ' || c == '"' || c >= 0x7F {
			return false
		}
	}
	return true
}
