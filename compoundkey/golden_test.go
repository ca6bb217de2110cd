package compoundkey

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// The stored format. A line that changes here makes stored keys unreadable.
func TestGoldenKeys(t *testing.T) {
	day := time.Date(2012, 8, 31, 10, 30, 15, 123456700, time.FixedZone("", 2*3600))
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC)
	id := uuid.MustParse("6BA7B810-9DAD-11D1-80B4-00C04FD430C8")
	status := NewEnum(3, "draft", "open")
	for _, c := range []struct{ got, want string }{
		{Join("", Int(123, 8)), "00000123"},
		{Join("empid", Int(223, 6)), "empid_000223"},
		{Join("", Int(123, 6), Int(2012, 4)), "000123_2012"},
		{Join("email", String("jonesj@contoso.com")), "email_jonesj@contoso.com"},
		{Join("lastname", String("Jones"), Int(223, 6)), "lastname_Jones!_000223"},
		{Join("lastname", String(""), String("")), "lastname_!_"},
		{Join("header"), "header"},
		{Join("v1.a-B"), "v1.a-B"},
		{Join("", String("")), ""},

		{Join("", Int(0, 1)), "0"},
		{Join("", Int(-1, 6)), "-999999"},
		{Join("", Int(-2, 6)), "-999998"},
		{Join("", Int(-999999, 6)), "-000001"},
		{Join("", Int(int8(-128), 3)), "-872"},
		{Join("", Int(int64(math.MaxInt64), 19)), "9223372036854775807"},
		{Join("", Int(int64(math.MinInt64), 19)), "-0776627963145224192"},
		{Join("", Uint(uint64(math.MaxUint64), 20)), "18446744073709551615"},
		{Join("", Uint(uint8(7), 2)), "07"},

		{Join("", Time(time.Time{})), "0000000000000000000"},
		{Join("", Time(day)), "0634819986151234567"},
		{Join("", TimeDesc(day)), "2520558989848765432"},
		{Join("", Time(last)), "3155378975999999999"},
		{Join("", TimeDesc(last)), "0000000000000000000"},

		{Join("", UUID(id)), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{Join("", UUID(uuid.Nil), Bool(true), Bool(false)), "00000000-0000-0000-0000-000000000000_1_0"},
		{Join("", Bytes([]byte{0, 0xAB, 0xFF}), Bytes(nil), Bytes(nil)), "00abff!_!_"},
		{Join("", status.Part("open"), status.Part("draft")), "001_000"},
		{Join("", Tuple(Int(1, 2), String("a")), Bool(true)), "01_a!_1"},
		{Join("", Tuple(Tuple(String("a"), Int(1, 2)), Bool(true))), "a!_01_1"},
	} {
		assert.NoDiff(t, cmp.Diff(c.want, c.got))
		assert.Check(t, CheckKey(c.got))
	}
}

// The stored format of text, every character that is escaped.
func TestGoldenText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\x00\x01\x02\x03\x04\x05\x06\x07", "!c0!c1!c2!c3!c4!c5!c6!c7"},
		{"\b\t\n\v\f\r\x0E\x0F", "!c8!c9!cA!cB!cC!cD!cE!cF"},
		{"\x10\x11\x12\x13\x14\x15\x16\x17", "!cG!cH!cI!cJ!cK!cL!cM!cN"},
		{"\x18\x19\x1A\x1B\x1C\x1D\x1E\x1F", "!cO!cP!cQ!cR!cS!cT!cU!cV"},
		{" !\"#$%&'()*+,-./", "!s!x\"0\"1$&-&0&1()*+,-..\uFFFC"},
		{"09:;<=>?@AZ", "09:;<=>0>1@AZ"},
		{"[\\]^_`az{|}~", "[0[1]^0^1`az{|}~0"},
		{"\u007F\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087", "~1~2~3~4~5~6~7~8~9"},
		{"\u0088\u0089\u008A\u008B\u008C\u008D\u008E\u008F\u0090\u0091", "~A~B~C~D~E~F~G~H~I~J"},
		{"\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009A\u009B", "~K~L~M~N~O~P~Q~R~S~T"},
		{"\u009C\u009D\u009E\u009F\u00A0", "~U~V~W~X\u00A0"},
		{"\uFFFA\uFFFB\uFFFC\uFFFD\uFFFE\uFFFF", "\uFFFA\uFFFB0\uFFFB1\uFFFB2\uFFFB3\uFFFB4"},
		{"Grüße, 世界 😀", "Grüße,!s世界!s😀"},
		{"50%25 of %2F, 100%", "50&-25!sof!s&-2F,!s100&-"},
		{"2012/08/31", "2012.\uFFFC08.\uFFFC31"},
	} {
		assert.NoDiff(t, cmp.Diff(c.want, Join("", String(c.text))), "%q", c.text)
		var back string
		if err := Parse(c.want, "", ToString(&back)); err != nil || back != c.text {
			t.Errorf("%q reads as %q, %v", c.want, back, err)
		}
	}
}

func TestGoldenSpans(t *testing.T) {
	pair := func(s Span) [2]string { return [2]string{s.From(), s.To()} }
	for _, c := range []struct {
		name string
		span Span
		want [2]string
	}{
		{"zero", Span{}, [2]string{"", ""}},
		{"all", All(), [2]string{"", ""}},
		{"all under", All().Under("email"), [2]string{"email_", "email`"}},
		{"all under text", All().Under("n", String("Jones")), [2]string{"n_Jones!_", "n_Jones!`"}},
		{"employee", Starting("empid", Int(123, 6)), [2]string{"empid_000123", "empid_000124"}},
		{"nine", Starting("empid", Int(129, 6)), [2]string{"empid_000129", "empid_00012:"}},
		{"text", Starting("n", String("Jones")), [2]string{"n_Jones", "n_Jones!`"}},
		{"no parts", Starting("n"), [2]string{"n_", "n`"}},
		{"nothing", Starting(""), [2]string{"", ""}},
		{"uuid", Starting("", UUID(uuid.Max)), [2]string{uuid.Max.String(), "ffffffff-ffff-ffff-ffff-fffffffffffg"}},
		{"prefix", Prefix("a").Under("email"), [2]string{"email_a", "email_b"}},
		{"prefix none", Prefix("").Span, [2]string{"", ""}},
		{"prefix dot", Prefix(".").Span, [2]string{".", ".\uFFFC"}},
		{"prefix slash", Prefix("/").Span, [2]string{".\uFFFC", "0"}},
		{"prefix dollar", Prefix("$").Span, [2]string{"$", "&-"}},
		{"prefix percent", Prefix("50%").Span, [2]string{"50&-", "50&0"}},
		{"prefix control", Prefix("\x1F").Span, [2]string{"!cV", "!s"}},
		{"prefix before surrogates", Prefix("a\uD7FF").Span, [2]string{"a\uD7FF", "a\U00010000"}},
		{"prefix last surrogate", Prefix("a\U0010FFFF").Span, [2]string{"a\U0010FFFF", "a\uE000"}},
		{"prefix carry", Prefix("a\uFFFF\uFFFF").Span, [2]string{"a\uFFFB4\uFFFB4", "b"}},
		{"prefix top", Prefix("\uFFFF").Span, [2]string{"\uFFFB4", ""}},
		{"prefix top under", Prefix("\uFFFF").Under("p"), [2]string{"p_\uFFFB4", "p`"}},
		{"between", Between(Int(5, 3), Int(10, 3)).Under("n"), [2]string{"n_005", "n_010"}},
		{"through", Through(Int(5, 3), Int(10, 3)).Under("n"), [2]string{"n_005", "n_011"}},
		{"through text", Through(String("A"), String("C")).Span, [2]string{"A", "C!`"}},
		{"at least", AtLeast(String("k")).Under("n"), [2]string{"n_k", "n`"}},
		{"below", Below(String("k")).Under("n"), [2]string{"n_", "n_k"}},
		{"below nothing", Below(String("")).Under("n"), [2]string{"n_!", "n_!"}},
		{"exactly", Exactly(Bool(true)).Span, [2]string{"1", "2"}},
		{"range", Range("a", "b"), [2]string{"a", "b"}},
		{"range open", Range("a", "").Under("p"), [2]string{"p_a", "p`"}},
	} {
		if c.span.Err() != nil {
			t.Errorf("%s: %v", c.name, c.span.Err())
		}
		assert.NoDiff(t, cmp.Diff(c.want, pair(c.span)), c.name)
		checkBounds(t, c.span)
	}
}
