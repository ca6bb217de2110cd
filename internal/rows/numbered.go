package rows

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

const (
	numberMark   = "!" // compoundkey never writes this character before a digit
	numberDigits = 4
	behindDigits = ":" // the character after '9'

	// MaxFirst is the maximum length of the first row's key in UTF-16 units: the keys of further rows append a number.
	MaxFirst = compoundkey.MaxUnits - len(numberMark) - numberDigits
)

// Numbered returns the key of a row of a value that needs several rows: the first row's key, '!' and the row's number.
// The first row has number 0, and only its key.
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

// AllNumbered returns the range of the keys of a value's rows. No other key that compoundkey makes lies in
// the range, since in it another character than '!' follows. Keys that compoundkey did not make may lie in
// the range.
func AllNumbered(first string) compoundkey.Span {
	return compoundkey.Range(first, first+numberMark+behindDigits)
}
