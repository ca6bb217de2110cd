// Package rows defines what packages tables and patterns share about stored rows: the names of the library's
// own properties, and the keys of values that need several rows.
package rows

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Prefix is the prefix of the names of the library's own properties. They count among the properties of an
// entity. No field and no property bag may use a name with this prefix.
const Prefix = "_tp"

// BesidePrefix begins the row keys of rows that belong to no entity and no pattern, such as the mark of a move. compoundkey writes U+FFFC only
// after a '.', so no other key begins with it.
const BesidePrefix = "\uFFFC"

// The names of the library's own properties.
const (
	WriteID     = Prefix + "Write"       // ID of the row's last write: resolves an unknown outcome
	Incarnation = Prefix + "Incarnation" // ID of the insert that created the entity; an insert after a delete has another ID
	Primary     = Prefix + "Primary"     // on a copy or a further row: the row key of the entity's own row
	Copies      = Prefix + "Copies"      // names of the patterns whose copies of the entity were written with the row
	Shared      = Prefix + "Shared"      // on a row that belongs to several entities: the name of its pattern
	Partition   = Prefix + "Partition"   // on a copy in another partition: the partition key of the entity's own row
	Version     = Prefix + "Version"     // on such a copy: the ETag that the entity's own row had when the copy was made
	Layout      = Prefix + "Layout"      // on the rows of an entity that a Layout spreads over several rows: on the first row the layout's directory, on the others "further"
	Mark        = Prefix + "Mark"        // on a copy in another partition that is not to be believed: the ID of the last change that has marked it
	Acquirer    = Prefix + "Acquirer"    // on such a copy: the ID of the change that takes the key
	Base        = Prefix + "Base"        // on such a copy: the ETag of the entity's own row from which that change started; absent for an insert
	Next        = Prefix + "Next"        // on such a copy: the entity to which a change set passes the key
)

// IsKnown reports whether this version of the library knows one of its own properties. Other names belong to a later version of the
// library; their properties are written back unchanged.
func IsKnown(name string) bool {
	switch name {
	case WriteID, Incarnation, Primary, Copies, Shared, Partition, Version, Layout, Mark, Acquirer, Base, Next:
		return true
	}
	return false
}

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

// CheckCosmosTableName is CheckTableName for Azure Cosmos DB for Table, which also accepts '-' and '_' after the first letter.
func CheckCosmosTableName(name string) error {
	return CheckTableName(strings.NewReplacer("-", "0", "_", "0").Replace(name))
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

const (
	numberMark   = "!" // compoundkey never writes this character before a digit
	numberDigits = 4
	behindDigits = ":" // the character after '9'

	// MaxFirst is the maximum length of the first row's key in UTF-16 units: the keys of further rows append a number.
	MaxFirst = compoundkey.MaxUnits - len(numberMark) - numberDigits
)

// Numbered returns the key of a row of a value that needs several rows: the first row's key, '!' and the row's number.
// The first row has number 0; nothing is appended to its key.
func Numbered(first string, number int) string {
	if number == 0 {
		return first
	}
	return fmt.Sprintf("%s%s%0*d", first, numberMark, numberDigits, number)
}

// ParseNumbered splits the key of a further row. For any other row, first is the whole key and number is 0.
func ParseNumbered(row string) (first string, number int) {
	at := len(row) - numberDigits
	if at < 1 || row[at-1:at] != numberMark || strings.Trim(row[at:], "0123456789") != "" {
		return row, 0
	}
	number, _ = strconv.Atoi(row[at:]) // never fails: the text has only digits
	return row[:at-1], number
}

// AllNumbered returns the range of the keys of a value's rows. No other key that compoundkey makes lies in the range:
// after '!' it writes no digit, but a letter or '_', which sort after the end of the range. Keys that compoundkey did
// not make may lie in the range.
func AllNumbered(first string) compoundkey.Span {
	return compoundkey.Range(first, first+numberMark+behindDigits)
}

const hashBytes = 20 // a multiple of 5, so base32 adds no padding

// Hash returns a hash of the texts in base32, which a key can contain. The hash includes the lengths of the
// texts, so that different lists of texts have different hashes.
func Hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d %s", len(text), text)
	}
	return base32.StdEncoding.EncodeToString(h.Sum(nil)[:hashBytes])
}
