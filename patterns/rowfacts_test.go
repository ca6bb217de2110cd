package patterns_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// note is a struct that a repository and tables.Rows can both keep.
type note struct {
	tables.Meta
	PartitionKey, RowKey string
	Name                 string
}

func noteRepository(t *testing.T, table *tables.Table, attached ...patterns.Pattern[note]) *patterns.Repository[note] {
	t.Helper()
	return assert.Must[*patterns.Repository[note]](t)(patterns.NewRepository(table, patterns.Schema[note]{
		Key: func(n *note) tables.Key { return tables.Key{Partition: n.PartitionKey, Row: n.RowKey} },
	}, attached...))
}

func byName() *intrapartition.Unique[note, compoundkey.Part] {
	return intrapartition.NewUnique("name", func(n *note) compoundkey.Part { return compoundkey.String(n.Name) }, nil)
}

// TestKeptRowsAreNotWrittenAlone: no verb that looks at a single row changes a row of an entity that has others, or one
// of the others: neither could say so any more, and the index would be out of step for good.
func TestKeptRowsAreNotWrittenAlone(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	index := byName()
	repo := noteRepository(t, table, index)
	if err := repo.Insert(ctx, &note{PartitionKey: "p", RowKey: "id_1", Name: "Ann"}); err != nil {
		t.Fatal(err)
	}
	bags, notes := table.Entities(), assert.Must[*tables.Rows[note]](t)(tables.RowsOf[note](table))
	for _, row := range []string{"id_1", "name_Ann"} {
		key := tables.Key{Partition: "p", Row: row}
		read := func() *tables.Entity { return assert.Must[*tables.Entity](t)(bags.Get(ctx, key)) }
		part := assert.Must[*tables.Entity](t)(bags.Query().Partition("p").Row(row).Select("Name").First(ctx))
		typed := assert.Must[*note](t)(notes.Get(ctx, key))
		asBag := assert.Must[*tables.Entity](t)(notes.Entity(typed))
		for name, err := range map[string]error{
			"Replace": bags.Replace(ctx, read()), "ReplaceUnconditional": bags.ReplaceUnconditional(ctx, read()), "Merge": bags.Merge(ctx, read()),
			"MergeUnconditional": bags.MergeUnconditional(ctx, read()), "Upsert": bags.Upsert(ctx, read()), "UpsertMerge": bags.UpsertMerge(ctx, read()),
			"Delete": bags.Delete(ctx, read()), "Replace of a clone": bags.Replace(ctx, read().Clone()),
			"Merge of a part": bags.Merge(ctx, part), "Delete of a part": bags.Delete(ctx, part),
			"Replace of a struct": notes.Replace(ctx, typed), "Upsert of a struct": notes.Upsert(ctx, typed), "Delete of a struct": notes.Delete(ctx, typed),
			"Replace of a struct's bag": bags.Replace(ctx, asBag),
		} {
			if err == nil {
				t.Errorf("%s of %s is done", name, row)
				continue
			}
			harness.WantKind(t, err, tables.ErrInvalid)
		}
		for name, add := range map[string]func(*tables.Transaction, *tables.Entity) int{
			"Replace": (*tables.Transaction).Replace, "ReplaceUnconditional": (*tables.Transaction).ReplaceUnconditional, "Merge": (*tables.Transaction).Merge,
			"MergeUnconditional": (*tables.Transaction).MergeUnconditional, "Upsert": (*tables.Transaction).Upsert,
			"UpsertMerge": (*tables.Transaction).UpsertMerge, "Delete": (*tables.Transaction).Delete,
		} {
			x := table.NewTransaction()
			add(x, read())
			if _, err := x.Commit(ctx); err == nil {
				t.Errorf("%s of %s in a transaction is done", name, row)
			} else if e := harness.WantKind(t, err, tables.ErrInvalid); e.Key != key {
				t.Errorf("the error names %v", e.Key)
			}
		}
	}
	v := assert.Must[*note](t)(index.In("p").Get(ctx, compoundkey.String("Ann")))
	harness.WantKind(t, notes.Replace(ctx, v), tables.ErrInvalid)
	v = assert.Must[*note](t)(repo.Get(ctx, tables.Key{Partition: "p", Row: "id_1"}))
	harness.WantKind(t, notes.Merge(ctx, v), tables.ErrInvalid)
	if err := repo.Delete(ctx, v); err != nil {
		t.Fatal(err)
	}
}

// TestKeptRowsAsPlainRows: a bag that was read from a kept row is not inserted into another table, where it would lack the library's own
// properties; a new bag with its properties is, as a plain row that can be written like any other. A kept row can be removed by its key.
func TestKeptRowsAsPlainRows(t *testing.T) {
	ctx := context.Background()
	a := harness.Account(t)
	table, other := harness.NewTable(t, a), harness.NewTable(t, a)
	if err := noteRepository(t, table, byName()).Insert(ctx, &note{PartitionKey: "p", RowKey: "id_1", Name: "Ann"}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"id_1", "name_Ann"} {
		e := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, tables.Key{Partition: "p", Row: row}))
		harness.WantKind(t, other.Entities().Insert(ctx, e), tables.ErrInvalid)
		e = &tables.Entity{Key: e.Key, Properties: e.Properties}
		if err := other.Entities().Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
		e.Set("Name", tables.String("Anna"))
		if err := other.Entities().Replace(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	names := 0
	for v, err := range noteRepository(t, other).Query().Partition("p").All(ctx) {
		if err != nil || v.Name != "Anna" || v.Incarnation() != "" {
			t.Fatal(v, err)
		}
		names++
	}
	if names != 2 {
		t.Errorf("%d plain rows", names)
	}
	if err := table.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "p", Row: "name_Ann"}); err != nil {
		t.Fatal(err)
	}
}

// TestIncarnationOutlivesPlainWrites: an entity without other rows may be written as a bag or struct, and stays the
// same entity.
func TestIncarnationOutlivesPlainWrites(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	repo := noteRepository(t, table)
	v := &note{PartitionKey: "p", RowKey: "id_1", Name: "Ann"}
	if err := repo.Insert(ctx, v); err != nil {
		t.Fatal(err)
	}
	key, life := v.Key(), v.Incarnation()
	bags, notes := table.Entities(), assert.Must[*tables.Rows[note]](t)(tables.RowsOf[note](table))
	read := func() *tables.Entity { return assert.Must[*tables.Entity](t)(bags.Get(ctx, key)) }
	transaction := func(add func(*tables.Transaction)) error {
		x := table.NewTransaction()
		add(x)
		_, err := x.Commit(ctx)
		return err
	}
	for name, write := range map[string]func() error{
		"Replace":     func() error { return bags.Replace(ctx, read()) },
		"Upsert":      func() error { return bags.Upsert(ctx, read()) },
		"Merge":       func() error { return bags.Merge(ctx, read()) },
		"Transaction": func() error { return transaction(func(x *tables.Transaction) { x.Replace(read()) }) },
		"struct":      func() error { return notes.Replace(ctx, assert.Must[*note](t)(notes.Get(ctx, key))) },
		"struct's bag": func() error {
			return bags.Replace(ctx, assert.Must[*tables.Entity](t)(notes.Entity(assert.Must[*note](t)(notes.Get(ctx, key)))))
		},
		"repository's struct": func() error { return notes.Replace(ctx, assert.Must[*note](t)(repo.Get(ctx, key))) },
	} {
		if err := write(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := assert.Must[*note](t)(repo.Get(ctx, key)).Incarnation(); got != life {
			t.Errorf("%s: incarnation %q, was %q", name, got, life)
		}
	}
	// Under another key it is another entity.
	e := read()
	e.Key.Row = "id_2"
	if err := bags.Upsert(ctx, e); err != nil {
		t.Fatal(err)
	}
	if got := assert.Must[*note](t)(repo.Get(ctx, e.Key)).Incarnation(); got != "" {
		t.Errorf("a row under another key has incarnation %q", got)
	}
}
