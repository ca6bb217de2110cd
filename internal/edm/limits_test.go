package edm

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkUnits(t, rapid.String().Draw(t, "s")) })
	for _, s := range []string{"", "a", "\u007f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff", "😀x"} {
		checkUnits(t, s)
	}
}

func FuzzUnits(f *testing.F) {
	f.Add("aü€😀")
	f.Fuzz(func(t *testing.T, s string) {
		if utf8.ValidString(s) {
			checkUnits(t, s)
		}
	})
}

func checkUnits(t rapid.TB, s string) {
	t.Helper()
	if got, want := Units(s), len(utf16.Encode([]rune(s))); got != want {
		t.Fatalf("%q: %d units, want %d", s, got, want)
	}
}

// The service's formula: 4 + 2 units of the keys, and for each property 8 + 2 units of its name + its value.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		value Value
		want  int
	}{
		{String(""), 4},
		{String("abc"), 4 + 6},
		{String("ü😀"), 4 + 6},
		{Binary(nil), 4},
		{Binary([]byte{1, 2, 3}), 4 + 3},
		{Boolean(true), 1},
		{Int32(-1), 4},
		{Int64(1), 8},
		{Double(1), 8},
		{mustDateTime(t, time.Unix(0, 0)), 8},
		{Guid(uuid.Nil), 16},
		{Value{}, 0},
	} {
		assert.Equal(t, c.value.StoredSize(), c.want, "%#v", c.value)
		assert.Equal(t, PropertySize("Größe", c.value), 8+2*5+c.want, "%#v as a property", c.value)
	}
	assert.Equal(t, KeySize("Sales", "😀"), 4+2*5+2*2, "keys")
	assert.Equal(t, KeySize("", ""), 4, "empty keys")
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "_", "_1", "Age", "Größe", "名前", "Ⅷ", "a\u0301", "a\u200d", "a١", strings.Repeat("a", 255), strings.Repeat("𐐀", 127)} {
		assert.NoError(t, CheckName(name), "%q", name)
	}
	for _, name := range []string{"", "1a", "a-b", "a b", "a.b", "a@b", "a'b", "\u0301a", "a\x00", "a\xff", "a\uFFFD", "😀", strings.Repeat("a", 256), strings.Repeat("𐐀", 128)} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// What the cheap test takes, the full one takes; and among ASCII names they agree.
func TestPlainNamesAreNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkNames(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9_\-. ]{0,6}`)).Draw(t, "name"))
	})
	checkNames(t, strings.Repeat("a", 255))
	checkNames(t, strings.Repeat("a", 256))
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "a", "1", "_", "ü", "a-b", "\xff", "a\x7f"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { checkNames(t, name) })
}

func checkNames(t rapid.TB, name string) {
	t.Helper()
	ascii := strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) < 0
	if plain, full := IsPlainName(name), CheckName(name) == nil; plain && !full || ascii && plain != full {
		t.Fatalf("%q: plain %v, full %v", name, plain, full)
	}
}

func TestCheck(t *testing.T) {
	for _, v := range append(edgeValues(),
		String(strings.Repeat("a", MaxStringUnits)), String(strings.Repeat("ü", MaxStringUnits)),
		String(strings.Repeat("😀", MaxStringUnits/2)), Binary(make([]byte, MaxBinarySize)),
	) {
		assert.NoError(t, v.Check(), v)
	}
	for name, v := range map[string]Value{
		"null":          {},
		"invalid UTF-8": String("a\xff"),
		"surrogate":     String("a\xed\xa0\x80"),
		"before 1601":   dateTimeOfTicks(minDateTimeTicks - 1),
		"after 9999":    dateTimeOfTicks(maxDateTimeTicks + 1),
	} {
		var size *SizeError
		if err := v.Check(); err == nil || errors.As(err, &size) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, v := range map[SizeError]Value{
		{"string", MaxStringUnits + 1, MaxStringUnits, "UTF-16 units", 0}: String(strings.Repeat("ü", MaxStringUnits+1)),
		{"string", MaxStringUnits + 2, MaxStringUnits, "UTF-16 units", 0}: String(strings.Repeat("😀", MaxStringUnits/2+1)),
		{"binary", MaxBinarySize + 1, MaxBinarySize, "bytes", 0}:          Binary(make([]byte, MaxBinarySize+1)),
	} {
		var size *SizeError
		if err := v.Check(); !errors.As(err, &size) || *size != want || !strings.Contains(err.Error(), want.Unit) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func BenchmarkParseDateTime(b *testing.B) {
	text := []byte("2014-08-22T00:50:32.1234567Z")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseDateTime(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendProperty(b *testing.B) {
	values := []Value{String("jonesj@contoso.com"), Int64(math.MaxInt64), Double(2.5), dateTimeOfTicks(unixEpochTicks + 1), Guid(uuid.Max)}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = dst[:0]
		for _, v := range values {
			dst = AppendProperty(dst, "Name", v)
		}
	}
}
