package patterns_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/patterns"
)

func TestEntityVerbs(t *testing.T) {
	ctx := context.Background()
	table := newTable(t, account(t))
	bags := table.Entities()
	e := &patterns.Entity{Key: patterns.Key{Partition: "O'Brien & Söhne", Row: "50% of + x"}}
	e.Set("Name", patterns.String("a'b\"c\\d\u2028\u0001\U0001F600"))
	e.Set("Age", patterns.Int32(-7))
	e.Set("Salary", patterns.Int64(1<<53+1))
	e.Set("Whole", patterns.Double(3))
	e.Set("Photo", patterns.Binary([]byte{0, 1, 255}))
	if err := bags.Insert(ctx, e); err != nil {
		t.Fatal(err)
	}
	wantKind(t, bags.Insert(ctx, e), patterns.ErrExists)
	got, err := bags.Get(ctx, e.Key)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(e.Properties, got.Properties, cmp.Comparer(func(a, b patterns.Value) bool { return a == b })); d != "" {
		t.Fatal(d)
	}
	if got.ETag != e.ETag || got.Timestamp.IsZero() {
		t.Fatalf("read ETag %q, written %q, time %v", got.ETag, e.ETag, got.Timestamp)
	}
	stale := got.Clone()
	got.Set("Age", patterns.Int32(8))
	got.Properties.Delete("Photo")
	if err := bags.Replace(ctx, got); err != nil {
		t.Fatal(err)
	}
	wantKind(t, bags.Replace(ctx, stale), patterns.ErrConflict)
	wantKind(t, bags.Merge(ctx, stale), patterns.ErrConflict)
	wantKind(t, bags.Delete(ctx, stale), patterns.ErrConflict)
	if err := bags.Merge(ctx, &patterns.Entity{Key: e.Key, ETag: got.ETag, Properties: patterns.Properties{{Name: "More", Value: patterns.Boolean(true)}}}); err != nil {
		t.Fatal(err)
	}
	got, err = bags.Get(ctx, e.Key)
	if err != nil {
		t.Fatal(err)
	}
	if got.Get("Age") != patterns.Int32(8) || got.Get("More") != patterns.Boolean(true) || got.Properties.Has("Photo") {
		t.Fatalf("%#v", got)
	}
	if err := bags.Delete(ctx, got); err != nil {
		t.Fatal(err)
	}
	_, err = bags.Get(ctx, e.Key)
	wantKind(t, err, patterns.ErrNotFound)
	wantKind(t, bags.DeleteUnconditional(ctx, e.Key), patterns.ErrNotFound)
	wantKind(t, bags.MergeUnconditional(ctx, e), patterns.ErrNotFound)
	if err := bags.Upsert(ctx, e); err != nil {
		t.Fatal(err)
	}
}

func TestTransaction(t *testing.T) {
	ctx := context.Background()
	table := newTable(t, account(t))
	x := table.NewTransaction()
	for _, row := range []string{"a", "b", "c"} {
		x.Insert(&patterns.Entity{Key: patterns.Key{Partition: "p'q", Row: row}, Properties: patterns.Properties{{Name: "N", Value: patterns.String(row)}}})
	}
	etags, err := x.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bags := table.Entities()
	for i, row := range []string{"a", "b", "c"} {
		got, err := bags.Get(ctx, patterns.Key{Partition: "p'q", Row: row})
		if err != nil {
			t.Fatal(err)
		}
		if got.ETag != etags[i] {
			t.Fatalf("row %s: ETag %q, transaction said %q", row, got.ETag, etags[i])
		}
	}
	x = table.NewTransaction()
	x.Upsert(&patterns.Entity{Key: patterns.Key{Partition: "p'q", Row: "d"}})
	x.Insert(&patterns.Entity{Key: patterns.Key{Partition: "p'q", Row: "b"}})
	_, err = x.Commit(ctx)
	e := wantKind(t, err, patterns.ErrExists)
	if e.Change != 2 || e.Key.Row != "b" || e.Code != "EntityAlreadyExists" {
		t.Fatalf("%+v", e)
	}
	_, err = bags.Get(ctx, patterns.Key{Partition: "p'q", Row: "d"})
	wantKind(t, err, patterns.ErrNotFound)
	n := 0
	for _, err := range bags.Query().Partition("p'q").Where(patterns.Gt("N", "a")).All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Fatalf("%d rows", n)
	}
}

func TestProjectionsCannotDestroy(t *testing.T) {
	ctx := context.Background()
	type worker struct {
		patterns.Meta
		PartitionKey, RowKey string
		Name                 string
		Age                  int
	}
	table := newTable(t, account(t))
	typed := must[*patterns.TypedTable[worker]](t)(patterns.Typed[worker](table))
	if err := typed.Insert(ctx, &worker{PartitionKey: "p", RowKey: "r", Name: "Ann", Age: 41}); err != nil {
		t.Fatal(err)
	}
	part := must[*worker](t)(typed.Query().Partition("p").Select("Name").First(ctx))
	for name, err := range map[string]error{
		"Replace": typed.Replace(ctx, part), "ReplaceUnconditional": typed.ReplaceUnconditional(ctx, part), "Upsert": typed.Upsert(ctx, part),
		"Merge": typed.Merge(ctx, part), "MergeUnconditional": typed.MergeUnconditional(ctx, part), "UpsertMerge": typed.UpsertMerge(ctx, part),
	} {
		t.Run(name, func(t *testing.T) { wantKind(t, err, patterns.ErrInvalid) })
	}
	bag := must[*patterns.Entity](t)(table.Entities().Query().Partition("p").Select("Name").First(ctx))
	bag.Set("Name", patterns.String("Anna"))
	wantKind(t, table.Entities().Replace(ctx, bag), patterns.ErrInvalid)
	if err := table.Entities().Merge(ctx, bag); err != nil {
		t.Fatal(err)
	}
	whole := must[*worker](t)(typed.Get(ctx, patterns.Key{Partition: "p", Row: "r"}))
	if whole.Name != "Anna" || whole.Age != 41 {
		t.Fatalf("%+v", whole)
	}
	if err := typed.Delete(ctx, whole); err != nil {
		t.Fatal(err)
	}
}
