package compoundkey

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

var fuzzSeeds = []string{
	"", "Jones", "jonesj@contoso.com", "O'Brien", "a/b", `C:\dir`, "#?", "a_b!_c", ".", "./", "..\uFFFC", "~", " ", "50%25", "%&-&0",
	"\x00\x1F\x7F\u0080\u009F", "\uD7FF\U00010000\U0010FFFF\uE000", "\uFFFA\uFFFB\uFFFC\uFFFD\uFFFE\uFFFF", "\xFF", "a\xED\xA0\x80",
}

// FuzzStringRoundTrip: valid text has a legal key that reads back; invalid text
// is an error.
func FuzzStringRoundTrip(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Add(strings.Repeat("😀", 256))
	f.Add(strings.Repeat("/", 257))
	f.Fuzz(func(t *testing.T, s string) {
		key, err := Encode("p", String(s), Bool(true))
		if err != nil {
			if CheckKey(key) == nil || Err(key) == nil {
				t.Fatalf("%v, and the key %q is healthy", err, key)
			}
			if utf8.ValidString(s) && len(s) < 128 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		assert.NoError(assert.Fatal(t), CheckKey(key), "%q", key)
		var got string
		if err := Parse(key, "p", ToString(&got), ToBool(nil)); err != nil || got != s {
			t.Fatalf("%q reads as %q, %v; want %q", key, got, err, s)
		}
	})
}

// FuzzParse: garbage never panics, and what parses makes the same key again.
func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
		f.Add(Join("", String(seed), Int(-7, 3)))
	}
	now := time.Date(2012, 12, 31, 0, 0, 0, 0, time.UTC)
	f.Add(Join("", Int(-7, 3), Uint(uint(7), 20)))
	f.Add(Join("", Time(now), TimeDesc(now)))
	f.Add(Join("", UUID(uuid.Max), Bool(true), Bytes([]byte{1, 2})))
	f.Add("-0776627963145224192_-0776627963145224191")
	f.Fuzz(func(t *testing.T, key string) {
		var (
			s, name string
			n       int64
			n16     int16
			u       uint64
			at, to  time.Time
			id      uuid.UUID
			b       bool
			bs      []byte
		)
		e := NewEnum(1, "a", "b")
		for _, c := range []struct {
			into []Target
			join func() string
		}{
			{[]Target{ToString(&s)}, func() string { return Join("", String(s)) }},
			{[]Target{ToString(&s), ToInt(&n, 3)}, func() string { return Join("", String(s), Int(n, 3)) }},
			{[]Target{ToInt(&n, 19), ToInt(&n16, 5)}, func() string { return Join("", Int(n, 19), Int(n16, 5)) }},
			{[]Target{ToInt(&n, 3), ToUint(&u, 20)}, func() string { return Join("", Int(n, 3), Uint(u, 20)) }},
			{[]Target{ToTime(&at), ToTimeDesc(&to)}, func() string { return Join("", Time(at), TimeDesc(to)) }},
			{[]Target{ToUUID(&id), ToBool(&b), ToBytes(&bs)}, func() string { return Join("", UUID(id), Bool(b), Bytes(bs)) }},
			{[]Target{ToBytes(&bs), e.To(&name)}, func() string { return Join("", Bytes(bs), e.Part(name)) }},
		} {
			if err := Parse(key, "", c.into...); err != nil {
				continue
			}
			if again := c.join(); again != key {
				t.Fatalf("%q parses, but makes %q", key, again)
			}
		}
		if _, err := Split(key); err == nil && CheckKey(key) != nil {
			t.Fatalf("%q splits and is no key", key)
		}
		if Err(key) != nil && CheckKey(key) == nil {
			t.Fatalf("%q is poisoned and a key", key)
		}
	})
}

// FuzzOrder: keys sort as texts do, and Compare as the service does.
func FuzzOrder(f *testing.F) {
	for i, a := range fuzzSeeds {
		f.Add(a, fuzzSeeds[(i+1)%len(fuzzSeeds)])
		f.Add(a, a+"!")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) || len(a) > 100 || len(b) > 100 {
			return // no keys, or too long to be
		}
		want := sign(utf16Compare(a, b))
		assert.Equal(assert.Fatal(t), Compare(a, b), want, "Compare(%q, %q)", a, b)
		x, y := Join("", String(a)), Join("", String(b))
		assert.Equal(assert.Fatal(t), Compare(x, y), want, "%q %q: keys %q %q", a, b, x, y)
		if want == 0 {
			return
		}
		assert.Equal(assert.Fatal(t), Compare(Join("", String(a), String(b)), Join("", String(b), String(a))), want, "%q %q: pairs", a, b)
		assert.Equal(assert.Fatal(t), Prefix(a).Contains(y), strings.HasPrefix(b, a), "Prefix(%q) contains %q", a, b)
	})
}
