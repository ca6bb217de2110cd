package indexentities

import (
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/tables"
)

const segmentEnd = "/"

// groupPrefix begins the names of a group's blobs.
func groupPrefix(name, group string) string {
	prefix := blobio.Segment(name) + segmentEnd
	if group == Global {
		return prefix
	}
	return prefix + blobio.Segment(compoundkey.Join("", compoundkey.String(group))) + segmentEnd
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
	full := prefix + blobio.Segment(key)
	if err := blobio.CheckName(full); err != nil {
		return "", tables.Invalid("", err)
	}
	return full, nil
}

// valueOf is the inverse of blobName for a blob under a group's prefix. It returns false for a list of
// another group: for a global index, the names of all other groups' lists also begin with the prefix.
func valueOf(prefix, name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" || strings.Contains(rest, segmentEnd) {
		return "", false
	}
	return blobio.ParseSegment(rest), true
}
