package backup

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/tables"
)

// TestReserve: where a file system has no links, one of two processes gets a name, and a file is not overwritten.
func TestReserve(t *testing.T) {
	v, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	f := v.objects.(folder)
	if err := f.reserve("a"); err != nil {
		t.Fatal(err)
	}
	if err := f.reserve("a"); !errors.Is(ofFile(err), tables.ErrExists) {
		t.Error(err)
	}
	if err := f.put(t.Context(), "a", []byte("x"), true); !errors.Is(err, tables.ErrExists) {
		t.Error(err)
	}
}
