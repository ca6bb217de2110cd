package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/google/uuid"
)

// AppendProperty appends `"name":value`, preceded by the type annotation if a reader could not infer the type from the value. It always
// annotates a Double, since a reader would take a whole number for an integer. name must be an identifier.
func AppendProperty(dst []byte, name string, v Value) []byte {
	switch v.typ {
	case TypeInt64, TypeDouble, TypeDateTime, TypeGuid, TypeBinary:
		dst = append(append(dst, '"'), name...)
		dst = append(dst, `@odata.type":"`...)
		dst = append(append(dst, v.typ.String()...), `",`...)
	}
	dst = append(append(dst, '"'), name...)
	return AppendValue(append(dst, `":`...), v)
}

// AppendValue appends the JSON of the value alone.
func AppendValue(dst []byte, v Value) []byte {
	switch v.typ {
	case TypeString:
		return AppendQuoted(dst, v.string)
	case TypeBinary:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(v.string))
		return append(dst, '"')
	case TypeBoolean:
		return strconv.AppendBool(dst, v.num == 1)
	case TypeInt32:
		return strconv.AppendInt(dst, int64(v.num), 10)
	case TypeInt64:
		return append(strconv.AppendInt(append(dst, '"'), int64(v.num), 10), '"')
	case TypeDouble:
		return appendDouble(dst, math.Float64frombits(v.num))
	case TypeDateTime:
		return append(AppendDateTime(append(dst, '"'), int64(v.num)), '"')
	case TypeGuid:
		u, _ := v.UUID()
		return append(appendGuid(append(dst, '"'), u), '"')
	}
	return append(dst, "null"...)
}

func appendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

func appendGuid(dst []byte, u uuid.UUID) []byte {
	for i, part := range [][]byte{u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string. s must be valid UTF-8; Value.Check and the rules for keys ensure that.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7F && (c != 0xE2 || !separatesLines(s[i:])) {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case 0xE2:
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[s[i+2]&15])
			i += 2
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// separatesLines reports whether s begins with U+2028 or U+2029. JSON allows both characters unescaped, but
// Azurite parses the rows of a transaction with a regular expression that stops at a line separator.
func separatesLines(s string) bool {
	return len(s) > 2 && s[1] == 0x80 && s[2]&0xFE == 0xA8
}

// FromText makes a value of the annotated type out of the text of a JSON string. text is not kept.
func FromText(t Type, text []byte) (Value, error) {
	switch t {
	case TypeString:
		return String(string(text)), nil
	case TypeBinary:
		return parseBinary(text)
	case TypeInt32, TypeInt64:
		bits := 64
		if t == TypeInt32 {
			bits = 32
		}
		if n, err := strconv.ParseInt(string(text), 10, bits); err == nil {
			return Value{typ: t, num: uint64(n)}, nil
		}
	case TypeDouble:
		if f, ok := parseDouble(text); ok {
			return Double(f), nil
		}
	case TypeDateTime:
		ticks, err := parseDateTime(text)
		if err != nil {
			return Value{}, err
		}
		return dateTimeOfTicks(ticks), nil
	case TypeGuid:
		if u, err := uuid.ParseBytes(text); err == nil && len(text) == 36 { // ParseBytes also accepts longer and shorter forms
			return Guid(u), nil
		}
	case TypeBoolean:
		switch string(text) {
		case "true":
			return Boolean(true), nil
		case "false":
			return Boolean(false), nil
		}
	}
	return Value{}, fmt.Errorf("the text of %d characters is not a valid %s", len(text), t)
}

func parseBinary(text []byte) (Value, error) {
	var small [256]byte // most texts are keys and hashes, which fit into small
	decoded := small[:]
	if n := base64.StdEncoding.DecodedLen(len(text)); n > len(small) {
		decoded = make([]byte, n)
	}
	n, err := base64.StdEncoding.Decode(decoded, text)
	if err != nil {
		return Value{}, fmt.Errorf("the text of %d characters is not valid base64", len(text))
	}
	return Binary(decoded[:n]), nil
}

func parseDouble(text []byte) (float64, bool) {
	switch string(text) {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "INF":
		return math.Inf(1), true
	case "-Infinity", "-INF":
		return math.Inf(-1), true
	}
	for _, c := range text {
		// Check the characters first: ParseFloat also accepts forms that other readers reject, such as inf,
		// 0x1p3 and 1_000.
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// FromNumber makes a value of the annotated type of a JSON number. Without annotation, as the service writes them, a
// number with a point or an exponent is an Edm.Double, and any other number an Edm.Int32, or an Edm.Int64 if it needs
// more than 32 bits.
func FromNumber(t Type, text []byte) (Value, error) {
	switch t {
	case TypeInt32, TypeInt64, TypeDouble:
		return FromText(t, text)
	case TypeNull:
	default:
		return Value{}, fmt.Errorf("got a number, want %s", t)
	}
	if bytes.ContainsAny(text, ".eE") {
		return FromText(TypeDouble, text)
	}
	if v, err := FromText(TypeInt32, text); err == nil {
		return v, nil
	}
	return FromText(TypeInt64, text)
}

// Retype converts a value that was read before its annotation to the annotated type.
func (v Value) Retype(t Type) (Value, error) {
	switch {
	case v.typ == t || v.typ == TypeNull:
		return v, nil
	case v.typ == TypeString:
		return FromText(t, []byte(v.string))
	case v.typ == TypeInt32 && t == TypeInt64:
		return Int64(int64(v.num)), nil
	case (v.typ == TypeInt32 || v.typ == TypeInt64) && t == TypeDouble:
		return Double(float64(int64(v.num))), nil
	}
	return Value{}, fmt.Errorf("got %s, want %s", v.typ, t)
}
