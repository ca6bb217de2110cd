package rows

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

func TestNumbered(t *testing.T) {
	for row, want := range map[string]struct {
		first  string
		number int
	}{
		"": {"", 0}, "Jones": {"Jones", 0}, "Jones!0001": {"Jones", 1}, "Jones!9999": {"Jones", 9999}, "!0002": {"", 2}, "Jones!_0001": {"Jones!_0001", 0},
		"Jones!s001": {"Jones!s001", 0}, "!01": {"!01", 0}, "Jones!x!0012": {"Jones!x", 12},
	} {
		first, number := ParseNumbered(row)
		if first != want.first || number != want.number {
			t.Errorf("%q is row %d of %q", row, number, first)
		}
		if number > 0 && Numbered(first, number) != row {
			t.Errorf("row %d of %q is %q", number, first, Numbered(first, number))
		}
	}
}

// TestAllNumberedHasNoOtherRows: the rows of a value lie together, and no row of another value is among them.
func TestAllNumberedHasNoOtherRows(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab!_ .0019/\x00\"#~\uFFFC\uFFFF\U0001F600")), 0, 8, -1)
	part := rapid.Custom(func(t *rapid.T) compoundkey.Part {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return compoundkey.Int(rapid.IntRange(-20, 20).Draw(t, "number"), 4)
		case 1:
			return compoundkey.Tuple(compoundkey.String(text.Draw(t, "text")), compoundkey.Int(rapid.IntRange(0, 9).Draw(t, "number"), 4))
		case 2:
			return compoundkey.Bytes([]byte(text.Draw(t, "text")))
		}
		return compoundkey.String(text.Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := compoundkey.Join("", part.Draw(t, "a")), compoundkey.Join("", part.Draw(t, "b"))
		if compoundkey.Err(a) != nil || compoundkey.Err(b) != nil {
			t.Fatal(a, b)
		}
		for _, number := range []int{0, 1, 9999} {
			row := Numbered(b, number)
			if first, n := ParseNumbered(row); first != b || n != number {
				t.Fatalf("row %d of %q is taken for row %d of %q", number, b, n, first)
			}
			if in := AllNumbered(a).Contains(row); in != (a == b) {
				t.Fatalf("row %q is in the range of %q: %v", row, a, in)
			}
		}
	})
}
