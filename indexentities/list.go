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
	first tables.Key // key of row number 0, whether or not it exists
	rows  []listRow  // the existing rows, by number
}

// listRow is one row of a list. ids are sorted.
type listRow struct {
	number int
	ids    []string
	etag   azcore.ETag // "" if the row is not stored yet
	edited bool        // ids differ from the stored ones, or the row must be rewritten unchanged
}

// ids returns all ids without duplicates. Two processes that enter the same id at the same time may choose
// different rows, so an id can be stored twice.
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

// sortedIDs sorts ids as the service sorts keys, and drops repeated ones. A tab sorts below every character that a key may contain, so
// "partition TAB row" sorts by partition first.
func sortedIDs(ids []string) []string {
	slices.SortFunc(ids, compoundkey.Compare)
	return slices.Compact(ids)
}

func (r *listRow) holds(id string) bool {
	_, found := slices.BinarySearchFunc(r.ids, id, compoundkey.Compare)
	return found
}

// enter adds an id to one row of the list, unless the list already has it. With touch the row is written even
// if it already holds the id, so that its ETag changes.
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
		if ids := slices.Insert(slices.Clone(row.ids), at, id); hasRoom(ids) {
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
