package dataseries

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

// segment returns a key as a segment of a blob name, escaped as compoundkey writes text: '/' and characters that are
// unsafe in an address. An empty segment or one that ends with a dot would be unsafe (".." means the parent), so it
// gets a '!' at its end, with which no escaped text ends.
func segment(key string) string {
	text := compoundkey.Join("", compoundkey.String(key))
	if text == "" || strings.HasSuffix(text, ".") {
		return text + string(numberMark)
	}
	return text
}

// blobPrefix returns the common prefix of the names of the blobs of all series of a kind. Table names ignore case.
func (b *blobShelf) prefixOf(partition *string) string {
	prefix := strings.ToLower(b.table) + segmentEnd + b.prefix + segmentEnd
	if partition != nil {
		prefix += segment(*partition) + segmentEnd
	}
	return prefix
}

func (b *blobShelf) nameOf(key tables.Key) (string, error) {
	name := b.prefixOf(&key.Partition) + segment(key.Row)
	if n := utf8.RuneCountInString(name); n > longestName {
		return "", tables.Invalid("", &edm.SizeError{What: "a blob's name", Size: n, Limit: longestName, Unit: "characters"})
	}
	return name, nil
}

// keyOf is the reverse of nameOf.
func (b *blobShelf) keyOf(name string) (key tables.Key, ok bool) {
	rest, ok := strings.CutPrefix(name, b.prefixOf(nil))
	partition, row, two := strings.Cut(rest, segmentEnd)
	if !ok || !two || strings.Contains(row, segmentEnd) {
		return key, false
	}
	return key, keyOfSegment(partition, &key.Partition) && keyOfSegment(row, &key.Row)
}

func keyOfSegment(text string, key *string) bool {
	return compoundkey.Parse(strings.TrimSuffix(text, string(numberMark)), "", compoundkey.ToString(key)) == nil
}
