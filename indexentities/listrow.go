package indexentities

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	countProperty = "Count"
	keysProperty  = "Keys" // and Keys1, Keys2 ...

	idSeparator = "\n"   // keys contain no control characters
	textUnits   = 30_000 // UTF-16 units per property; the service allows 32,768
	mostTexts   = 15     // properties per row: 900,000 bytes; the service allows 1,048,576
	mostRows    = 10_000 // rows per list: row numbers have four digits
)

// textName returns the name of the i-th property of ids in a row.
func textName(i int) string {
	if i == 0 {
		return keysProperty
	}
	return keysProperty + strconv.Itoa(i)
}

// hasRoom reports whether a row can hold these ids.
func hasRoom(ids []string) bool { return len(cuts(ids)) <= mostTexts }

// cuts returns, for each property of a row, the index after its last id; each property takes as many ids as it has room for.
func cuts(ids []string) []int {
	var ends []int
	from, units := 0, 0
	for i, id := range ids {
		n := edm.Units(id)
		if i > from {
			if n += 1 + units; n > textUnits {
				ends = append(ends, i)
				from, n = i, n-1-units
			}
		}
		units = n
	}
	return append(ends, len(ids))
}

// encodeIDs returns the properties of a row with these ids.
func encodeIDs(ids []string) tables.Properties {
	p := tables.Properties{{Name: countProperty, Value: tables.Int32(int32(len(ids)))}}
	from := 0
	for i, end := range cuts(ids) {
		p = append(p, tables.Property{Name: textName(i), Value: tables.String(strings.Join(ids[from:end], idSeparator))})
		from = end
	}
	return p
}

// decodeIDs reads the ids of a row. The count distinguishes a complete row from one that was cut off or
// edited by hand: if a damaged row were accepted, the next change would write it back without the missing
// ids.
func decodeIDs(p tables.Properties) ([]string, error) {
	count, ok := p.Get(countProperty).Int()
	if !ok {
		return nil, fmt.Errorf("a row of the list has no property %s; delete the rows of the list and run Repository.Rebuild", countProperty)
	}
	var ids []string
	for i := 0; ; i++ {
		text, ok := p.Get(textName(i)).Text()
		if !ok {
			break
		}
		ids = append(ids, strings.Split(text, idSeparator)...)
	}
	if int64(len(ids)) != count {
		return nil, fmt.Errorf("property %s of a row of the list is %d, but the row has %d keys; delete the rows of the list and run Repository.Rebuild", countProperty, count, len(ids))
	}
	return sortedIDs(ids), nil
}

// tooLarge returns the error for a change after which a list in rows would be too large.
func tooLarge(format string, args ...any) error {
	return &tables.Error{Kind: tables.ErrTooLarge, Err: fmt.Errorf(format+"; keep the lists in blobs, with NewInBlobs", args...)}
}
