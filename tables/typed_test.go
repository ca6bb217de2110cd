package tables_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestEntityVerbs(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	bags := table.Entities()
	e := &tables.Entity{Key: tables.Key{Partition: "O'Brien & Söhne", Row: "50% of + x"}}
	e.Set("Name", tables.String("a'b\"c\\d\u2028\u0001\U0001F600"))
	e.Set("Age", tables.Int32(-7))
	e.Set("Salary", tables.Int64(1<<53+1))
	e.Set("Whole", tables.Double(3))
	e.Set("Photo", tables.Binary([]byte{0, 1, 255}))
	assert.Check(t, bags.Insert(ctx, e))
	harness.WantKind(t, bags.Insert(ctx, e), tables.ErrExists)
	got := assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key))
	assert.NoDiff(assert.Fatal(t), cmp.Diff(e.Properties, got.Properties, cmp.Comparer(func(a, b tables.Value) bool { return a == b })))
	if got.ETag != e.ETag || got.Timestamp.IsZero() {
		t.Fatalf("read ETag %q, written %q, time %v", got.ETag, e.ETag, got.Timestamp)
	}
	stale := got.Clone()
	got.Set("Age", tables.Int32(8))
	got.Properties.Delete("Photo")
	assert.Check(t, bags.Replace(ctx, got))
	harness.WantKind(t, bags.Replace(ctx, stale), tables.ErrConflict)
	harness.WantKind(t, bags.Merge(ctx, stale), tables.ErrConflict)
	harness.WantKind(t, bags.Delete(ctx, stale), tables.ErrConflict)
	if err := bags.Merge(ctx, &tables.Entity{Key: e.Key, ETag: got.ETag, Properties: tables.Properties{{Name: "More", Value: tables.Boolean(true)}}}); err != nil {
		t.Fatal(err)
	}
	got = assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key))
	if got.Get("Age") != tables.Int32(8) || got.Get("More") != tables.Boolean(true) || got.Properties.Has("Photo") {
		t.Fatalf("%#v", got)
	}
	assert.Check(t, bags.Delete(ctx, got))
	harness.WantKind(t, assert.Err(bags.Get(ctx, e.Key)), tables.ErrNotFound)
	harness.WantKind(t, bags.DeleteUnconditional(ctx, e.Key), tables.ErrNotFound)
	harness.WantKind(t, bags.MergeUnconditional(ctx, e), tables.ErrNotFound)
	harness.WantKind(t, bags.ReplaceUnconditional(ctx, e), tables.ErrNotFound)
	assert.Check(t, bags.Upsert(ctx, e))
	for verb, overwrite := range map[string]func(context.Context, *tables.Entity) error{
		"merge":   func(ctx context.Context, e *tables.Entity) error { return bags.MergeUnconditional(ctx, e) },
		"replace": bags.ReplaceUnconditional,
	} {
		overtaken := stale.Clone() // with an ETag of before
		overtaken.Set("Name", tables.String(verb))
		assert.Check(t, overwrite(ctx, overtaken))
		if got := assert.Must[*tables.Entity](t)(bags.Get(ctx, e.Key)); got.Get("Name") != tables.String(verb) {
			t.Errorf("after an unconditional %s: %#v", verb, got)
		}
	}
	assert.Check(t, bags.DeleteUnconditional(ctx, e.Key))
}

func TestTransaction(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	x := table.NewTransaction()
	for _, row := range []string{"a", "b", "c"} {
		x.Insert(&tables.Entity{Key: tables.Key{Partition: "p'q", Row: row}, Properties: tables.Properties{{Name: "N", Value: tables.String(row)}}})
	}
	etags, err := x.Commit(ctx)
	assert.Check(t, err)
	bags := table.Entities()
	for i, row := range []string{"a", "b", "c"} {
		got := assert.Must[*tables.Entity](t)(bags.Get(ctx, tables.Key{Partition: "p'q", Row: row}))
		if got.ETag != etags[i] {
			t.Fatalf("row %s: ETag %q, transaction said %q", row, got.ETag, etags[i])
		}
	}
	x = table.NewTransaction()
	x.Upsert(&tables.Entity{Key: tables.Key{Partition: "p'q", Row: "d"}})
	x.Insert(&tables.Entity{Key: tables.Key{Partition: "p'q", Row: "b"}})
	_, err = x.Commit(ctx)
	e := harness.WantKind(t, err, tables.ErrExists)
	if e.Change != 2 || e.Key.Row != "b" || e.Code != "EntityAlreadyExists" {
		t.Fatalf("%+v", e)
	}
	_, err = bags.Get(ctx, tables.Key{Partition: "p'q", Row: "d"})
	harness.WantKind(t, err, tables.ErrNotFound)
	n := 0
	for _, err := range bags.Query().Partition("p'q").Where(tables.Gt("N", "a")).All(ctx) {
		assert.Check(t, err)
		n++
	}
	assert.Equal(assert.Fatal(t), n, 2, "rows")
}

func TestProjectionsCannotDestroy(t *testing.T) {
	ctx := context.Background()
	type worker struct {
		tables.Meta
		PartitionKey, RowKey string
		Name                 string
		Age                  int
	}
	table := harness.NewTable(t, harness.Account(t))
	typed := assert.Must[*tables.Rows[worker]](t)(tables.RowsOf[worker](table))
	assert.Check(t, typed.Insert(ctx, &worker{PartitionKey: "p", RowKey: "r", Name: "Ann", Age: 41}))
	part := assert.Must[*worker](t)(typed.Query().Partition("p").Select("Name").First(ctx))
	for name, err := range map[string]error{
		"Replace": typed.Replace(ctx, part), "ReplaceUnconditional": typed.ReplaceUnconditional(ctx, part), "Upsert": typed.Upsert(ctx, part),
		"Merge": typed.Merge(ctx, part), "MergeUnconditional": typed.MergeUnconditional(ctx, part), "UpsertMerge": typed.UpsertMerge(ctx, part),
	} {
		t.Run(name, func(t *testing.T) { harness.WantKind(t, err, tables.ErrInvalid) })
	}
	bag := assert.Must[*tables.Entity](t)(table.Entities().Query().Partition("p").Select("Name").First(ctx))
	bag.Set("Name", tables.String("Anna"))
	harness.WantKind(t, table.Entities().Replace(ctx, bag), tables.ErrInvalid)
	assert.Check(t, table.Entities().Merge(ctx, bag))
	whole := assert.Must[*worker](t)(typed.Get(ctx, tables.Key{Partition: "p", Row: "r"}))
	if whole.Name != "Anna" || whole.Age != 41 {
		t.Fatalf("%+v", whole)
	}
	assert.Check(t, typed.Delete(ctx, whole))
}
