package patterns_test

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestApplyBeside: rows of a caller are written in the transaction of a change, or refuse it, and no query shows them.
func TestApplyBeside(t *testing.T) {
	check := func(t testing.TB, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	table := newTable(t, account(t))
	type note struct {
		patterns.Meta
		PartitionKey, RowKey, Text string
	}
	repo := must[*patterns.Repository[note]](t)(patterns.NewRepository(table, patterns.Schema[note]{
		Key: func(n *note) patterns.Key { return patterns.Key{Partition: n.PartitionKey, Row: n.RowKey} }}))
	views := must[*patterns.TypedTable[note]](t)(patterns.Typed[note](table))
	key := patterns.Key{Partition: "p", Row: "\uFFFCmark"}
	beside := func(verb patterns.RowVerb) *patterns.ApplyOptions {
		row := &patterns.Entity{Key: key, Properties: patterns.Properties{{Name: "Text", Value: patterns.String("mark")}}}
		if verb != patterns.InsertRow {
			row.ETag = must[*note](t)(views.Get(ctx, key)).ETag
		}
		return &patterns.ApplyOptions{Beside: patterns.Beside{Owner: "test", Rows: []patterns.RowOperation{{Verb: verb, Row: row}}}}
	}
	n := &note{PartitionKey: "p", RowKey: "r", Text: "one"}
	options := beside(patterns.InsertRow)
	options.Incarnation = "LIFE"
	check(t, repo.Apply(ctx, patterns.ChangeInsert, n, options))
	mark := must[*note](t)(views.Get(ctx, key))
	if n.WriteID() == "" || mark.WriteID() != n.WriteID() || n.Incarnation() != "LIFE" || options.Beside.Rows[0].Row.ETag != mark.ETag {
		t.Errorf("entity %q of %q, mark %q, ETag %q of %q", n.WriteID(), n.Incarnation(), mark.WriteID(), options.Beside.Rows[0].Row.ETag, mark.ETag)
	}
	for v, err := range repo.Query().Partition("p").All(ctx) {
		check(t, err)
		if v.Text != "one" {
			t.Errorf("a query shows %q", v.Text)
		}
	}
	for d, err := range repo.Verify(ctx, nil) {
		t.Errorf("Verify tells %v (%v)", d, err)
	}

	taken := &note{PartitionKey: "p", RowKey: "other", Text: "two"}
	if err := repo.Apply(ctx, patterns.ChangeInsert, taken, beside(patterns.InsertRow)); !patterns.LostRace(err) || !errors.Is(err, patterns.ErrExists) {
		t.Errorf("the mark was there: %v", err)
	}
	if _, err := repo.Get(ctx, patterns.Key{Partition: "p", Row: "other"}); !patterns.IsAbsent(err) {
		t.Errorf("the entity was inserted without its mark: %v", err)
	}
	stale := beside(patterns.ReplaceRow)
	check(t, repo.Apply(ctx, patterns.ChangeReplace, n, beside(patterns.ReplaceRow)))
	if err := repo.Apply(ctx, patterns.ChangeReplace, n, stale); !errors.Is(err, patterns.ErrConflict) {
		t.Errorf("the mark has changed: %v", err)
	}
	check(t, repo.Apply(ctx, patterns.ChangeDelete, n, beside(patterns.DeleteRow)))
	if _, err := views.Get(ctx, key); !patterns.IsAbsent(err) {
		t.Errorf("the mark was not deleted: %v", err)
	}

	wantKind(t, repo.Apply(ctx, patterns.ChangeMerge, n, nil), patterns.ErrInvalid)
	unowned := beside(patterns.InsertRow)
	unowned.Beside.Owner = ""
	wantKind(t, repo.Apply(ctx, patterns.ChangeInsert, taken, unowned), patterns.ErrInvalid)
	wantKind(t, unowned.Beside.Write(ctx, table), patterns.ErrInvalid)
}
