package indexentities

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A place names one list: in rows by partition and row key of the first row, in blobs by the blob's name.
// Intents and audits identify a list by its place.

// checkRowPlace refuses a place outside of the partitions of an index's lists.
func checkRowPlace(name, place string) error {
	key, err := driver.SplitKey(place)
	if err != nil {
		return err
	}
	if key.Partition != compoundkey.Join(name) && !compoundkey.All().Under(name).Contains(key.Partition) {
		return fmt.Errorf("the message names a list in partition %q, which does not belong to index %q; check who can put messages on the queue", key.Partition, name)
	}
	return nil
}

// rowPlace checks the key of a list's first row, and returns it as a place.
func rowPlace(partition, row string) (string, error) {
	for _, key := range []string{partition, row} {
		if err := compoundkey.Err(key); err != nil {
			return "", err
		}
	}
	if n := edm.Units(row); n > rows.MaxFirst {
		return "", tables.Invalid("", &edm.SizeError{What: "the row key of a list", Size: n, Limit: rows.MaxFirst, Unit: "UTF-16 units"})
	}
	return driver.JoinKey(tables.Key{Partition: partition, Row: row}), nil
}
