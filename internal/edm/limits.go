package edm

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// The service's limits for one entity.
const (
	MaxProperties     = 252       // custom properties, beside PartitionKey, RowKey and Timestamp
	MaxEntitySize     = 1 << 20   // bytes: KeySize plus PropertySize for each property
	MaxStringUnits    = 32 * 1024 // UTF-16 code units, 64 KiB
	MaxBinarySize     = 64 * 1024
	MaxNameUnits      = 255
	MaxBatchOps       = 100
	MaxBatchBytes     = 4 << 20
	MaxPageSize       = 1000
	MaxComparisons    = 15
	entityOverhead    = 4
	propertyOverhead  = 8
	lengthPrefixBytes = 4
)

// Units counts the UTF-16 code units of s: the service's measure of every length.
func Units(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		// A character of four bytes in UTF-8 is two units; any other character is one unit.
		switch c := s[i]; {
		case c < 0x80 || c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}

// StoredSize returns the number of bytes that the value adds to the size of an entity.
func (v Value) StoredSize() int {
	switch v.typ {
	case TypeString:
		return lengthPrefixBytes + 2*Units(v.string)
	case TypeBinary:
		return lengthPrefixBytes + len(v.string)
	case TypeInt64, TypeDouble, TypeDateTime:
		return 8
	case TypeGuid:
		return 16
	case TypeInt32:
		return 4
	case TypeBoolean:
		return 1
	}
	return 0
}

// KeySize returns the size in bytes of an entity without properties.
func KeySize(partitionKey, rowKey string) int {
	return entityOverhead + 2*Units(partitionKey) + 2*Units(rowKey)
}

// PropertySize returns the number of bytes that a property adds to the size of an entity.
func PropertySize(name string, v Value) int {
	return propertyOverhead + 2*Units(name) + v.StoredSize()
}

// CheckName returns an error for a name that a property cannot have. A name is a C# identifier of at most 255
// units.
func CheckName(name string) error {
	if IsPlainName(name) {
		return nil
	}
	if name == "" {
		return fmt.Errorf("a property name is empty; give a name")
	}
	if n := Units(name); n > MaxNameUnits {
		return fmt.Errorf("a property name has %d characters; it must have at most %d", n, MaxNameUnits)
	}
	for i, r := range name {
		letter := r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
		inner := unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r) || unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Cf, r)
		if r == utf8.RuneError || !letter && (i == 0 || !inner) {
			return fmt.Errorf("property name %q has %[2]q at byte %[3]d; a name must have only letters, digits and underscores, and begin with no digit", name, r, i)
		}
	}
	return nil
}

// IsPlainName is a cheap sufficient test for CheckName: ASCII letters, digits and underscores.
func IsPlainName(name string) bool {
	if name == "" || len(name) > MaxNameUnits {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Check returns an error for a value that the service would not store.
func (v Value) Check() error {
	switch v.typ {
	case TypeNull:
		return fmt.Errorf("the property has no value; leave it out or set one")
	case TypeString:
		if len(v.string) > MaxStringUnits {
			if n := Units(v.string); n > MaxStringUnits {
				return &SizeError{What: "string", Size: n, Limit: MaxStringUnits, Unit: "UTF-16 units"}
			}
		}
		if !utf8.ValidString(v.string) {
			return fmt.Errorf("a string of %d bytes is not valid UTF-8; store such bytes in a Binary property ([]byte)", len(v.string))
		}
	case TypeBinary:
		if len(v.string) > MaxBinarySize {
			return &SizeError{What: "binary", Size: len(v.string), Limit: MaxBinarySize, Unit: "bytes"}
		}
	case TypeDateTime:
		if ticks := int64(v.num); ticks < minDateTimeTicks || ticks > maxDateTimeTicks {
			return fmt.Errorf("the date is before 1601 or after 9999; the service stores only the years between")
		}
	}
	return nil
}

// SizeError says that something is larger than the service allows.
type SizeError struct {
	What        string
	Size, Limit int
	Unit        string
	Library     int // how many of Size are the library's own, 0 if that does not matter
}

func (e *SizeError) Error() string {
	whose := ""
	if e.Library > 0 {
		whose = fmt.Sprintf(" (%d of yours and %d of the library's)", e.Size-e.Library, e.Library)
	}
	return fmt.Sprintf("%s of %d %s%s is over the limit of %d", e.What, e.Size, e.Unit, whose, e.Limit)
}
