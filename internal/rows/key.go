package rows

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// CheckKey refuses a key that the service does not take; what is "partition key" or "row key". A key that is only too long is an
// edm.SizeError, like everything else that is too large.
func CheckKey(what, key string) error {
	err := compoundkey.CheckKey(key)
	if err == nil {
		return nil
	}
	if n := edm.Units(key); n > compoundkey.MaxUnits {
		return &edm.SizeError{What: "a " + what, Size: n, Limit: compoundkey.MaxUnits, Unit: "UTF-16 units"}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// CheckKeys is CheckKey of both keys of a row.
func CheckKeys(partition, row string) error {
	if err := CheckKey("partition key", partition); err != nil {
		return err
	}
	return CheckKey("row key", row)
}
