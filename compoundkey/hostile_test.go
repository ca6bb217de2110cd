package compoundkey

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// Everything that cannot be a key, and what is said about it.
func TestErrors(t *testing.T) {
	secret := "s3cret\xFF"
	e := NewEnum(1, "a", "b")
	late := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	early := time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC)
	// A year in local time that is another in UTC.
	edge := time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	for _, c := range []struct{ key, want string }{
		{Join("p", Int(1000000, 6)), "part 0 (Int): the value needs 7 digits, but the width is 6; use a larger width"},
		{Join("p", Bool(true), Int(-1000000, 6)), "part 1 (Int): the value needs 7 digits, but the width is 6; use a larger width"},
		{Join("p", Int(1, 0)), "part 0 (Int): the width is 0; it must be 1 to 19"},
		{Join("p", Int(1, 20)), "part 0 (Int): the width is 20; it must be 1 to 19"},
		{Join("p", Int(1, 262)), "part 0 (Int): the width is 262; it must be 1 to 19"},
		{Join("p", Uint(uint(10), 1)), "part 0 (Uint): the value needs 2 digits, but the width is 1; use a larger width"},
		{Join("p", Uint(uint(1), 21)), "part 0 (Uint): the width is 21; it must be 1 to 20"},
		{Join("p", Int(1, 2), Part{}), "part 1 (Part): the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Join("p", Tuple()), "part 0 (Part): the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Join("p", Tuple(Bool(true), Part{})), "part 0 (Tuple): element 1 (Part): the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Join("p", Int(1, 2), Tuple(Int(100, 2))), "part 1 (Tuple): element 0 (Int): the value needs 3 digits, but the width is 2; use a larger width"},
		{Join("p", String(secret)), "part 0 (String): the text of 7 bytes is not valid UTF-8; for binary data use Bytes"},
		{Join("p", String("\xED\xA0\x80")), "part 0 (String): the text of 3 bytes is not valid UTF-8; for binary data use Bytes"},
		{Join("p", Time(late)), "part 0 (Time): the year is 10000; it must be 1 to 9999"},
		{Join("p", TimeDesc(early)), "part 0 (TimeDesc): the year is 0; it must be 1 to 9999"},
		{Join("p", Time(edge)), "part 0 (Time): the year is 0; it must be 1 to 9999"},
		{Join("p", Time(time.Unix(0, 1234567))), "part 0 (Time): the time is not a multiple of 100 ns, the remainder is 67 ns; use t.Truncate(100)"},
		{Join("p", e.Part("c")), "part 0 (Enum): the name is not one of the 2 that NewEnum was given; add it at the end of that list"},
		{Join("p", NewEnum(1, "a", "b", "a").Part("a")), "part 0 (Enum): names 0 and 2 of the list are equal; list each name once"},
		{Join("p", NewEnum[string](1).Part("a")), "part 0 (Enum): the list has no names; give NewEnum at least one"},
		{Join("p", NewEnum(10, "a").Part("a")), "part 0 (Enum): the width is 10; it must be 1 to 9"},
		{Join("p", NewEnum(0, "a").Part("a")), "part 0 (Enum): the width is 0; it must be 1 to 9"},
		{Join("p", NewEnum(1, strings.Split("abcdefghijk", "")...).Part("a")), "part 0 (Enum): the list has 11 names, but width 1 holds only 10; use a larger width"},
		{Join("a_b", Bool(true)), "prefix: byte 1 is not allowed; a prefix has only ASCII letters, digits, '-' and '.'"},
		{Join("é"), "prefix: byte 0 is not allowed; a prefix has only ASCII letters, digits, '-' and '.'"},
		{Join("a "), "prefix: byte 1 is not allowed; a prefix has only ASCII letters, digits, '-' and '.'"},
		{Join(""), "key: a key needs a prefix or a part; neither was given"},
		{Join(strings.Repeat("p", 513)), "key: the key has 513 UTF-16 units; at most 512 are allowed"},
		{Join("p", String("ab"), String(strings.Repeat("/", 255))),
			"part 1 (String): this part takes 510 of the key's 516 UTF-16 units; at most 512 are allowed, so shorten it"},
	} {
		want := errorHead + c.want
		err := Err(c.key)
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
			continue
		}
		checkPoison(t, c.key, err)
		if strings.Contains(c.key, "s3cret") {
			t.Errorf("the value is in the error: %q", c.key)
		}
	}
}

// checkPoison: the key is refused, and stays so cut anywhere at either end, or
// with text around it.
func checkPoison(t *testing.T, key string, err error) {
	t.Helper()
	var detail *Error
	if !errors.As(err, &detail) || !errors.Is(err, ErrInvalidKey) || detail.Error() != err.Error() {
		t.Errorf("%v is no *Error or not ErrInvalidKey", err)
	}
	if !strings.HasPrefix(key, "\x00") {
		t.Errorf("%q does not begin with U+0000", key)
	}
	if got := CheckKey(key); got == nil || got.Error() != err.Error() {
		t.Errorf("CheckKey: %v, want %v", got, err)
	}
	if got := CheckKey("lead_é" + key + "_tail"); got == nil || got.Error() != err.Error() {
		t.Errorf("CheckKey with text around it: %v", got)
	}
	for i := 1; i < len(key); i++ {
		if CheckKey(key[:i]) == nil || CheckKey(key[i:]) == nil || Err(key[:i]) == nil || Err(key[i:]) == nil {
			t.Fatalf("%q cut at %d is a key", key, i)
		}
	}
	if All().Contains(key) || Range("", key).Err() == nil || Range(key, "").Err() == nil {
		t.Errorf("%q is taken by a span", key)
	}
}

func TestEncodeSaysWhatJoinHides(t *testing.T) {
	key, err := Encode("empid", Int(223, 6))
	if key != "empid_000223" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
	key, err = Encode("empid", Int(223, 2))
	want := &Error{Part: 0, Kind: "Int", Rule: "the value needs 3 digits, but the width is 2; use a larger width"}
	assert.NoDiff(t, cmp.Diff(error(want), err, cmp.Comparer(func(a, b error) bool { return *a.(*Error) == *b.(*Error) })))
	assert.Equal(t, key, Join("empid", Int(223, 2)), "Join's key")
	assert.Check(t, Err("empid_000223"))
	for _, key := range []string{"\x00", "\x00junk", "a\x00compoundkey: part x (Int): no", "\x00compoundkey: part 1: no", "\x00compoundkey: none"} {
		if err := Err(key); err == nil || err.Error() != "compoundkey: key: U+0000 is not allowed in a key; build the part with compoundkey.String" {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestPartState(t *testing.T) {
	for _, p := range []Part{String(""), Int(0, 1), Uint(uint(0), 1), Time(time.Time{}), TimeDesc(time.Time{}),
		UUID(uuid.Nil), Bool(false), Bytes(nil), NewEnum(1, "").Part(""), Tuple(String(""))} {
		if p.IsZero() || p.Err() != nil {
			t.Errorf("%s: zero %v, error %v", p.kind, p.IsZero(), p.Err())
		}
	}
	if !(Part{}).IsZero() || (Part{}).Err() != nil || !Tuple().IsZero() {
		t.Error("the zero Part is not zero, or an error")
	}
	bad := Int(10, 1)
	if bad.IsZero() || bad.Err() == nil || bad.Err().Error() != "compoundkey: Int: the value needs 2 digits, but the width is 1; use a larger width" {
		t.Errorf("%v", bad.Err())
	}
	if NewEnum(1, "a", "a").Err() == nil || NewEnum(1, "a").Err() != nil {
		t.Error("Enum.Err")
	}
}

// Every character alone: CheckKey refuses exactly the illegal ones.
func TestCheckKeyEveryCharacter(t *testing.T) {
	refused := 0
	for r, ok := rune(0), true; ok; r, ok = nextRune(r) {
		illegal := r <= 0x1F || r >= 0x7F && r <= 0x9F || strings.ContainsRune(`/\#?`, r)
		for _, key := range []string{string(r), "ab" + string(r) + "c", "é" + string(r)} {
			if err := CheckKey(key); (err != nil) != illegal {
				t.Fatalf("%U in %q: %v", r, key, err)
			}
		}
		if illegal {
			refused++
		}
	}
	assert.Equal(t, refused, 32+33+4, "characters refused")
}

func TestCheckKeySizesAndText(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"", ""},
		{strings.Repeat("a", 512), ""},
		{strings.Repeat("a", 513), "key: the key has 513 UTF-16 units; at most 512 are allowed"},
		{strings.Repeat("é", 512), ""},
		{strings.Repeat("世", 513), "key: the key has 513 UTF-16 units; at most 512 are allowed"},
		{strings.Repeat("😀", 256), ""},
		{"a" + strings.Repeat("😀", 256), "key: the key has 513 UTF-16 units; at most 512 are allowed"},
		{strings.Repeat("a", 511) + "😀", "key: the key has 513 UTF-16 units; at most 512 are allowed"},
		{"O'Brien", ""},
		{"a\xFF", "key: byte 1 is not valid UTF-8; for binary data use compoundkey.Bytes"},
		{"é\xED\xA0\x80", "key: byte 2 is not valid UTF-8; for binary data use compoundkey.Bytes"},
		{"\uFFFD", ""},
		{"😀a/b", "key: U+002F '/' at offset 3 is not allowed in a key; build the part with compoundkey.String"},
		{"a\tb", "key: U+0009 at offset 1 is not allowed in a key; build the part with compoundkey.String"},
	} {
		got := ""
		if err := CheckKey(c.key); err != nil {
			got = strings.TrimPrefix(err.Error(), errorHead)
			assert.ErrorIs(t, err, ErrInvalidKey)
		}
		assert.Equal(t, got, c.want, "%.20q", c.key)
	}
}

// The largest keys Join makes, and spans around them.
func TestJoinAtTheLimit(t *testing.T) {
	for _, text := range []string{"a", "é", "\uE000", "\uD7FF", "😀", "\U0010FFFF", "'", "/"} {
		unit := countUnits(Join("", String(text)))
		fill := strings.Repeat(text, (MaxUnits-2)/unit)
		pad := strings.Repeat("b", MaxUnits-2-unit*strings.Count(fill, text))
		key := Join("p", String(fill+pad))
		if err := CheckKey(key); err != nil || countUnits(key) != MaxUnits {
			t.Fatalf("%q: %v, %d units", text, err, countUnits(key))
		}
		if Err(Join("p", String(fill+pad+"a"))) == nil {
			t.Errorf("%q: one unit more is no error", text)
		}
		for name, s := range map[string]Span{
			"Starting": Starting("p", String(fill+pad)),
			"Exactly":  Exactly(String(fill + pad)).Under("p"),
			"Prefix":   Prefix(fill).Under("p"),
			"Through":  Through(String(fill), String(fill+pad)).Under("p"),
			"AtLeast":  AtLeast(String(fill + pad)).Under("p"),
		} {
			checkBounds(t, s)
			if !s.Contains(key) || s.Empty() {
				t.Errorf("%s of %q does not hold the key", name, text)
			}
		}
		if s := Prefix(fill + pad + "cc").Under("p"); s.Err() != nil || !s.Empty() || s.Contains(key) {
			t.Errorf("a prefix longer than a key: %v, empty %v", s.Err(), s.Empty())
		}
	}
}

// Values made to look like the layout do not make another value's key.
func TestForgery(t *testing.T) {
	keys := map[string]string{}
	texts := []string{"a", "a_", "_a", "a!", "a!_", "!_b", "b", "a!_b", "a^1b", "^1", "a_b", "", "!", "_", "0", "/", ".", "./", ".\uFFFC", "\uFFFC"}
	for _, x := range texts {
		for _, y := range texts {
			for _, z := range texts {
				key, value := Join("p", String(x), String(y), String(z)), fmt.Sprintf("%q %q %q", x, y, z)
				if other, taken := keys[key]; taken {
					t.Fatalf("%s and %s are both %q", other, value, key)
				}
				keys[key] = value
			}
		}
	}
}

func TestSpanErrors(t *testing.T) {
	wide := Int(10, 1)
	for _, c := range []struct {
		span Span
		want string
	}{
		{Prefix("\xFF").Span, "String: the text of 1 bytes is not valid UTF-8; for binary data use Bytes"},
		{Between(Int(1, 2), String("2")).Span, "span: from is of kind Int and to of kind String; both must be of one kind"},
		{Between(Int(1, 2), Int(2, 3)).Span, "span: from and to are of kind Int with different widths; both must have one width"},
		{Between(Part{}, Int(2, 3)).Span, "part 0 (Part): the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Through(Int(1, 1), wide).Span, "part 1 (Int): the value needs 2 digits, but the width is 1; use a larger width"},
		{AtLeast(wide).Span, "Int: the value needs 2 digits, but the width is 1; use a larger width"},
		{Below(Part{}).Span, "Part: the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Exactly(Part{}).Under("p"), "Part: the part is empty: it is the zero Part, or Of an empty string, a zero time or a nil UUID; give it a value"},
		{Starting("p", Bool(true), wide), "part 1 (Int): the value needs 2 digits, but the width is 1; use a larger width"},
		{Starting("p_"), "prefix: byte 1 is not allowed; a prefix has only ASCII letters, digits, '-' and '.'"},
		{All().Under("p", wide), "part 0 (Int): the value needs 2 digits, but the width is 1; use a larger width"},
		{Range("a/b", ""), "key: U+002F '/' at offset 1 is not allowed in a key; build the part with compoundkey.String"},
		{Range("", Join("p", wide)), "part 0 (Int): the value needs 2 digits, but the width is 1; use a larger width"},
	} {
		err := c.span.Err()
		if err == nil || err.Error() != errorHead+c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
			continue
		}
		if CheckKey(c.span.From()) == nil || CheckKey(c.span.To()) == nil || !c.span.Empty() || c.span.Contains("p") {
			t.Errorf("%v: the span can be used", err)
		}
	}
	if Range("b", "a").Contains("a") || !Range("b", "a").Empty() || Range("a", "b").Empty() || All().Empty() {
		t.Error("Empty")
	}
}
