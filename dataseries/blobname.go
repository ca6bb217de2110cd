package dataseries

import (
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/tables"
)

const segmentEnd = "/"

func segment(key string) string {
	return blobio.Segment(compoundkey.Join("", compoundkey.String(key)))
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
	if err := blobio.CheckName(name); err != nil {
		return "", tables.Invalid("", err)
	}
	return name, nil
}

// keyOf is the inverse of nameOf.
func (b *blobShelf) keyOf(name string) (key tables.Key, ok bool) {
	rest, ok := strings.CutPrefix(name, b.prefixOf(nil))
	partition, row, two := strings.Cut(rest, segmentEnd)
	if !ok || !two || strings.Contains(row, segmentEnd) {
		return key, false
	}
	return key, keyOfSegment(partition, &key.Partition) && keyOfSegment(row, &key.Row)
}

func keyOfSegment(text string, key *string) bool {
	return compoundkey.Parse(blobio.ParseSegment(text), "", compoundkey.ToString(key)) == nil
}
