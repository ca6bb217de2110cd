package rows

import (
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// CheckKey returns an error for a key that the service does not accept; what is "partition key" or "row key".
// If the key is only too long, the error is an edm.SizeError.
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

// CheckKeys calls CheckKey for both keys of a row.
func CheckKeys(partition, row string) error {
	if err := CheckKey("partition key", partition); err != nil {
		return err
	}
	return CheckKey("row key", row)
}

// CheckTableName returns an error for a name that the service does not accept for a table.
func CheckTableName(name string) error {
	if len(name) < 3 || len(name) > 63 {
		return fmt.Errorf("the table name has %d characters; it must have 3 to 63", len(name))
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("table name %q must have only ASCII letters and digits, and begin with a letter", name)
		}
	}
	if strings.EqualFold(name, "tables") {
		return fmt.Errorf("table name %q is reserved by the service; choose another", name)
	}
	return nil
}
