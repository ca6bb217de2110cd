package tables_test

import (
	"context"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

type (
	// Keys and Base are exported, as an embedded pointer must be to be set on reading.
	Keys struct {
		PartitionKey, RowKey string
	}
	Base struct {
		tables.Meta
		Created time.Time `table:",omitzero"`
	}
	Deep struct {
		Name  string
		Depth int
	}
	Middle struct {
		*Deep
		Width int
	}
	lower struct{ Low string }
)

type flat struct {
	Keys
	Base
	lower
	Middle
	Name string // shadows Deep.Name
}

type pointers struct {
	*Keys
	*Base
	*Middle
	Own string
}

func TestCodecEmbedded(t *testing.T) {
	codec := assert.Must[*tables.Codec[flat]](t)(tables.NewCodec[flat]())
	created := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	in := flat{Keys{"p", "r"}, Base{Created: created}, lower{"low"}, Middle{&Deep{"hidden", 3}, 2}, "name"}
	got := assert.Must[tables.Properties](t)(codec.Encode(&in))
	want := tables.Properties{property("Created", assert.Must[tables.Value](t)(tables.DateTime(created))), property("Low", tables.String("low")),
		property("Depth", tables.Int64(3)), property("Width", tables.Int64(2)), property("Name", tables.String("name"))}
	assert.NoDiff(assert.Fatal(t), equal(want, got))
	var out flat
	assert.Check(t, codec.Decode(got, &out))
	if out.Name != "name" || out.Deep == nil || out.Depth != 3 || out.Deep.Name != "" || out.Low != "low" || !out.Created.Equal(created) {
		t.Errorf("%+v", out)
	}
	in.Deep = nil
	got = assert.Must[tables.Properties](t)(codec.Encode(&in))
	if got.Has("Depth") || !got.Has("Width") {
		t.Errorf("%v", got)
	}
	out = flat{}
	if err := codec.Decode(got, &out); err != nil || out.Deep != nil {
		t.Errorf("%+v %v", out, err)
	}
}

// TestCodecEmbeddedPointers: keys and Meta may lie behind pointers, which reading makes.
func TestCodecEmbeddedPointers(t *testing.T) {
	ctx := context.Background()
	view := assert.Must[*tables.Rows[pointers]](t)(tables.RowsOf[pointers](harness.NewTable(t, harness.Account(t))))
	harness.WantKind(t, view.Insert(ctx, &pointers{Own: "x"}), tables.ErrInvalid)
	harness.WantKind(t, view.Replace(ctx, &pointers{Own: "x"}), tables.ErrInvalid)
	in := &pointers{Keys: &Keys{"p", "r"}, Middle: &Middle{Width: 2}, Own: "x"}
	assert.Check(t, view.Insert(ctx, in))
	if in.Base == nil || in.ETag == "" {
		t.Error("the insert left no ETag")
	}
	got := assert.Must[*pointers](t)(view.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	if got.Keys == nil || got.RowKey != "r" || got.Base == nil || got.ETag != in.ETag || got.Middle == nil || got.Width != 2 || got.Deep != nil || got.Own != "x" {
		t.Fatalf("%+v", got)
	}
	got.Deep = &Deep{Name: "deep"}
	assert.Check(t, view.Replace(ctx, got))
	harness.WantKind(t, view.Replace(ctx, in), tables.ErrConflict)
	got = assert.Must[*pointers](t)(view.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	if got.Deep == nil || got.Name != "deep" {
		t.Errorf("%+v", got)
	}
	assert.Check(t, view.Delete(ctx, got))
}

func TestCodecRefusesEmbedded(t *testing.T) {
	type Left struct{ X int }
	type Right struct{ X string }
	codecError[struct {
		Left
		Right
	}](t, "X")
	codecError[struct{ *lower }](t, "lower")
	codecError[struct {
		Deep
		Other string `table:"Depth"`
	}](t, "Depth")
	codecError[struct {
		Deep
		Bad chan int
	}](t, "Bad")
	type Bad struct{ Inner chan int }
	codecError[struct{ Bad }](t, "Inner")
}

// TestCodecEmbeddedWhole: an embedded struct that is stored whole, or not at all, gives none of its fields away.
func TestCodecEmbeddedWhole(t *testing.T) {
	type whole struct {
		time.Time
		Deep   `table:"Address,json"`
		Middle `table:"-"`
	}
	codec := assert.Must[*tables.Codec[whole]](t)(tables.NewCodec[whole]())
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	got := assert.Must[tables.Properties](t)(codec.Encode(&whole{Time: at, Deep: Deep{"n", 1}, Middle: Middle{Width: 3}}))
	want := tables.Properties{property("Time", assert.Must[tables.Value](t)(tables.DateTime(at))), property("Address", tables.String(`{"Name":"n","Depth":1}`))}
	assert.NoDiff(t, equal(want, got))
}

type version1 struct {
	tables.Meta
	PartitionKey, RowKey string
	Name                 string
	Rest                 map[string]tables.Value `table:",rest"`
}

type version2 struct {
	tables.Meta
	PartitionKey, RowKey string
	Timestamp            time.Time
	Name                 string
	Salary               int64
	Born                 time.Time
	Whole                float64
	Photo                []byte
}

// TestOlderBuildLosesNothing: what version 1 does not know survives its Replace.
func TestOlderBuildLosesNothing(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	newer := assert.Must[*tables.Rows[version2]](t)(tables.RowsOf[version2](table))
	older := assert.Must[*tables.Rows[version1]](t)(tables.RowsOf[version1](table))
	written := &version2{PartitionKey: "p", RowKey: "r", Name: "Jones", Salary: 1<<53 + 1, Born: time.Date(1970, 1, 1, 0, 0, 0, 100, time.UTC), Whole: 3, Photo: []byte{}}
	assert.Check(t, newer.Insert(ctx, written))
	old := assert.Must[*version1](t)(older.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	assert.Len(assert.Fatal(t), old.Rest, 4, "the rest")
	old.Name = "Smith"
	assert.Check(t, older.Replace(ctx, old))
	harness.WantKind(t, newer.Replace(ctx, written), tables.ErrConflict)
	read := assert.Must[*version2](t)(newer.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	if read.Name != "Smith" || read.Salary != written.Salary || !read.Born.Equal(written.Born) || read.Whole != 3 || read.Photo == nil || len(read.Photo) != 0 {
		t.Errorf("%+v", read)
	}
	if read.ETag != old.ETag || read.Timestamp.IsZero() || !read.Timestamp.Equal(read.Meta.Timestamp) {
		t.Errorf("ETag %q, written %q, time %v", read.ETag, old.ETag, read.Timestamp)
	}

	for name, v := range map[string]tables.Value{"Name": tables.String("x"), "a-b": tables.Int32(1), "_tpX": tables.Int32(1), "RowKey": tables.String("x")} {
		old.Rest = map[string]tables.Value{name: v}
		harness.WantKind(t, older.Replace(ctx, old), tables.ErrInvalid)
	}
	old.Rest = map[string]tables.Value{"Gone": {}}
	assert.NoError(t, older.Replace(ctx, old), "a null in the rest")
}
