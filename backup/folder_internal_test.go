package backup

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestReserve: where a file system has no links, one of two processes gets a name, and a file is not overwritten.
func TestReserve(t *testing.T) {
	v := assert.Must[*Vault](t)(OpenFolder(t.TempDir()))
	defer v.Close()
	f := v.objects.(folder)
	assert.Check(t, f.reserve("a"))
	if err := f.reserve("a"); !errors.Is(ofFile(err), tables.ErrExists) {
		t.Error(err)
	}
	assert.ErrorIs(t, f.put(t.Context(), "a", []byte("x"), true), tables.ErrExists)
}
