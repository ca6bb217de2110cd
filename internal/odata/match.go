package odata

import (
	"bytes"
	"cmp"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Match reports whether an entity matches the filter. get returns the property or key that has the given
// name, or the zero Value if the entity has none.
//
// A comparison with a missing property is false, even with "ne". A comparison of types that cannot be compared, such as
// a string with a number, is also false. The operator "not" inverts the result, so an entity without A matches "not (A
// eq 5)". Int32, Int64 and Double compare as numbers; if one of them is a Double, the other is converted to a Double,
// and NaN is unequal to everything. Strings compare by UTF-16 code units, guids as their text, binaries byte by byte,
// and false is less than true.
func Match(e Expr, get func(name string) edm.Value) bool {
	switch e := e.(type) {
	case Comparison:
		return e.holds(get(e.Property))
	case And:
		return Match(e.Left, get) && Match(e.Right, get)
	case Or:
		return Match(e.Left, get) || Match(e.Right, get)
	case Not:
		return !Match(e.X, get)
	case Constant:
		return bool(e)
	}
	return true
}

func (c Comparison) holds(v edm.Value) bool {
	order, ok := compareValues(v, c.Value)
	if !ok {
		return false
	}
	switch c.Op {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Gt:
		return order == 1
	case Ge:
		return order == 0 || order == 1
	case Lt:
		return order == -1
	case Le:
		return order == 0 || order == -1
	}
	return false
}

// unordered is the result of comparing NaN with any number.
const unordered = 2

// compareValues returns -1, 0, 1 or unordered; ok is false if the types cannot be compared.
func compareValues(a, b edm.Value) (order int, ok bool) {
	if a.Type() != b.Type() {
		return compareNumbers(a, b)
	}
	switch a.Type() {
	case edm.TypeInt32, edm.TypeInt64, edm.TypeDouble:
		return compareNumbers(a, b)
	case edm.TypeString:
		x, _ := a.Str()
		y, _ := b.Str()
		return compoundkey.Compare(x, y), true
	case edm.TypeDateTime:
		x, _ := a.Time()
		y, _ := b.Time()
		return x.Compare(y), true
	case edm.TypeGuid:
		x, _ := a.UUID()
		y, _ := b.UUID()
		return bytes.Compare(x[:], y[:]), true
	case edm.TypeBinary:
		if a == b {
			return 0, true
		}
		x, _ := a.Bytes()
		y, _ := b.Bytes()
		return bytes.Compare(x, y), true
	case edm.TypeBoolean:
		x, _ := a.Bool()
		y, _ := b.Bool()
		switch {
		case x == y:
			return 0, true
		case x:
			return 1, true
		}
		return -1, true
	}
	return 0, false
}

// compareNumbers compares two numbers; ok is false for other values.
func compareNumbers(a, b edm.Value) (order int, ok bool) {
	i, aInt := a.Int()
	j, bInt := b.Int()
	if aInt && bInt {
		return cmp.Compare(i, j), true
	}
	x, aFloat := a.Float()
	y, bFloat := b.Float()
	if !aInt && !aFloat || !bInt && !bFloat {
		return 0, false
	}
	if aInt {
		x = float64(i)
	}
	if bInt {
		y = float64(j)
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	case x == y:
		return 0, true
	}
	return unordered, true
}
