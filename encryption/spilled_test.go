package encryption_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// person has an essay to encrypt and a photo that a resolver may choose.
type person struct {
	tables.Meta
	ID    int
	Essay string `encrypt:"true"`
	Photo []byte
}

// TestSpilledIsRefused: what is to be encrypted and leaves its row in clear is refused, whichever pattern is named first.
func TestSpilledIsRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := worldOn(t, s)
	queue := harness.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, "queue", nil))
	refused := func(what string, o *encryption.Options, property string, sealed bool) {
		t.Helper()
		for _, spillFirst := range []bool{true, false} {
			options := &largeentities.Options{}
			if sealed {
				options.Sealer = streamOf(t, w.registry, "")
			}
			both := []patterns.Pattern[person]{largeentities.NewProperty[person](property, w.account.Container("photos"), options), encryption.New[person]("encryption", w.registry, o)}
			if !spillFirst {
				both[0], both[1] = both[1], both[0]
			}
			_, err := patterns.NewRepository(harness.In(w.account.Table("People"), queue), patterns.Schema[person]{Key: func(p *person) tables.Key { return employeeKey("Sales", p.ID) }}, both...)
			if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), property) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	all := &encryption.Options{Resolver: func(_, _, _ string) bool { return true }}
	refused("a tag", nil, "Essay", false)
	refused("a tag, and a sealer", nil, "Essay", true)
	refused("a resolver", all, "Photo", false)
}

// TestUsesInPackedRows: a value that is packed in texts is counted once, wherever the texts are cut.
func TestUsesInPackedRows(t *testing.T) {
	a := loader(t, nil)
	seal, _ := a.stored(t, aKey, text("A", "1")).Get(encryption.SealProperty).Bytes()
	id := encryption.DataKeyID(seal[8:24])
	packed := "VFBFnone:s1:x_encryptionSeal:b200:" + base64.StdEncoding.EncodeToString(seal)
	table := a.account.Table("Packed")
	harness.Check(t, table.Create(t.Context()))
	for cut := range 90 {
		first, last := packed[:cut], packed[cut:]
		put(t, table, &tables.Entity{Key: tables.Key{Partition: "p", Row: "1"}, Properties: tables.Properties{text("Pack01", first[len(first)/2:]), text("Pack00", first[:len(first)/2])}})
		put(t, table, &tables.Entity{Key: tables.Key{Partition: "p", Row: "2"}, Properties: tables.Properties{text("Pack00", last)}})
		if uses := harness.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(t.Context(), table)); uses[id] != 1 {
			t.Errorf("cut at %d: %v", cut, uses)
		}
	}
}
