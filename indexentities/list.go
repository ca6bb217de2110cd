package indexentities

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// list is the list of one value in rows of a table.
type list struct {
	first tables.Key // key of row number 0, whether or not it exists
	rows  []listRow  // the existing rows, by number
}

// listRow is one row of a list. ids are sorted.
type listRow struct {
	number int
	ids    []string
	etag   azcore.ETag // "" if the row is not stored yet
	edited bool        // the row must be written, since its ids or (with touch) only its ETag must change
}

// ids returns all ids without duplicates: two processes that enter the same id at the same time may choose different rows.
func (l *list) ids() []string {
	if len(l.rows) == 1 {
		return l.rows[0].ids
	}
	var all []string
	for i := range l.rows {
		all = append(all, l.rows[i].ids...)
	}
	return sortedIDs(all)
}

// sortedIDs sorts ids in the service's order of keys, and drops duplicates. An id "partition TAB row" sorts by partition
// first, since a tab sorts before every character that a key may contain.
func sortedIDs(ids []string) []string {
	slices.SortFunc(ids, compoundkey.Compare)
	return slices.Compact(ids)
}

func (r *listRow) holds(id string) bool {
	_, found := slices.BinarySearchFunc(r.ids, id, compoundkey.Compare)
	return found
}

// enter adds an id to one row of the list. If a row already has it, that row is written only if touch is set, so that
// its ETag changes.
func (l *list) enter(id string, touch bool) error {
	found := false
	for i := range l.rows {
		row := &l.rows[i]
		switch {
		case !row.holds(id):
		case found:
			row.remove(id)
		default:
			found = true
			row.edited = row.edited || touch
		}
	}
	if found {
		return nil
	}
	for i := range l.rows {
		row := &l.rows[i]
		at, _ := slices.BinarySearchFunc(row.ids, id, compoundkey.Compare)
		if ids := slices.Insert(slices.Clone(row.ids), at, id); len(cuts(ids)) <= mostTexts {
			row.ids, row.edited = ids, true
			return nil
		}
	}
	number, err := l.free()
	if err != nil {
		return err
	}
	l.rows = slices.Insert(l.rows, number, listRow{number: number, ids: []string{id}, edited: true})
	return nil
}

// leave removes an id from the list.
func (l *list) leave(id string) {
	for i := range l.rows {
		if l.rows[i].holds(id) {
			l.rows[i].remove(id)
		}
	}
}

// remove removes an id that the row holds.
func (r *listRow) remove(id string) {
	at, _ := slices.BinarySearchFunc(r.ids, id, compoundkey.Compare)
	r.ids, r.edited = slices.Delete(slices.Clone(r.ids), at, at+1), true
}

// writes returns the operations that make the stored list equal to this one.
func (l *list) writes() (operations []driver.RowOperation) {
	for i := range l.rows {
		row := &l.rows[i]
		switch stored := row.etag != ""; {
		case !row.edited || !stored && len(row.ids) == 0:
		case !stored:
			operations = append(operations, l.write(driver.InsertRow, row.number, "", encodeIDs(row.ids)))
		case len(row.ids) == 0:
			operations = append(operations, l.write(driver.DeleteRow, row.number, row.etag, nil))
		default:
			operations = append(operations, l.write(driver.ReplaceRow, row.number, row.etag, encodeIDs(row.ids)))
		}
	}
	return operations
}

func (l *list) write(verb driver.RowVerb, number int, etag azcore.ETag, p tables.Properties) driver.RowOperation {
	key := tables.Key{Partition: l.first.Partition, Row: rows.Numbered(l.first.Row, number)}
	return driver.RowOperation{Verb: verb, Row: &tables.Entity{Key: key, ETag: etag, Properties: p}}
}

// free returns the smallest number that no row of the list has.
func (l *list) free() (int, error) {
	for number := range mostRows {
		if number == len(l.rows) || l.rows[number].number != number {
			return number, nil
		}
	}
	return 0, tooLarge("the list already has %d rows, the maximum, and none has room for the key", mostRows)
}

const (
	countProperty = "Count"
	keysProperty  = "Keys" // and Keys1, Keys2 ...

	idSeparator = "\n"   // no key contains it
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

// cuts divides ids among the properties of a row, and returns for each property the index after its last id. Each property
// takes as many ids as fit.
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

// decodeIDs returns the ids of a row. It refuses a row that was edited by hand, which the count shows: otherwise the next
// change would write it back without the missing ids.
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
	return &tables.Error{Kind: tables.ErrTooLarge, Err: fmt.Errorf(format+"; use NewInTable", args...)}
}
