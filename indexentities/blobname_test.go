package indexentities

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestBlobNames: every list has a name of its own, which is safe in addresses and can be read back.
func TestBlobNames(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab!_ ./\\\x00%#?\U0001F600")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		groups, values := [2]string{text.Draw(t, "group"), text.Draw(t, "group")}, [2]string{text.Draw(t, "value"), text.Draw(t, "value")}
		var names [2]string
		for i := range names {
			name, err := blobName("by.name.", groups[i], compoundkey.String(values[i]))
			if err != nil {
				t.Fatal(err)
			}
			names[i] = name
			for _, part := range strings.Split(name, "/") {
				if part == "" || strings.HasSuffix(part, ".") || strings.ContainsAny(part, "\\?#\x00") {
					t.Fatalf("part %q of blob name %q", part, name)
				}
			}
			key, ok := valueOf(groupPrefix("by.name.", groups[i]), name)
			if !ok || key != compoundkey.Join("", compoundkey.String(values[i])) {
				t.Fatalf("%q is read back as %q", values[i], key)
			}
		}
		if (names[0] == names[1]) != (groups[0] == groups[1] && values[0] == values[1]) {
			t.Fatalf("%q in %q is blob %q, and %q in %q is %q", values[0], groups[0], names[0], values[1], groups[1], names[1])
		}
	})
	if _, err := blobName("n", strings.Repeat("g", 512), compoundkey.String(strings.Repeat("v", 512))); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("a name that is too long: %v", err)
	}
	if _, ok := valueOf(groupPrefix("lastname", ""), "lastname/Sales/Jones"); ok {
		t.Error("the list of a group is taken for one of the global index")
	}
}

// TestCutLists: nothing of a list that is not all of it is taken for it.
func TestCutLists(t *testing.T) {
	ids := []string{"Sales\tempid_000001", "Sales\tempid_000002", "Sales\tempid_000003"}
	text := string(encodeLines(ids))
	for n := range text {
		if got, err := decodeLines(text[:n], "3"); err == nil {
			t.Errorf("%d bytes are %q", n, got)
		}
	}
	if got, err := decodeLines(text, "3"); err != nil || len(got) != 3 {
		t.Errorf("%q, %v", got, err)
	}
	for _, p := range []tables.Properties{nil, {{Name: "Keys", Value: tables.String("a")}}, {{Name: "Count", Value: tables.Int32(2)}, {Name: "Keys", Value: tables.String("a")}},
		{{Name: "Count", Value: tables.Int32(1)}}} {
		if ids, err := decodeIDs(p); err == nil {
			t.Errorf("%v is %q", p, ids)
		}
	}
}
