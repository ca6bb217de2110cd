package edm

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// drawValue draws a value of any type but null, extremes among them.
func drawValue(t *rapid.T) Value {
	switch Type(rapid.IntRange(int(TypeString), int(TypeGuid)).Draw(t, "type")) {
	case TypeString:
		return String(rapid.String().Draw(t, "string"))
	case TypeBinary:
		return Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "binary"))
	case TypeBoolean:
		return Boolean(rapid.Bool().Draw(t, "boolean"))
	case TypeInt32:
		return Int32(rapid.Int32().Draw(t, "int32"))
	case TypeInt64:
		return Int64(rapid.Int64().Draw(t, "int64"))
	case TypeDouble:
		return Double(drawFloat(t))
	case TypeDateTime:
		return dateTimeOfTicks(rapid.Int64Range(minDateTimeTicks, maxDateTimeTicks).Draw(t, "ticks"))
	}
	return Guid(uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid")))
}

func drawFloat(t *rapid.T) float64 {
	special := []float64{0, math.Copysign(0, -1), 3, -3, 1 << 53, 1<<53 + 2, 1e21, 1e-7, math.NaN(), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, math.SmallestNonzeroFloat64, 100000, 1234567890123456789}
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom(special)).Draw(t, "double")
}

// edgeValues has every type with its extremes.
func edgeValues() []Value {
	return []Value{
		String(""), String("O'Brien \"\\/\x00\x1f\x7fü😀\u2028"), Binary(nil), Binary([]byte{0, 255}), Boolean(true), Boolean(false),
		Int32(0), Int32(-1), Int32(math.MaxInt32), Int32(math.MinInt32),
		Int64(0), Int64(-1), Int64(math.MaxInt64), Int64(math.MinInt64), Int64(1<<53 + 1),
		Double(0), Double(math.Copysign(0, -1)), Double(3), Double(-3), Double(0.1), Double(1 << 53), Double(1e21), Double(1e-7),
		Double(math.MaxFloat64), Double(math.SmallestNonzeroFloat64), Double(math.NaN()), Double(math.Inf(1)), Double(math.Inf(-1)),
		dateTimeOfTicks(minDateTimeTicks), dateTimeOfTicks(maxDateTimeTicks), dateTimeOfTicks(unixEpochTicks),
		Guid(uuid.Nil), Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")),
	}
}

func TestAccessors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAccessors(t, drawValue(t)) })
	for _, v := range append(edgeValues(), Value{}) {
		checkAccessors(t, v)
	}
}

// checkAccessors makes v again out of what its accessors say; those of the other types must decline.
func checkAccessors(t rapid.TB, v Value) {
	t.Helper()
	accessors := map[Type]func() (Value, bool){
		TypeString:   func() (Value, bool) { s, ok := v.Str(); return String(s), ok },
		TypeBinary:   func() (Value, bool) { b, ok := v.Bytes(); return Binary(b), ok },
		TypeBoolean:  func() (Value, bool) { b, ok := v.Bool(); return Boolean(b), ok },
		TypeInt32:    func() (Value, bool) { i, ok := v.Int(); return Int32(int32(i)), ok },
		TypeInt64:    func() (Value, bool) { i, ok := v.Int(); return Int64(i), ok },
		TypeDouble:   func() (Value, bool) { f, ok := v.Float(); return Double(f), ok },
		TypeDateTime: func() (Value, bool) { at, ok := v.Time(); return mustDateTime(t, at), ok },
		TypeGuid:     func() (Value, bool) { u, ok := v.UUID(); return Guid(u), ok },
	}
	for typ, get := range accessors {
		if typ == TypeDateTime && v.Type() != TypeDateTime {
			if _, ok := v.Time(); ok {
				t.Fatalf("%#v: has a time", v)
			}
			continue
		}
		again, ok := get()
		isInt := (typ == TypeInt32 || typ == TypeInt64) && (v.Type() == TypeInt32 || v.Type() == TypeInt64)
		if ok != (typ == v.Type() || isInt) || typ == v.Type() && again != v {
			t.Fatalf("%#v as %v: %#v, %v", v, typ, again, ok)
		}
	}
	if v.IsNull() != (v.Type() == TypeNull) || (v.Any() == nil) != v.IsNull() {
		t.Fatalf("%#v: null %v, any %v", v, v.IsNull(), v.Any())
	}
}

func mustDateTime(t rapid.TB, at time.Time) Value {
	t.Helper()
	v := assert.Must[Value](t)(DateTime(at))
	return v
}

func TestAny(t *testing.T) {
	at := time.Date(2014, 8, 22, 0, 50, 32, 123456700, time.UTC)
	for _, want := range []any{"a", int32(5), int64(5), 5.5, true, false, at, uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")} {
		var v Value
		switch x := want.(type) {
		case string:
			v = String(x)
		case int32:
			v = Int32(x)
		case int64:
			v = Int64(x)
		case float64:
			v = Double(x)
		case bool:
			v = Boolean(x)
		case time.Time:
			v = mustDateTime(t, x)
		case uuid.UUID:
			v = Guid(x)
		}
		assert.Equal(t, v.Any(), want, "%#v", v)
	}
	if got, ok := Binary([]byte{1, 2}).Any().([]byte); !ok || !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("binary: %v", got)
	}
}

func TestValueEquality(t *testing.T) {
	nan, again := math.NaN(), math.NaN()
	if Double(nan) != Double(again) || Double(0) == Double(math.Copysign(0, -1)) {
		t.Error("doubles are equal bit for bit")
	}
	if Int32(1) == Int64(1) || String("a") == Binary([]byte("a")) || Boolean(true) == Int32(1) || (Value{}) == String("") {
		t.Error("values of two types are equal")
	}
}

func TestBinaryIsACopy(t *testing.T) {
	source := []byte{1}
	v := Binary(source)
	source[0] = 2
	first, _ := v.Bytes()
	first[0] = 3
	v.Any().([]byte)[0] = 4
	if again, _ := v.Bytes(); again[0] != 1 {
		t.Errorf("the value changed to %v", again)
	}
}

func TestTypeNames(t *testing.T) {
	for typ := TypeString; typ <= TypeGuid; typ++ {
		if back, ok := ParseType([]byte(typ.String())); !ok || back != typ || !strings.HasPrefix(typ.String(), "Edm.") {
			t.Errorf("%d: %v", typ, typ)
		}
	}
	for _, name := range []string{"", "null", "edm.string", "Edm.Single"} {
		if typ, ok := ParseType([]byte(name)); ok || typ != TypeNull {
			t.Errorf("%q is a type", name)
		}
	}
}

// String, which ends up in logs and errors, tells two values of one type and size apart by nothing.
func TestStringHidesContent(t *testing.T) {
	secret, other := "hunter2-secret", "xxxxxxxxxxxxxx"
	first, second := uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833"), uuid.Nil
	for _, pair := range [][2]Value{
		{String(secret), String(other)}, {Binary([]byte(secret)), Binary([]byte(other))}, {Boolean(true), Boolean(false)},
		{Int32(1234), Int32(0)}, {Int64(1234), Int64(0)}, {Double(1234), Double(0)},
		{dateTimeOfTicks(minDateTimeTicks), dateTimeOfTicks(maxDateTimeTicks)}, {Guid(first), Guid(second)},
	} {
		for _, format := range []string{"%v", "%s", "%+v", "%q"} {
			a, b := fmt.Sprintf(format, pair[0]), fmt.Sprintf(format, pair[1])
			if a != b || !strings.Contains(a, pair[0].Type().String()) {
				t.Errorf("%s: %s, %s", format, a, b)
			}
		}
	}
}

func TestGoString(t *testing.T) {
	for want, v := range map[string]Value{
		`String("a")`: String("a"), `Int64(5)`: Int64(5), `Double(NaN)`: Double(math.NaN()), `Boolean(true)`: Boolean(true),
		`null(<nil>)`: {}, `DateTime(1601-01-01T00:00:00Z)`: dateTimeOfTicks(minDateTimeTicks),
	} {
		assert.Equal(t, fmt.Sprintf("%#v", v), want)
	}
}
