package odata

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// UnprintableError says why a tree or value cannot be written in the filter language. It never contains the value.
type UnprintableError struct {
	Property string // the property in the comparison; "" for a value outside of a comparison
	Reason   string
}

func (e *UnprintableError) Error() string {
	if e.Property == "" {
		return "filter: " + e.Reason
	}
	return "filter on " + strconv.Quote(e.Property) + ": " + e.Reason
}

// AppendLiteral appends v as a literal: a string in single quotes with its own quotes doubled, 5, 5L, 5.0, true, X'0aff',
// datetime'2014-08-22T00:50:32.1234567Z', guid'c9da6455-213d-42c9-9a79-3e9149a57833'. NaN, the infinities, null and invalid
// UTF-8 have no literal: it returns an *UnprintableError and dst unchanged.
func AppendLiteral(dst []byte, v edm.Value) ([]byte, error) {
	switch v.Type() {
	case edm.TypeString:
		s, _ := v.Str()
		if !utf8.ValidString(s) {
			return dst, &UnprintableError{Reason: "a string is not valid UTF-8, which the service refuses; compare with a valid one"}
		}
		return appendQuoted(dst, s), nil
	case edm.TypeBinary:
		b, _ := v.Bytes()
		dst = hex.AppendEncode(append(dst, "X'"...), b)
		return append(dst, '\''), nil
	case edm.TypeBoolean:
		b, _ := v.Bool()
		return strconv.AppendBool(dst, b), nil
	case edm.TypeInt32, edm.TypeInt64:
		n, _ := v.Int()
		dst = strconv.AppendInt(dst, n, 10)
		if v.Type() == edm.TypeInt64 {
			dst = append(dst, 'L')
		}
		return dst, nil
	case edm.TypeDouble:
		f, _ := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, &UnprintableError{Reason: "the value is NaN or infinite, for which filters have no literal; compare with a finite number"}
		}
		return appendDouble(dst, f), nil
	case edm.TypeDateTime:
		return appendPrefixed(dst, "datetime", v), nil
	case edm.TypeGuid:
		return appendPrefixed(dst, "guid", v), nil
	}
	return dst, &UnprintableError{Reason: "the value is null, which the service neither stores nor compares; compare with another value"}
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '\'')
	for i := range len(s) {
		if s[i] == '\'' {
			dst = append(dst, '\'')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '\'')
}

// appendDouble always writes a decimal point, because without one the service reads an Int32. It never writes
// an exponent, because Azurite interprets 1e300 as the name of a property, and returns every row that lacks
// such a property.
func appendDouble(dst []byte, f float64) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendPrefixed appends prefix'text', where text is the content of the value's JSON string.
func appendPrefixed(dst []byte, prefix string, v edm.Value) []byte {
	dst = append(dst, prefix...)
	start := len(dst)
	dst = edm.AppendValue(dst, v)
	dst[start], dst[len(dst)-1] = '\'', '\''
	return dst
}
