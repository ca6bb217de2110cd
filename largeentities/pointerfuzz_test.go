package largeentities

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/tables"
)

// FuzzPointer: a text that is read as a pointer is the one form of it, and one that is taken for the entity's own leads to a blob
// under the entity's prefix.
func FuzzPointer(f *testing.F) {
	key := tables.Key{Partition: "Sales", Row: "empid_000223"}
	b := &blobs{prefix: "Employees/Photo", home: "aG9tZQ"}
	own := entityPrefix(b.prefix, key)
	hash := strings.Repeat("0", 64)
	for _, text := range []string{"tp1 1 " + hash + " " + own + "ID image/jpeg", "tp2 9 " + hash + " " + own + "ID x y",
		"tp1 1 " + hash + " " + own + "../ID x", "tp1 1 " + hash + " Employees/Photo/OTHER/ID x", "tp1 -1 " + hash + " a b", "", "tp3 1 00 a b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range []tables.Value{tables.String(text), tables.Binary([]byte(text))} {
			for _, form := range []form{binaryForm, stringForm, streamForm} {
				ptr, err := form.read(key, v)
				if err != nil || ptr == nil {
					continue
				}
				if ptr.String() != text || ptr.of != key {
					t.Errorf("%q is read as %q", text, ptr)
				}
				if b.checkOwn("Load", key, ptr.name) == nil && !strings.HasPrefix(ptr.name, own) {
					t.Errorf("%q leads to %q", text, ptr.name)
				}
			}
		}
		if ptr, err := parseText(text); err == nil && textOf(ptr) != text {
			t.Errorf("the text of a Stream %q is read as %q", text, textOf(ptr))
		}
	})
}
