package compoundkey

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// Parse takes what Join prints and nothing else.
func TestParseRefuses(t *testing.T) {
	e := NewEnum(2, "a", "b", "c")
	var (
		s  string
		n  int
		n8 int8
		u  uint
		u8 uint8
		at time.Time
		id uuid.UUID
		b  bool
		bs []byte
	)
	for _, c := range []struct {
		key, prefix string
		into        []Target
		want        string
	}{
		{"q_1", "p", []Target{ToBool(&b)}, "prefix: the key does not consist of prefix p and the parts that Parse expects"},
		{"p", "p", []Target{ToString(&s)}, "prefix: the key does not consist of prefix p and the parts that Parse expects"},
		{"p_1", "p", nil, "prefix: the key does not consist of prefix p and the parts that Parse expects"},
		{"1", "", nil, "key: Parse was given neither a prefix nor a Target; give it at least one"},
		{"p__1", "p_", []Target{ToBool(&b)}, "prefix: byte 1 is not allowed; a prefix has only ASCII letters, digits, '-' and '.'"},
		{"1_1", "", []Target{ToBool(&b)}, "part 0 (Bool): the key has further parts after this one; give Parse a Target for each part"},
		{"1", "", []Target{ToBool(&b), ToBool(&b), ToBool(&b)}, "part 0 (Bool): the key ends after this part, but Parse was given Targets for 2 more"},
		{"Jones_1", "", []Target{ToString(&s), ToBool(&b)}, "part 0 (String): the text does not end in '!', as a String or Bytes part before another part must"},
		{"Jones!", "", []Target{ToString(&s)}, "part 0 (String): the text contains a character or escape that String never writes; read it with the Target of its own kind"},
		{"1!_1", "", []Target{ToBool(&b), ToBool(&b)}, "part 0 (Bool): the text is not a Bool; it must be 0 or 1"},
		{"1", "", []Target{{}}, "part 0 (Part): the Target is the zero value; make it with ToInt, ToString or another To function"},
		{"a/b", "", []Target{ToString(&s)}, "key: U+002F '/' at offset 1 is not allowed in a key; build the part with compoundkey.String"},
		{Join("", Int(10, 1)), "", []Target{ToString(&s)}, "part 0 (Int): the value needs 2 digits, but the width is 1; use a larger width"},
		{"1", "", []Target{ToInt(&n, 0)}, "part 0 (Int): the width is 0; it must be 1 to 19"},
		{"1", "", []Target{ToUint(&u, 21)}, "part 0 (Uint): the width is 21; it must be 1 to 20"},
		{"128", "", []Target{ToInt(&n8, 3)}, "part 0 (Int): the text is not a number of 3 digits, or the number is too large for the Target's type"},
		{"256", "", []Target{ToUint(&u8, 3)}, "part 0 (Uint): the text is not a number of 3 digits, or the number is too large for the Target's type"},
		{"02", "", []Target{NewEnum(1, "a").To(&s)}, "part 0 (Enum): the text is not a position in the list that NewEnum was given; it must be a number of 1 digits below the list's length"},
		{"00", "", []Target{NewEnum(1, "a", "a").To(&s)}, "part 0 (Enum): names 0 and 1 of the list are equal; list each name once"},
		{"03", "", []Target{e.To(&s)}, "part 0 (Enum): the text is not a position in the list that NewEnum was given; it must be a number of 2 digits below the list's length"},
	} {
		if err := Parse(c.key, c.prefix, c.into...); err == nil || err.Error() != errorHead+c.want {
			t.Errorf("%q: got  %v\nwant %s", c.key, err, c.want)
		}
	}
	for name, texts := range map[*Target][]string{
		new(ToString(&s)): {"!", "!c", "!cW", "!cv", "!y", "\"", "\"2", "&2", ">a", "[2", "^", "^2", "~", "~Y", "~a",
			" ", "'", "\uFFFB", "\uFFFB5", "\uFFFC", "a\uFFFC", "\uFFFD", "\uFFFE", "\uFFFF", ".\uFFFC\uFFFC"},
		new(ToInt(&n, 2)): {"", "1", "001", "+1", "1a", "-00", "-1", "-", "--1", "-001", " 1"},
		new(ToInt(&n, 19)): {"9223372036854775808", "9999999999999999999", "-0776627963145224191",
			"-0000000000000000001"},
		new(ToUint(&u, 20)):  {"18446744073709551616", "99999999999999999999", "-8446744073709551615", "0"},
		new(ToTime(&at)):     {"3155378976000000000", "9999999999999999999", "0", "-155378975999999999", "00000000000000000000"},
		new(ToTimeDesc(&at)): {"3155378976000000000"},
		new(ToUUID(&id)): {"", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8",
			"{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		new(ToBool(&b)):   {"", "2", "00", "true"},
		new(ToBytes(&bs)): {"0", "AB", "0x", "ab!"},
	} {
		for _, text := range texts {
			assert.Error(t, Parse(text, "", *name), "%s takes %q", name.kind, text)
		}
	}
}

// On an error no target is written to, not even those that were read.
func TestParseWritesAllOrNothing(t *testing.T) {
	n, s := 5, "before"
	if err := Parse("p_07_a", "p", ToInt(&n, 2), ToInt[int](nil, 2)); err == nil || n != 5 {
		t.Errorf("%v, %d", err, n)
	}
	if err := Parse("p_07_a", "p", ToInt(&n, 2), ToString(&s)); err != nil || n != 7 || s != "a" {
		t.Errorf("%v, %d, %q", err, n, s)
	}
	if err := Parse("p_08_b", "p", ToInt[int](nil, 2), ToString(&s)); err != nil || n != 7 || s != "b" {
		t.Errorf("%v, %d, %q", err, n, s)
	}
	assert.Check(t, Parse("header", "header"))
}

// Names added at the end leave the keys of the others alone.
func TestEnumGrows(t *testing.T) {
	type status string
	before := NewEnum[status](2, "draft", "open")
	after := NewEnum[status](2, "draft", "open", "closed")
	for _, name := range []status{"draft", "open"} {
		if x, y := Join("s", before.Part(name)), Join("s", after.Part(name)); x != y {
			t.Errorf("%q became %q", x, y)
		}
	}
	key := Join("s", after.Part("closed"))
	var got status
	if err := Parse(key, "s", after.To(&got)); err != nil || got != "closed" {
		t.Errorf("%v, %q", err, got)
	}
	assert.Error(t, Parse(key, "s", before.To(&got)), "an old list reads a new name")
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		key  string
		want []string
	}{
		{"", []string{""}},
		{"empid_000223", []string{"empid", "000223"}},
		{"lastname_Jones!_000223", []string{"lastname", "Jones", "000223"}},
		{Join("p", String("a_b!"), String("!")), []string{"p", "a_b!", "!"}},
	} {
		got := assert.Must[[]string](t)(Split(c.key))
		assert.NoDiff(t, cmp.Diff(c.want, got))
	}
	for _, key := range []string{"a!", "a b", "a_b!", "a!!_b", "a/b", Join("", Int(10, 1))} {
		if got, err := Split(key); err == nil {
			t.Errorf("%q splits into %q", key, got)
		}
	}
}
