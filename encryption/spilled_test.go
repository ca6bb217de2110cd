package encryption_test

import (
	"encoding/base64"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
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
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, "queue", nil))
	refused := func(what string, o *encryption.Options, property string, sealed bool) {
		t.Helper()
		for _, spillFirst := range []bool{true, false} {
			options := &largeentities.Options{}
			if sealed {
				options.Sealer = streamOf(t, w.registry, "")
			}
			both := []patterns.Pattern[person]{largeentities.NewProperty[person](property, blobstorage.Container(w.account, "photos"), options), encryption.New[person]("encryption", w.registry, o)}
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

// TestCopyOfASpilledValue: a copy whose blob is gone leads to the entity, also if copies are authenticated, and only while the
// entity still has the index key.
func TestCopyOfASpilledValue(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	for _, project := range [][]string{nil, {"ID", "Photo"}} {
		w := worldOn(t, s)
		table, photos := w.account.Table(s.TableName(t)), blobstorage.Container(w.account, s.ContainerName(t))
		queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, s.QueueName(t), nil))
		_, err := photos.Create(ctx, nil)
		assert.Check(t, err, table.Create(ctx), queue.Create(ctx))
		photo := largeentities.NewProperty[person]("Photo", photos, &largeentities.Options{Threshold: 64})
		byID := interpartition.NewUnique("id", func(p *person) int { return p.ID }, &interpartition.Options[person]{Project: project})
		people := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.In(table, queue),
			patterns.Schema[person]{Key: func(*person) tables.Key { return employeeKey("Sales", 1) }, Prefix: "empid"},
			photo, encryption.New[person]("encryption", w.registry, nil), byID))
		p := &person{ID: 7, Essay: "secret", Photo: []byte(strings.Repeat("a", 100))}
		assert.Check(t, people.Insert(ctx, p), harness.DrainNow(ctx, queue))
		p.Photo = []byte(strings.Repeat("b", 100))
		assert.Check(t, people.Replace(ctx, p)) // the old blob is deleted, and the copy perhaps not settled yet
		assert.NoError(assert.Fatal(t), assert.Err(byID.Get(ctx, 7)), "projection %v", project)
		for name, all := range map[string]iter.Seq2[*person, error]{"Range": byID.Range(ctx)} {
			found := 0
			for v, err := range all {
				if found++; err != nil || string(v.Photo) != string(p.Photo) || project == nil && v.Essay != "secret" {
					t.Errorf("projection %v, %s: %+v, %v", project, name, v, err)
				}
			}
			assert.Equal(t, found, 1, "projection %v, %s: entities", project, name)
		}
		p.ID = 8
		assert.Check(t, people.Replace(ctx, p))
		harness.WantKind(t, assert.Err(byID.Get(ctx, 7)), tables.ErrNotFound)
	}
}

// TestUsesInPackedRows: a value that is packed in texts is counted once, wherever the texts are cut.
func TestUsesInPackedRows(t *testing.T) {
	a := loader(t, nil)
	seal, _ := a.stored(t, aKey, text("A", "1")).Get(encryption.SealProperty).Bytes()
	id := encryption.DataKeyID(seal[8:24])
	packed := "VFBFnone:s1:x_encryptionSeal:b200:" + base64.StdEncoding.EncodeToString(seal)
	table := a.account.Table("Packed")
	assert.Check(t, table.Create(t.Context()))
	for cut := range 90 {
		first, last := packed[:cut], packed[cut:]
		put(t, table, &tables.Entity{Key: tables.Key{Partition: "p", Row: "1"}, Properties: tables.Properties{text("Pack01", first[len(first)/2:]), text("Pack00", first[:len(first)/2])}})
		put(t, table, &tables.Entity{Key: tables.Key{Partition: "p", Row: "2"}, Properties: tables.Properties{text("Pack00", last)}})
		if uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(t.Context(), table)); uses[id] != 1 {
			t.Errorf("cut at %d: %v", cut, uses)
		}
	}
}
