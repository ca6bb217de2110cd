package indexentities

import (
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// list is the stored list of one value, in rows.
type list struct {
	first tables.Key // of the row with the number 0, whether it is there or not
	rows  []listRow  // those that are there, by number
}

// listRow is one row of a list. ids are sorted.
type listRow struct {
	number int
	ids    []string
	etag   azcore.ETag
}

// ids returns all ids, each once: two holders of intents who enter one at the same time may choose different rows.
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

// sortedIDs sorts ids as the service sorts keys, and drops repeated ones. A tab sorts below all that a key may hold, so
// that "partition TAB row" sorts by partition first.
func sortedIDs(ids []string) []string {
	slices.SortFunc(ids, compoundkey.Compare)
	return slices.Compact(ids)
}

func (r *listRow) holds(id string) bool {
	_, found := slices.BinarySearchFunc(r.ids, id, compoundkey.Compare)
	return found
}

// enter returns what to write so that the list holds id, in one row. With touch the row is written also when it holds id
// already, so that its ETag changes.
func (l *list) enter(id string, touch bool) ([]driver.RowOperation, error) {
	var operations []driver.RowOperation
	found := false
	for i := range l.rows {
		row := &l.rows[i]
		switch {
		case !row.holds(id):
		case found:
			operations = append(operations, l.without(row, id))
		default:
			found = true
			if touch {
				operations = append(operations, l.write(driver.ReplaceRow, row.number, row.etag, encodeIDs(row.ids)))
			}
		}
	}
	if found {
		return operations, nil
	}
	for i := range l.rows {
		row := &l.rows[i]
		at, _ := slices.BinarySearchFunc(row.ids, id, compoundkey.Compare)
		if ids := slices.Insert(slices.Clone(row.ids), at, id); hasRoom(ids) {
			return append(operations, l.write(driver.ReplaceRow, row.number, row.etag, encodeIDs(ids))), nil
		}
	}
	number, err := l.free()
	if err != nil {
		return nil, err
	}
	return append(operations, l.write(driver.InsertRow, number, "", encodeIDs([]string{id}))), nil
}

// leave returns what to write so that the list does not hold id.
func (l *list) leave(id string) []driver.RowOperation {
	var operations []driver.RowOperation
	for i := range l.rows {
		if l.rows[i].holds(id) {
			operations = append(operations, l.without(&l.rows[i], id))
		}
	}
	return operations
}

// without writes a row without an id that it holds, or deletes it.
func (l *list) without(row *listRow, id string) driver.RowOperation {
	if len(row.ids) == 1 {
		return l.write(driver.DeleteRow, row.number, row.etag, nil)
	}
	at, _ := slices.BinarySearchFunc(row.ids, id, compoundkey.Compare)
	left := slices.Delete(slices.Clone(row.ids), at, at+1)
	return l.write(driver.ReplaceRow, row.number, row.etag, encodeIDs(left))
}

func (l *list) write(verb driver.RowVerb, number int, etag azcore.ETag, p tables.Properties) driver.RowOperation {
	key := tables.Key{Partition: l.first.Partition, Row: rows.Numbered(l.first.Row, number)}
	return driver.RowOperation{Verb: verb, Row: &tables.Entity{Key: key, ETag: etag, Properties: p}}
}

// free returns the least number that no row has.
func (l *list) free() (int, error) {
	for number := range mostRows {
		if number == len(l.rows) || l.rows[number].number != number {
			return number, nil
		}
	}
	return 0, tooLarge("the list has %d rows, the maximum", mostRows)
}
