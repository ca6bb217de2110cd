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

// segment is a key as a part of a blob's name, as compoundkey writes text: '/' and what does not belong in an address are
// escaped. A part that is empty or ends with a dot is not safe there: "..", for one, is a way up. A '!' follows it then,
// with which no such text ends.
func segment(key string) string {
	text := compoundkey.Join("", compoundkey.String(key))
	if text == "" || strings.HasSuffix(text, ".") {
		return text + string(numberMark)
	}
	return text
}

// blobPrefix begins the names of the blobs of all series of a kind. Tables know no case.
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
		return "", invalid(&edm.SizeError{What: "a blob's name", Size: n, Limit: longestName, Unit: "characters"})
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
