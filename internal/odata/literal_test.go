package odata

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

func mustDateTime(tb testing.TB, t time.Time) edm.Value {
	tb.Helper()
	v := assert.Must[edm.Value](tb)(edm.DateTime(t))
	return v
}

func TestAppendLiteral(t *testing.T) {
	for _, c := range []struct {
		value edm.Value
		want  string
	}{
		{edm.String(""), `''`},
		{edm.String("O'Brien"), `'O''Brien'`},
		{edm.String("''"), `''''''`},
		{edm.String("a\x00\n\"ü😀"), "'a\x00\n\"ü😀'"},
		{edm.Int32(-5), `-5`},
		{edm.Int32(math.MinInt32), `-2147483648`},
		{edm.Int64(5), `5L`},
		{edm.Int64(math.MinInt64), `-9223372036854775808L`},
		{edm.Double(3), `3.0`},
		{edm.Double(-0.5), `-0.5`},
		{edm.Double(math.Copysign(0, -1)), `-0.0`},
		{edm.Double(1e21), `1000000000000000000000.0`},
		{edm.Double(1e-9), `0.000000001`},
		{edm.Double(math.MaxFloat64), "17976931348623157" + strings.Repeat("0", 292) + ".0"},
		{edm.Boolean(true), `true`},
		{edm.Boolean(false), `false`},
		{edm.Binary(nil), `X''`},
		{edm.Binary([]byte{0, 10, 255}), `X'000aff'`},
		{mustDateTime(t, time.Date(2014, 8, 22, 0, 50, 32, 123456700, time.UTC)), `datetime'2014-08-22T00:50:32.1234567Z'`},
		{mustDateTime(t, time.Date(2014, 8, 22, 2, 0, 0, 0, time.FixedZone("", 7200))), `datetime'2014-08-22T00:00:00Z'`},
		{edm.Guid(uuid.MustParse("C9DA6455-213D-42C9-9A79-3E9149A57833")), `guid'c9da6455-213d-42c9-9a79-3e9149a57833'`},
	} {
		got, err := AppendLiteral([]byte("x "), c.value)
		if err != nil || string(got) != "x "+c.want {
			t.Errorf("%#v: %s, %v; want %s", c.value, got, err, c.want)
		}
		checkLiteral(t, c.value)
	}
}

func TestAppendLiteralRefuses(t *testing.T) {
	for _, v := range []edm.Value{{}, edm.Double(math.NaN()), edm.Double(math.Inf(1)), edm.Double(math.Inf(-1)), edm.String("a\xff")} {
		got, err := AppendLiteral([]byte("x"), v)
		var unprintable *UnprintableError
		if !errors.As(err, &unprintable) || string(got) != "x" {
			t.Errorf("%#v: %q, %v", v, got, err)
		}
	}
}

func TestLiteralRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLiteral(t, drawValue(t)) })
}

// checkLiteral writes v as a literal and reads it back on both sides of a comparison.
func checkLiteral(t rapid.TB, v edm.Value) {
	t.Helper()
	literal, err := AppendLiteral(nil, v)
	assert.NoError(assert.Fatal(t), err, "%#v", v)
	for text, want := range map[string]Comparison{
		"P le " + string(literal):        {"P", Le, v},
		string(literal) + " le P":        {"P", Ge, v},
		"(P eq " + string(literal) + ")": {"P", Eq, v},
	} {
		if got, err := Parse(text); err != nil || got != Expr(want) {
			t.Fatalf("%q: got %#v, %v; want %#v", text, got, err, want)
		}
	}
}

func TestParseLiterals(t *testing.T) {
	for literal, want := range map[string]edm.Value{
		"binary'0AfF'":                        edm.Binary([]byte{10, 255}),
		"x'0a'":                               edm.Binary([]byte{10}),
		"5l":                                  edm.Int64(5),
		"5d":                                  edm.Double(5),
		"5.25D":                               edm.Double(5.25),
		"5E+3":                                edm.Double(5000),
		"-0":                                  edm.Int32(0),
		"007":                                 edm.Int32(7),
		"datetime'2014-08-22'":                mustDateTime(t, time.Date(2014, 8, 22, 0, 0, 0, 0, time.UTC)),
		"datetime'2014-08-22T10:20'":          mustDateTime(t, time.Date(2014, 8, 22, 10, 20, 0, 0, time.UTC)),
		"datetime'2014-08-22T10:20:30.5'":     mustDateTime(t, time.Date(2014, 8, 22, 10, 20, 30, 5e8, time.UTC)),
		"datetime'2014-08-22T10:20:30+02:00'": mustDateTime(t, time.Date(2014, 8, 22, 8, 20, 30, 0, time.UTC)),
		"GUID'c9da6455-213d-42c9-9a79-3e9149a57833'": edm.Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")),
	} {
		got, err := Parse("P eq " + literal)
		if err != nil || got != Expr(Comparison{"P", Eq, want}) {
			t.Errorf("%s: %#v, %v", literal, got, err)
		}
	}
}

func FuzzLiteralRoundTrip(f *testing.F) {
	for _, s := range []string{"", "'", "''", "a'b''c", "' or PartitionKey ne '", "\x00\x1f\x7f", "ü😀\U0010FFFF\uE000", "guid'", "a\xff", " \t\r\n"} {
		f.Add(s, int64(len(s)), 0.5)
	}
	f.Fuzz(func(t *testing.T, s string, n int64, x float64) {
		values := []edm.Value{edm.Binary([]byte(s)), edm.Int32(int32(n)), edm.Int64(n)}
		if utf8.ValidString(s) {
			values = append(values, edm.String(s))
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			values = append(values, edm.Double(x))
		}
		for _, v := range values {
			checkLiteral(t, v)
		}
		if literal, err := AppendLiteral(nil, edm.String(s)); err == nil && strings.Count(string(literal), "'")%2 != 0 {
			t.Errorf("%q: odd quotes", literal)
		}
	})
}
