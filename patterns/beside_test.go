package patterns_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
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
	table := harness.NewTable(t, harness.Account(t))
	type note struct {
		tables.Meta
		PartitionKey, RowKey, Text string
	}
	repo := assert.Must[*patterns.Repository[note]](t)(patterns.NewRepository(table, patterns.Schema[note]{
		Key: func(n *note) tables.Key { return tables.Key{Partition: n.PartitionKey, Row: n.RowKey} }}))
	views := assert.Must[*tables.Rows[note]](t)(tables.RowsOf[note](table))
	key := tables.Key{Partition: "p", Row: "\uFFFCmark"}
	beside := func(verb driver.RowVerb) *driver.ApplyOptions {
		row := &tables.Entity{Key: key, Properties: tables.Properties{{Name: "Text", Value: tables.String("mark")}}}
		if verb != driver.InsertRow {
			row.ETag = assert.Must[*note](t)(views.Get(ctx, key)).ETag
		}
		return &driver.ApplyOptions{Beside: driver.Beside{Owner: "test", Rows: []driver.RowOperation{{Verb: verb, Row: row}}}}
	}
	n := &note{PartitionKey: "p", RowKey: "r", Text: "one"}
	options := beside(driver.InsertRow)
	options.Incarnation = "LIFE"
	check(t, patterns.HostOf(repo).Apply(ctx, driver.ChangeInsert, n, options))
	mark := assert.Must[*note](t)(views.Get(ctx, key))
	if n.WriteID() == "" || mark.WriteID() != n.WriteID() || n.Incarnation() != "LIFE" || options.Beside.Rows[0].Row.ETag != mark.ETag {
		t.Errorf("entity %q of %q, mark %q, ETag %q of %q", n.WriteID(), n.Incarnation(), mark.WriteID(), options.Beside.Rows[0].Row.ETag, mark.ETag)
	}
	for v, err := range repo.Query().Partition("p").All(ctx) {
		check(t, err)
		if v.Text != "one" {
			t.Errorf("a query shows %q", v.Text)
		}
	}
	if err := harness.Clean(ctx, repo.Verify, nil); err != nil {
		t.Errorf("Verify tells %v", err)
	}

	taken := &note{PartitionKey: "p", RowKey: "other", Text: "two"}
	if err := patterns.HostOf(repo).Apply(ctx, driver.ChangeInsert, taken, beside(driver.InsertRow)); !errors.Is(err, tables.ErrExists) {
		t.Errorf("the mark was there: %v", err)
	}
	if _, err := repo.Get(ctx, tables.Key{Partition: "p", Row: "other"}); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the entity was inserted without its mark: %v", err)
	}
	stale := beside(driver.ReplaceRow)
	check(t, patterns.HostOf(repo).Apply(ctx, driver.ChangeReplace, n, beside(driver.ReplaceRow)))
	if err := patterns.HostOf(repo).Apply(ctx, driver.ChangeReplace, n, stale); !errors.Is(err, tables.ErrConflict) {
		t.Errorf("the mark has changed: %v", err)
	}
	check(t, patterns.HostOf(repo).Apply(ctx, driver.ChangeDelete, n, beside(driver.DeleteRow)))
	if _, err := views.Get(ctx, key); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("the mark was not deleted: %v", err)
	}

	harness.WantKind(t, patterns.HostOf(repo).Apply(ctx, driver.ChangeMerge, n, nil), tables.ErrInvalid)
	unowned := beside(driver.InsertRow)
	unowned.Beside.Owner = ""
	harness.WantKind(t, patterns.HostOf(repo).Apply(ctx, driver.ChangeInsert, taken, unowned), tables.ErrInvalid)
	harness.WantKind(t, unowned.Beside.Write(ctx, table), tables.ErrInvalid)
}

// TestApplyAlong: changes of several repositories and a row beside them are one transaction, with one write ID.
func TestApplyAlong(t *testing.T) {
	ctx := t.Context()
	account := harness.Account(t)
	table := harness.NewTable(t, account)
	type note struct {
		tables.Meta
		PartitionKey, RowKey, Text string
	}
	open := func(table *tables.Table, name string) driver.Host {
		return patterns.HostOf(assert.Must[*patterns.Repository[note]](t)(patterns.NewRepository(table, patterns.Schema[note]{
			Name: name, Prefix: name, Key: func(n *note) tables.Key { return tables.Key{Partition: n.PartitionKey, Row: n.RowKey} }})))
	}
	heads, rest, elsewhere := open(table, "head"), open(table, "rest"), open(account.Table("Elsewhere"), "elsewhere")
	head, first, second := &note{PartitionKey: "p", RowKey: "head_1"}, &note{PartitionKey: "p", RowKey: "rest_1"}, &note{PartitionKey: "p", RowKey: "rest_2"}
	along := func(all ...driver.Along) *driver.ApplyOptions { return &driver.ApplyOptions{Along: all} }
	assert.Check(t, heads.Apply(ctx, driver.ChangeInsert, head, along(rest.Along(driver.ChangeInsert, first, "LIFE"), rest.Along(driver.ChangeInsert, second, ""))))
	if first.Incarnation() != "LIFE" || head.WriteID() == "" || head.WriteID() != first.WriteID() || first.WriteID() != second.WriteID() {
		t.Errorf("writes are %q, %q and %q, the incarnation %q", head.WriteID(), first.WriteID(), second.WriteID(), first.Incarnation())
	}
	stale := *second
	second.Text = "changed"
	assert.Check(t, rest.Apply(ctx, driver.ChangeReplace, second, nil))
	var failed *tables.Error
	if err := heads.Apply(ctx, driver.ChangeDelete, head, along(rest.Along(driver.ChangeDelete, first, ""), rest.Along(driver.ChangeDelete, &stale, ""))); !errors.Is(err, tables.ErrConflict) || !errors.As(err, &failed) || failed.Change != 3 {
		t.Errorf("one of three has changed: %v", err)
	}
	away := &note{PartitionKey: "q", RowKey: "rest_1"}
	for want, options := range map[string]*driver.ApplyOptions{
		"zero value":    along(driver.Along{}),
		"one table":     along(elsewhere.Along(driver.ChangeInsert, &note{PartitionKey: "p", RowKey: "elsewhere_1"}, "")),
		"one partition": along(rest.Along(driver.ChangeInsert, away, "")),
		"once":          along(rest.Along(driver.ChangeDelete, first, ""), rest.Along(driver.ChangeDelete, first, "")),
	} {
		err := heads.Apply(ctx, driver.ChangeDelete, head, options)
		if harness.WantKind(t, err, tables.ErrInvalid); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	assert.Check(t, heads.Apply(ctx, driver.ChangeDelete, head, along(rest.Along(driver.ChangeDelete, first, ""), rest.Along(driver.ChangeDelete, second, ""))))
	if n := harness.CountRows(t, table); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
