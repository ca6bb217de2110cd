package indexentities

import (
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	segmentEnd  = "/"
	longestName = 1024 // characters of a blob's name
)

// segment is a text that compoundkey has written as a part of a blob's name. A part that is empty or ends with a dot is
// not safe there, on its way through addresses: "..", for one, is a way up. A '!' follows it then, with which no such text
// ends.
func segment(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text + string(numberMark)
	}
	return text
}

// groupPrefix begins the names of a group's blobs.
func groupPrefix(name, group string) string {
	prefix := segment(name) + segmentEnd
	if group == Global {
		return prefix
	}
	return prefix + segment(compoundkey.Join("", compoundkey.String(group))) + segmentEnd
}

// blobName names the blob of a value.
func blobName(name, group string, value compoundkey.Part) (string, error) {
	prefix, key := groupPrefix(name, group), compoundkey.Join("", value)
	if err := compoundkey.Err(key); err != nil {
		return "", err
	}
	if err := compoundkey.Err(compoundkey.Join("", compoundkey.String(group))); err != nil {
		return "", err
	}
	full := prefix + segment(key)
	if n := utf8.RuneCountInString(full); n > longestName {
		return "", &tables.Error{Kind: tables.ErrTooLarge,
			Err: &edm.SizeError{What: "a blob's name", Size: n, Limit: longestName, Unit: "characters"}}
	}
	return full, nil
}

// valueOf is the inverse of blobName for a blob under a group's prefix. It returns false for a list of another group: the
// prefix of a global index is also the beginning of their names.
func valueOf(prefix, name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" || strings.Contains(rest, segmentEnd) {
		return "", false
	}
	return strings.TrimSuffix(rest, string(numberMark)), true
}
