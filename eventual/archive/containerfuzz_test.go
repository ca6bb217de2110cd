package archive

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// archivedRest is an entity type that takes any property, and has its key in fields.
type archivedRest struct {
	PartitionKey, RowKey string
	Age                  int32
	Rest                 map[string]tables.Value `table:",rest"`
}

// FuzzArchived: whoever can write blobs chooses the content of an archive. It is an error, or one entity: with the key that the members
// partition and row say, with properties that a table could hold, and the same when it is archived and read once more.
func FuzzArchived(f *testing.F) {
	for _, text := range []string{"", "null", `{"v":1}`, `{"v":1,"partition":"Sales","row":"empid_000223","properties":{"Age":34,"Salary@odata.type":"Edm.Int64","Salary":"91000"}}`,
		`{"v":1,"partition":"p","row":"r","properties":{"PartitionKey":"other","RowKey":"other"}}`, `{"v":1,"partition":"p","row":"r","properties":{"_tpShared":"mover"}}`,
		`{"v":1,"partition":"p","Partition":"q","row":"r","properties":{}}`, `{"v":1,"row":"r","properties":{}}`, `{"v":1,"partition":"a/b","row":"r","properties":{}}`,
		`{"v":1,"partition":"p","row":"r","properties":{"A B":1,"":2}}`, `{"v":1,"partition":"p","row":"r","properties":{"X@odata.type":"Edm.Double","X":"NaN","Y":1e999}}`,
		`{"v":1,"partition":"p","row":"r","properties":{"X@odata.type":"Edm.DateTime","X":"0001-01-01T00:00:00Z"}}`} {
		f.Add([]byte(text))
	}
	bags, err := tables.NewCodec[tables.Entity]()
	if err != nil {
		f.Fatal(err)
	}
	typed, err := tables.NewCodec[archivedRest]()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bag, bagErr := openArchive(bags, text)
		entity, typedErr := openArchive(typed, text)
		if typedErr == nil {
			checkArchived(t, typed, text, tables.Key{Partition: entity.PartitionKey, Row: entity.RowKey}, entity)
			if bagErr != nil || bag.Key.Partition != entity.PartitionKey || bag.Key.Row != entity.RowKey {
				t.Errorf("%q is %+v of the one type, %+v (%v) of the other", text, entity, bag, bagErr)
			}
		}
		if bagErr == nil {
			checkArchived(t, bags, text, bag.Key, bag)
		}
	})
}

// checkArchived compares an entity with the archive that it was read from.
func checkArchived[T any](t *testing.T, codec *tables.Codec[T], text []byte, key tables.Key, v *T) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil || members["partition"] != key.Partition || members["row"] != key.Row {
		t.Fatalf("%q is read as the entity with the key %q (%v)", text, key, err)
	}
	if compoundkey.CheckKey(key.Partition) != nil || compoundkey.CheckKey(key.Row) != nil {
		t.Fatalf("%q: no entity has the key %q", text, key)
	}
	properties, err := codec.Encode(v)
	if err != nil {
		t.Fatalf("%q is read and cannot be stored: %v", text, err)
	}
	for _, p := range properties {
		own := p.Name == "PartitionKey" || p.Name == "RowKey" || p.Name == "Timestamp" || strings.HasPrefix(p.Name, "_tp")
		if own || edm.CheckName(p.Name) != nil {
			t.Fatalf("%q: no entity has the property %q", text, p.Name)
		}
	}
	stored, err := toContainer[T]{codec: codec}.encode(key, v)
	if err != nil {
		t.Fatalf("%q is read and cannot be archived: %v", text, err)
	}
	again, err := openArchive(codec, stored)
	if err != nil {
		t.Fatalf("%q was archived as %q, which cannot be read: %v", text, stored, err)
	}
	if twice, err := (toContainer[T]{codec: codec}).encode(key, again); err != nil || !reflect.DeepEqual(sortedMembers(t, twice), sortedMembers(t, stored)) {
		t.Fatalf("%q, then %q (%v)", stored, twice, err)
	}
}

// sortedMembers is the JSON without the order of its members: what a map holds is archived in any order.
func sortedMembers(t *testing.T, text []byte) (members map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	return members
}
