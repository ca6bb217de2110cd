package odata

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

func eqText(property, value string) Expr { return Comparison{property, Eq, edm.String(value)} }

func TestParse(t *testing.T) {
	a, b, c := eqText("A", "a"), eqText("B", "b"), eqText("C", "c")
	isTrue := func(name string) Expr { return Comparison{name, Eq, edm.Boolean(true)} }
	for text, want := range map[string]Expr{
		"":                                     nil,
		" \t\r\n":                              nil,
		"A eq 'a'":                             a,
		" ( A\teq\n'a' ) ":                     a,
		"'a' eq A":                             a,
		"A eq'a'":                              a,
		"5 lt A":                               Comparison{"A", Gt, edm.Int32(5)},
		"5 le A":                               Comparison{"A", Ge, edm.Int32(5)},
		"5 gt A":                               Comparison{"A", Lt, edm.Int32(5)},
		"5 ge A":                               Comparison{"A", Le, edm.Int32(5)},
		"5 ne A":                               Comparison{"A", Ne, edm.Int32(5)},
		"A eq 'a' and B eq 'b' and C eq 'c'":   And{And{a, b}, c},
		"A eq 'a' and (B eq 'b' and C eq 'c')": And{a, And{b, c}},
		"A eq 'a' or B eq 'b' and C eq 'c'":    Or{a, And{b, c}},
		"A eq 'a' and B eq 'b' or C eq 'c'":    Or{And{a, b}, c},
		"(A eq 'a' or B eq 'b') and C eq 'c'":  And{Or{a, b}, c},
		"(A eq 'a')or(B eq 'b')":               Or{a, b},
		"not A eq 'a' and B eq 'b'":            And{Not{a}, b},
		"not (A eq 'a' and B eq 'b')":          Not{And{a, b}},
		"not(A eq 'a')":                        Not{a},
		"not not A eq 'a'":                     Not{Not{a}},
		"IsActive":                             isTrue("IsActive"),
		"not IsActive":                         Not{isTrue("IsActive")},
		"IsActive and A eq 'a'":                And{isTrue("IsActive"), a},
		"IsActive eq false":                    Comparison{"IsActive", Eq, edm.Boolean(false)},
		"true eq IsActive":                     isTrue("IsActive"),
		"true":                                 Constant(true),
		"false or A eq 'a'":                    Or{Constant(false), a},
		"eq eq 'a' and and eq 'b'":             And{eqText("eq", "a"), eqText("and", "b")},
		"Größe eq 'a'":                         eqText("Größe", "a"),
		"A eq 'it''s (a) and not b'":           eqText("A", "it's (a) and not b"),
		"TRUE":                                 isTrue("TRUE"), // keywords are lower case, so this is a name
	} {
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v; want %#v", text, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	checkSyntaxErrors(t, map[string]int{
		"A eq":                4,
		"A eq 'a":             5,
		"A eq 'a''":           5,
		"A eq \"a\"":          5,
		"A = 5":               2,
		"A EQ 5":              2,
		"A eq 5 AND B eq 6":   7,
		"A eq B":              0,
		"5 eq 5":              0,
		"'a'":                 0,
		"5":                   0,
		"(A eq 5":             7,
		"A eq 5)":             6,
		"()":                  1,
		"A eq (5)":            5,
		"A eq 5 B eq 6":       7,
		"A eq 5 and":          10,
		"and":                 0,
		"A eq 5 or or B eq 6": 10,
		"eq":                  0,
		"not":                 3,
		"A eq not":            5,
	})
}

func TestParseLiteralErrors(t *testing.T) {
	checkSyntaxErrors(t, map[string]int{
		"A eq null":                 5,
		"A eq -":                    5,
		"A eq - 5":                  5,
		"A eq +5":                   5,
		"A eq 1_000":                5,
		"A eq 0x10":                 5,
		"A eq 1.":                   5,
		"A eq .5":                   5,
		"A eq 1e":                   5,
		"A eq 1.5L":                 5,
		"A eq 5f":                   5,
		"A eq 5and B eq 6":          5,
		"A eq 1e999":                5,
		"A eq 5454161346626":        5, // the service: unrecognized Edm.Int32 literal
		"A eq 9223372036854775808L": 5,
		"A eq X'0'":                 5,
		"A eq X'0g'":                5,
		"A eq guid'5'":              5,
		"A eq guid'{9da6455-213d-42c9-9a79-3e9149a5783}'": 5,
		"A eq datetime'now'":                              5,
		"A eq datetime'2014-08-22T00:50:32.12345678Z'":    5,
		"A eq datetime'2014-02-30T00:00:00Z'":             5,
		"A eq time'5'":                                    0,
		"a-b eq 5":                                        0,
		"A/B eq 5":                                        0,
		"length(A) eq 5":                                  6,
		"A add 5 eq 6":                                    2,
		"A eq 'a\xff'":                                    0,
		"A\x00 eq 5":                                      0,
	})
}

func checkSyntaxErrors(t *testing.T, positions map[string]int) {
	t.Helper()
	for text, pos := range positions {
		e, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || e != nil {
			t.Errorf("%q: %#v, %v; want a SyntaxError", text, e, err)
		} else if syntax.Pos != pos {
			t.Errorf("%q: %v; want byte %d", text, err, pos)
		}
	}
}

// An unquoted or malformed value in a filter may be a secret, so no error repeats it.
func TestParseErrorsKeepSecrets(t *testing.T) {
	const secret = "hunter2"
	for _, text := range []string{
		"A eq hunter2", "A eq 'hunter2", "hunter2 hunter2", "A eq guid'hunter2'", "A eq datetime'hunter2'",
		"A eq X'hunter2'", "A eq 5hunter2", "A eq 'a' hunter2", "A eq -hunter2", "A eq {hunter2}",
	} {
		if _, err := Parse(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseBounds(t *testing.T) {
	nested := func(n int, opening, closing string) string {
		return strings.Repeat(opening, n) + "A eq 5" + strings.Repeat(closing, n)
	}
	for name, text := range map[string]string{
		"parentheses": nested(maxNesting, "(", ")"),
		"nots":        nested(maxNesting, "not ", ""),
		"not groups":  nested(maxNesting, "not (", ")"),
		"terms":       "A eq 5" + strings.Repeat(" and A eq 5", maxComparisons-1),
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s at the limit: %v", name, err)
			continue
		}
		checkPrinted(t, e)
		if name == "terms" && Comparisons(e) != maxComparisons {
			t.Errorf("%d comparisons", Comparisons(e))
		}
	}
	for name, text := range map[string]string{
		"parentheses":      nested(maxNesting+1, "(", ")"),
		"nots":             nested(maxNesting+1, "not ", ""),
		"terms":            "A eq 5" + strings.Repeat(" or A eq 5", maxComparisons),
		"constants":        "true" + strings.Repeat(" or true", maxComparisons),
		"a million opens":  strings.Repeat("(", 1e6),
		"a million nots":   strings.Repeat("not ", 1e6),
		"a million mixed":  strings.Repeat("not (", 1e6),
		"a million quotes": "A eq " + strings.Repeat("'", 1e6+1),
	} {
		var syntax *SyntaxError
		if _, err := Parse(text); !errors.As(err, &syntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAppend(t *testing.T) {
	a, b, c := eqText("A", "a"), eqText("B", "b"), eqText("C", "c")
	for want, e := range map[string]Expr{
		"":                                        nil,
		"A eq 'a'":                                a,
		"A eq 'a' and B eq 'b' and C eq 'c'":      AllOf(a, nil, b, c),
		"A eq 'a' and (B eq 'b' and C eq 'c')":    And{a, And{b, c}},
		"A eq 'a' or B eq 'b' or C eq 'c'":        AnyOf(a, b, c),
		"(A eq 'a' or B eq 'b') and C eq 'c'":     And{Or{a, b}, c},
		"A eq 'a' or B eq 'b' and C eq 'c'":       Or{a, And{b, c}},
		"not (A eq 'a') and not (not (B eq 'b'))": And{Not{a}, Not{Not{b}}},
		"false": AnyOf(),
	} {
		if got, err := Append(nil, e); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if AllOf() != nil || AllOf(nil, nil) != nil || AnyOf(a, nil) != nil {
		t.Error("a nil filter is passed by every entity")
	}
}

func TestAppendRefuses(t *testing.T) {
	ok := eqText("A", "a")
	for name, e := range map[string]Expr{
		"smuggled condition": eqText("A eq 'x' or B", "a"),
		"empty name":         eqText("", "a"),
		"keyword not":        eqText("not", "a"),
		"keyword true":       eqText("true", "a"),
		"keyword null":       eqText("null", "a"),
		"hyphen":             eqText("a-b", "a"),
		"no operator":        Comparison{"A", 99, edm.Int32(1)},
		"NaN":                And{ok, Comparison{"A", Eq, edm.Double(math.NaN())}},
		"null":               Or{Comparison{Property: "A"}, ok},
		"missing left":       And{nil, ok},
		"missing right":      Or{ok, nil},
		"missing operand":    Not{},
	} {
		got, err := Append([]byte("x"), e)
		var unprintable *UnprintableError
		if !errors.As(err, &unprintable) || string(got) != "x" || err.Error() == "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// What Append prints, Parse reads as the same tree.
func TestPrintParseRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawTree(t, 5, drawAnyLeaf)
		checkPrinted(t, e)
	})
}

func checkPrinted(t rapid.TB, e Expr) {
	t.Helper()
	text := assert.Must[[]byte](t)(Append(nil, e))
	again, err := Parse(string(text))
	if err != nil || !reflect.DeepEqual(again, e) {
		t.Fatalf("%s: %v\n got %#v\nwant %#v", text, err, again, e)
	}
}

func TestComparisons(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "true": 0, "A": 1, "not (A eq 1 or B eq 2) and (C eq 3 or not D) or false": 4,
	} {
		e, err := Parse(text)
		if got := Comparisons(e); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestOp(t *testing.T) {
	for op := Eq; op <= Le; op++ {
		if back, ok := ParseOp(op.String()); !ok || back != op || op.mirrored().mirrored() != op {
			t.Errorf("%v", op)
		}
	}
	if _, ok := ParseOp("unknown operator"); ok || Op(99).String() != "unknown operator" {
		t.Error("an unknown operator")
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "(PartitionKey eq 'Sales') and (RowKey eq '2')", "not IsActive or 'a' le B", "A eq 5L and B ne -1.5e3",
		"A eq X'0a' or A eq binary'' and not (B)", "A gt datetime'2014-08-22T00:50:32.1234567Z'",
		"A eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", "((((", "A eq 'it''s'", "false", "not not not", "'''", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if e != nil || !errors.As(err, &syntax) || syntax.Pos < 0 || syntax.Pos > len(text) || syntax.Error() == "" {
				t.Fatalf("%#v, %v", e, err)
			}
			return
		}
		printed := assert.Must[[]byte](t)(Append(nil, e))
		// Printing never nests deeper than the text did, so it stays within the parser's bound.
		again, err := Parse(string(printed))
		assert.NoError(assert.Fatal(t), err, printed)
		if twice, err := Append(nil, again); err != nil || string(twice) != string(printed) {
			t.Fatalf("%s, %v; want %s", twice, err, printed)
		}
		Classify(e)
		Match(e, func(string) edm.Value { return edm.String("a") })
	})
}
