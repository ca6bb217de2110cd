package wire

import "strings"

// IsETag reports whether text has the form of an ETag: W/"x" or "x", in ASCII without spaces. Without this
// check, the library would notice an ETag that was lost or truncated in transit only when a later write fails
// with a conflict.
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
