package odata

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// testEntity has one property of each type, and none named Missing.
func testEntity(tb testing.TB) func(string) edm.Value {
	properties := map[string]edm.Value{
		"PartitionKey": edm.String("Sales"),
		"RowKey":       edm.String("empid_000223"),
		"Name":         edm.String("O'Brien"),
		"Empty":        edm.String(""),
		"High":         edm.String("\U0001F600"),
		"Age":          edm.Int32(40),
		"Big":          edm.Int64(1<<53 + 1),
		"Rate":         edm.Double(2.5),
		"Whole":        edm.Double(40),
		"NaN":          edm.Double(math.NaN()),
		"Infinite":     edm.Double(math.Inf(1)),
		"Zero":         edm.Double(math.Copysign(0, -1)),
		"Active":       edm.Boolean(true),
		"Retired":      edm.Boolean(false),
		"Photo":        edm.Binary([]byte{1, 0xFF}),
		"At":           mustDateTime(tb, time.Date(2014, 8, 22, 0, 50, 32, 100, time.UTC)),
		"ID":           edm.Guid(uuid.MustParse("c9da6455-213d-42c9-9a79-3e9149a57833")),
	}
	return func(name string) edm.Value { return properties[name] }
}

func TestMatch(t *testing.T) {
	checkMatches(t, map[string]bool{
		"":                            true,
		"true":                        true,
		"false":                       false,
		"Name eq 'O''Brien'":          true,
		"Name eq 'o''brien'":          false,
		"name eq 'O''Brien'":          false,
		"Name ne 'x'":                 true,
		"Name ge 'O' and Name lt 'P'": true,
		"'O' le Name and 'P' gt Name": true,
		"Empty eq ''":                 true,
		"Empty lt 'a'":                true,
		"High lt '\uE000'":            true, // its surrogates sort before U+E000
	})
}

func TestMatchNumbers(t *testing.T) {
	checkMatches(t, map[string]bool{
		"Age eq 40 and Age eq 40L":          true,
		"Age eq 40.0 and Whole eq 40":       true,
		"Whole eq 40L":                      true,
		"Age gt 39.5 and Age lt 40.5":       true,
		"Age gt 40 or Age lt 40":            false,
		"Age ge 40 and Age le 40":           true,
		"Big eq 9007199254740993L":          true,
		"Big gt 9007199254740992L":          true,
		"Big eq 9007199254740992.0":         true, // the integer is made a double
		"Rate gt 2 and Rate lt 3":           true,
		"NaN eq 1.0 or NaN lt 1.0":          false,
		"NaN ge 1 or NaN gt 1 or NaN le 1L": false,
		"NaN ne 1.0":                        true,
		"Infinite gt 1e308":                 true,
		"Zero eq 0.0 and Zero eq 0":         true,
	})
}

func TestMatchOtherTypes(t *testing.T) {
	checkMatches(t, map[string]bool{
		"Active":                                           true,
		"not Active":                                       false,
		"Active eq true and Retired ne true":               true,
		"Retired":                                          false,
		"Retired lt true and Active gt false":              true,
		"Active le true and Retired ge false":              true,
		"Photo eq X'01ff'":                                 true,
		"Photo gt X'01fe' and Photo gt X'01'":              true,
		"Photo lt binary'02'":                              true,
		"At eq datetime'2014-08-22T00:50:32.0000001Z'":     true,
		"At gt datetime'2014-08-22T00:50:32Z'":             true,
		"At lt datetime'0001-01-01T00:00:00Z'":             false,
		"ID eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'": true,
		"ID gt guid'c9da6455-213d-42c9-9a79-3e9149a57832'": true,
		"ID lt guid'd0000000-0000-0000-0000-000000000000'": true,
	})
}

// What is not there compares to nothing, and neither does what is of another type, ne included.
func TestMatchMissingAndMistyped(t *testing.T) {
	checkMatches(t, map[string]bool{
		"Missing eq ''":                    false,
		"Missing ne ''":                    false,
		"Missing gt ''":                    false,
		"Missing":                          false,
		"not Missing":                      true,
		"not (Missing ne '')":              true,
		"not (Name ne '')":                 false,
		"not (Missing eq 5) and Age eq 40": true,

		"Age eq '40'":      false,
		"Age ne '40'":      false,
		"Name eq 5":        false,
		"Name ne 5":        false,
		"Name":             false,
		"Age":              false,
		"Active eq 1":      false,
		"Active eq 'true'": false,
		"ID eq 'c9da6455-213d-42c9-9a79-3e9149a57833'": false,
		"Photo eq '01ff'":                      false,
		"At eq '2014-08-22T00:50:32.0000001Z'": false,
		"not (Age eq '40')":                    true,

		"Age eq 1 or Age eq 40 and Name eq 'x'":   false,
		"(Age eq 40 or Age eq 1) and Rate eq 2.5": true,
		"not (Age eq 1 or Age eq 40)":             false,
	})
}

func checkMatches(t *testing.T, cases map[string]bool) {
	t.Helper()
	get := testEntity(t)
	for text, want := range cases {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := Match(e, get); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if Match(Comparison{"Age", 99, edm.Int32(40)}, get) {
		t.Error("an unknown operator matches")
	}
}

// A comparison agrees with its mirror, and of the operators exactly the right ones hold.
func TestOperatorsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawValue(t), drawValue(t)
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		holds := func(op Op) bool { return Comparison{"P", op, b}.holds(a) }
		eq, ne, gt, ge, lt, le := holds(Eq), holds(Ne), holds(Gt), holds(Ge), holds(Lt), holds(Le)
		if _, comparable := compareValues(a, b); !comparable {
			if eq || ne || gt || ge || lt || le {
				t.Fatal("types that do not compare compare")
			}
			return
		}
		if eq == ne || ge != (gt || eq) || le != (lt || eq) || gt && lt || !(lt || eq || gt) || a == b && !eq {
			t.Fatalf("%#v, %#v: eq %v ne %v gt %v ge %v lt %v le %v", a, b, eq, ne, gt, ge, lt, le)
		}
		for op := Eq; op <= Le; op++ {
			assert.Equal(assert.Fatal(t), (Comparison{"P", op.mirrored(), a}).holds(b), holds(op), "%#v %v %#v and its mirror disagree", a, op, b)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	e, err := Parse("PartitionKey eq 'Sales' and RowKey ge 'empid_000100' and RowKey lt 'empid_000300' and Age gt 30 and not (Name eq 'x')")
	if err != nil {
		b.Fatal(err)
	}
	get := testEntity(b)
	b.ReportAllocs()
	for b.Loop() {
		if !Match(e, get) {
			b.Fatal("no match")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')"); err != nil {
			b.Fatal(err)
		}
	}
}
