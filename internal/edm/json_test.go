package edm

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestAppendProperty(t *testing.T) {
	for want, v := range map[string]Value{
		`"P":"a\"b\u000a"`: String("a\"b\n"),
		`"P":true`:         Boolean(true),
		`"P":-5`:           Int32(-5),
		`"P@odata.type":"Edm.Int64","P":"9223372036854775807"`:                 Int64(math.MaxInt64),
		`"P@odata.type":"Edm.Double","P":3.0`:                                  Double(3),
		`"P@odata.type":"Edm.Double","P":-0.0`:                                 Double(math.Copysign(0, -1)),
		`"P@odata.type":"Edm.Double","P":"NaN"`:                                Double(math.NaN()),
		`"P@odata.type":"Edm.Double","P":"-Infinity"`:                          Double(math.Inf(-1)),
		`"P@odata.type":"Edm.Binary","P":"AP8="`:                               Binary([]byte{0, 255}),
		`"P@odata.type":"Edm.DateTime","P":"9999-12-31T23:59:59.9999999Z"`:     dateTimeOfTicks(maxDateTimeTicks),
		`"P@odata.type":"Edm.Guid","P":"c9da6455-213d-42c9-9a79-3e9149a57833"`: Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")),
		`"P":null`: {},
	} {
		if got := string(AppendProperty([]byte("x"), "P", v)); got != "x"+want {
			t.Errorf("%#v: %s, want %s", v, got, want)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkJSON(t, drawValue(t)) })
	for _, v := range edgeValues() {
		checkJSON(t, v)
	}
}

// checkJSON sends v through JSON and back three ways: annotated, annotated too late, and, where the annotation
// says nothing new, not annotated.
func checkJSON(t rapid.TB, v Value) {
	t.Helper()
	text := AppendValue(nil, v)
	if !json.Valid(text) {
		t.Fatalf("%#v: %s is no JSON", v, text)
	}
	var plain Value
	var err error
	switch text[0] {
	case '"':
		plain = String(unquoted(t, text))
		if again, err := FromText(v.Type(), []byte(unquoted(t, text))); err != nil || again != v {
			t.Fatalf("%#v: %s came back as %#v, %v", v, text, again, err)
		}
	case 't', 'f':
		plain = Boolean(text[0] == 't')
	default:
		if again, err := FromNumber(v.Type(), text); err != nil || again != v {
			t.Fatalf("%#v: %s came back as %#v, %v", v, text, again, err)
		}
		if plain, err = FromNumber(TypeNull, text); err != nil || plain != v {
			t.Fatalf("%#v: %s came back without annotation as %#v, %v", v, text, plain, err)
		}
	}
	if again, err := plain.Retype(v.Type()); err != nil || again != v {
		t.Fatalf("%#v: %s retyped is %#v, %v", v, text, again, err)
	}
	annotated := strings.Contains(string(AppendProperty(nil, "P", v)), "@odata.type")
	if !annotated && plain != v {
		t.Fatalf("%#v: %s has no annotation and reads as %#v", v, text, plain)
	}
}

func unquoted(t rapid.TB, text []byte) string {
	t.Helper()
	var s string
	assert.NoError(assert.Fatal(t), json.Unmarshal(text, &s), text)
	return s
}

func FuzzAppendQuoted(f *testing.F) {
	for _, s := range []string{"", `"\/`, "\x00\b\f\n\r\t\x1f\x7f\u0080\u2028", "ü😀\uE000", "\uFFFD"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		text := AppendQuoted(nil, s)
		if got := unquoted(t, text); got != s {
			t.Fatalf("%q came back as %q by %s", s, got, text)
		}
		for _, c := range text {
			if c < ' ' || c == 0x7F {
				t.Fatalf("%q: a control character in %q", s, text)
			}
		}
	})
}

// FuzzFromText reads anything as every type: what is accepted must come back the same through JSON.
func FuzzFromText(f *testing.F) {
	for _, text := range []string{
		"", "5", "-0", "+5", "9223372036854775808", "1e5", "NaN", "Infinity", "-INF", "0x1p3", "1_000", "true", "AP8=", "AP8",
		"2014-08-22T00:50:32.1234567Z", "2014-08-22T00:50:32+14:00", "0001-01-01T00:00:00Z", "2014-08-22t00:50:32z",
		"c9da6455-213d-42c9-9a79-3e9149a57833", "{9da6455-213d-42c9-9a79-3e9149a5783}", "inf", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for typ := TypeNull; typ <= TypeGuid+1; typ++ {
			if typ == TypeString && !utf8.ValidString(text) {
				continue
			}
			v, err := FromText(typ, []byte(text))
			if err != nil {
				// 0 to 3 characters may stand in any message by chance.
				if v != (Value{}) || len(text) > 8 && strings.Contains(err.Error(), text) {
					t.Fatalf("%q as %v: %#v, %v", text, typ, v, err)
				}
				continue
			}
			if v.Type() != typ {
				t.Fatalf("%q as %v: %#v", text, typ, v)
			}
			checkJSON(t, v)
		}
	})
}

func TestFromTextRefuses(t *testing.T) {
	for typ, texts := range map[Type][]string{
		TypeNull:    {"", "null"},
		TypeBinary:  {"a", "****", "AP8"},
		TypeBoolean: {"", "True", "1"},
		TypeInt32:   {"", "2147483648", "-2147483649", "1.0", "1e3", "0x5", " 5", "abc"},
		TypeInt64:   {"", "9223372036854775808", "5L", "1_000", "abc"},
		TypeDouble:  {"", "abc", "1e999", "nan", "inf", "0x1p3", "1_000", "1,5", "+Inf"},
		TypeDateTime: {"", "not a date", "2014-08-22", "2014-13-01T00:00:00Z", "2014-02-29T00:00:00Z", "2014-08-22T24:00:00Z",
			"2014-08-22T00:00:60Z", "2014-08-22T00:00:00+", "2014-08-22 00:00:00", "2014-08-22T00:00:00.12345678", "2014-08-22T00:00:00.12345678Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		TypeGuid: {"", "c9da6455213d42c99a793e9149a57833", "{c9da6455-213d-42c9-9a79-3e9149a57833}",
			"g9da6455-213d-42c9-9a79-3e9149a57833", "c9da6455-213d-42c9-9a793-e9149a57833"},
	} {
		for _, text := range texts {
			if v, err := FromText(typ, []byte(text)); err == nil {
				t.Errorf("%q is a %v: %#v", text, typ, v)
			}
		}
	}
}

func TestFromNumber(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		text string
		want Value
	}{
		{TypeNull, "5", Int32(5)},
		{TypeNull, "5.0", Double(5)},
		{TypeNull, "5e3", Double(5000)},
		{TypeNull, "5E3", Double(5000)},
		{TypeNull, "-2147483649", Int64(math.MinInt32 - 1)},
		{TypeInt64, "5", Int64(5)},
		{TypeInt64, "9007199254740993", Int64(1<<53 + 1)},
		{TypeDouble, "3", Double(3)},
		{TypeInt32, "3", Int32(3)},
		{TypeString, "3", Value{}},
		{TypeBoolean, "1", Value{}},
		{TypeInt32, "3.0", Value{}},
		{TypeNull, "9223372036854775808", Value{}},
	} {
		if got, err := FromNumber(c.typ, []byte(c.text)); got != c.want || (err == nil) == c.want.IsNull() {
			t.Errorf("%s as %v: %#v, %v", c.text, c.typ, got, err)
		}
	}
}

// An annotation that comes after its property retypes the value; what does not fit is an error, never a guess.
func TestRetype(t *testing.T) {
	guid := "c9da6455-213d-42c9-9a79-3e9149a57833"
	for _, c := range []struct {
		from Value
		typ  Type
		want Value
		ok   bool
	}{
		{String("5"), TypeInt64, Int64(5), true},
		{String("x"), TypeInt64, Value{}, false},
		{String("NaN"), TypeDouble, Double(math.NaN()), true},
		{String(guid), TypeGuid, Guid(uuid.MustParse(guid)), true},
		{String(guid), TypeString, String(guid), true},
		{String("AP8="), TypeBinary, Binary([]byte{0, 255}), true},
		{String("true"), TypeBoolean, Boolean(true), true},
		{Int32(5), TypeInt64, Int64(5), true},
		{Int32(-5), TypeDouble, Double(-5), true},
		{Int64(math.MaxInt32 + 1), TypeDouble, Double(math.MaxInt32 + 1), true},
		{Int32(5), TypeInt32, Int32(5), true},
		{Int32(5), TypeString, Value{}, false},
		{Int32(5), TypeBoolean, Value{}, false},
		{Int64(5), TypeInt32, Value{}, false},
		{Double(5), TypeInt32, Value{}, false},
		{Double(5.5), TypeInt64, Value{}, false},
		{Boolean(true), TypeString, Value{}, false},
		{Value{}, TypeInt64, Value{}, true},
	} {
		if got, err := c.from.Retype(c.typ); got != c.want || (err == nil) != c.ok {
			t.Errorf("%#v as %v: %#v, %v", c.from, c.typ, got, err)
		}
	}
}

// Each double has a point or an exponent, so that it reads as a double even without its annotation.
func TestDoublesLookLikeDoubles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFloat(t)
		text := string(AppendValue(nil, Double(f)))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return
		}
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(f) || !strings.ContainsAny(text, ".e") {
			t.Fatalf("%v is written %s", f, text)
		}
	})
}
