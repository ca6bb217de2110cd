package odata

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// value returns the value of a string or number token.
func (t token) value() (edm.Value, error) {
	if t.kind == kindNumber {
		return t.number()
	}
	text := strings.ReplaceAll(t.text, "''", "'")
	switch t.prefix {
	case "x", "binary":
		b, err := hex.DecodeString(text)
		if err != nil {
			return edm.Value{}, t.invalid("a binary literal must be pairs of hexadecimal digits, such as X'0aff'")
		}
		return edm.Binary(b), nil
	case "guid":
		v, err := edm.FromText(edm.TypeGuid, []byte(text))
		if err != nil {
			return edm.Value{}, t.invalid("a guid literal must have 36 characters, in groups of 8-4-4-4-12")
		}
		return v, nil
	case "datetime":
		return t.dateTime(text)
	}
	return edm.String(text), nil
}

func (t token) invalid(reason string) error { return &SyntaxError{Pos: t.pos, Reason: reason} }

// dateTime also accepts the forms in which OData allows the Z, the seconds or the time to be omitted. All times are UTC.
func (t token) dateTime(text string) (edm.Value, error) {
	if v, err := edm.FromText(edm.TypeDateTime, []byte(text)); err == nil {
		return v, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04Z", time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if v, err := edm.DateTime(at); err == nil {
			return v, nil
		}
	}
	return edm.Value{}, t.invalid("a datetime literal must be yyyy-mm-ddThh:mm:ss with up to seven decimals and Z")
}

// number parses -5, 5L, 5.0, 5e3 and 5d. As on the service, an integer of more than 32 bits without L is an error.
func (t token) number() (edm.Value, error) {
	shape, ok := shapeOf(t.text)
	if !ok {
		return edm.Value{}, t.invalid("a number must be digits with an optional sign, point, exponent and suffix L or D")
	}
	switch shape {
	case shapeInt64:
		n, err := strconv.ParseInt(t.text[:len(t.text)-1], 10, 64)
		if err != nil {
			return edm.Value{}, t.invalid("the integer does not fit into 64 bits; use a smaller one, or a decimal point")
		}
		return edm.Int64(n), nil
	case shapeInt32:
		n, err := strconv.ParseInt(t.text, 10, 32)
		if err != nil {
			return edm.Value{}, t.invalid("an integer that does not fit into 32 bits needs the suffix L")
		}
		return edm.Int32(int32(n)), nil
	}
	f, err := strconv.ParseFloat(strings.TrimRight(t.text, "dD"), 64)
	if err != nil {
		return edm.Value{}, t.invalid("the number does not fit into a double")
	}
	return edm.Double(f), nil
}

type numberShape uint8

const (
	shapeInt32 numberShape = iota
	shapeInt64
	shapeDouble
)

// shapeOf matches -?digits(.digits)?([eE][+-]?digits)?[dDlL]?. strconv would accept more forms, such as hexadecimal and inf.
func shapeOf(s string) (numberShape, bool) {
	shape := shapeInt32
	s, ok := cutDigits(strings.TrimPrefix(s, "-"))
	if ok && strings.HasPrefix(s, ".") {
		shape = shapeDouble
		s, ok = cutDigits(s[1:])
	}
	if ok && s != "" && (s[0] == 'e' || s[0] == 'E') {
		shape = shapeDouble
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		s, ok = cutDigits(s)
	}
	switch {
	case !ok:
		return 0, false
	case s == "":
		return shape, true
	case s == "d" || s == "D":
		return shapeDouble, true
	case (s == "L" || s == "l") && shape == shapeInt32:
		return shapeInt64, true
	}
	return 0, false
}

// cutDigits removes the digits at the beginning of s; ok is false if there are none.
func cutDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(rest) < len(s)
}
