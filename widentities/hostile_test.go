package widentities_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestHostileWide: what no row can hold is refused before any request, also where it would be in a record.
func TestHostileWide(t *testing.T) {
	s, n := harness.CountedService(storagetest.Simulator(t, nil))
	p, _ := open(t, s)
	n.Reset()
	for name, c := range map[string]struct {
		property string
		value    tables.Value
		team     string
	}{
		"no UTF-8":            {"Text", tables.String("\xff" + strings.Repeat("x", 70_000)), "red"},
		"no property name":    {"a-b", tables.Int32(1), "red"},
		"an empty name":       {"", tables.Int32(1), "red"},
		"the library's name":  {"_tpLayout", tables.String("1 x y"), "red"},
		"the service's name":  {"RowKey", tables.String("x"), "red"},
		"an impossible key":   {"Text", tables.Int32(1), "r/d"},
		"a name of 256 units": {strings.Repeat("n", 256), tables.Int32(1), "red"},
	} {
		v := withNumbers(1, 300)
		v.Team, v.More[c.property] = c.team, c.value
		assert.ErrorIs(t, p.profiles.Insert(t.Context(), v), tables.ErrInvalid, name)
	}
	if got := n.Count(); got > 0 {
		t.Errorf("%d requests", got)
	}
}

// TestNamesOfPieces: properties that are called like those of a further row, and of a record, come back.
func TestNamesOfPieces(t *testing.T) {
	p, _ := open(t, storagetest.Simulator(t, nil))
	v := withNumbers(1, 300)
	v.More["Pack00"], v.More["Pack01"], v.More["é"] = tables.String("Pack00:s1:x"), tables.Binary([]byte{0}), tables.String("")
	assert.Check(t, p.profiles.Insert(t.Context(), v))
	got := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	same(t, got, v)
}
