package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// acmeOrder is an entity as another program has stored it.
type acmeOrder struct {
	tables.Meta
	PartitionKey, RowKey string
	Kind                 string
	Customer             string
	Total                int64
	Rest                 map[string]tables.Value `table:",rest"`
}

// acmeTable holds orders, and rows of other types between them.
func acmeTable(t *testing.T, account *tables.Account) *tables.Table {
	t.Helper()
	table := harness.NewTable(t, account)
	for i, row := range []string{"O-2024-000001", "O-2024-000002", "O-2024-000003", "O-2024-000003-note", "O", "X-2024-000001", "name_Jones"} {
		kind := "order"
		if row == "O-2024-000002" {
			kind = "offer"
		}
		e := tables.Entity{Key: tables.Key{Partition: "acme", Row: row}}
		e.Properties.Set("Kind", tables.String(kind))
		e.Properties.Set("Customer", tables.String(fmt.Sprint("c", i)))
		e.Properties.Set("Total", tables.Int64(int64(i)))
		e.Properties.Set("Extra", tables.String("kept"))
		if err := table.Entities().Insert(context.Background(), &e); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// acmeSchema says which rows are orders.
var acmeSchema = patterns.Schema[acmeOrder]{Rows: compoundkey.Range("O-", "O."), Mine: func(k tables.Key) bool { return len(k.Row) == 13 }, Where: tables.Eq("Kind", "order")}

// TestOwnRows: of another program's table, a repository reads, changes, indexes and verifies the rows that its schema says, and
// leaves all others as they are.
func TestOwnRows(t *testing.T) {
	ctx := context.Background()
	table := acmeTable(t, harness.Account(t))
	byCustomer := intrapartition.NewUnique("customer", func(o *acmeOrder) string { return o.Customer }, nil)
	r := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, acmeSchema, byCustomer))
	before := others(t, table)

	report := assert.Must[patterns.RebuildReport](t)(r.Rebuild(ctx, nil))
	if report.Read != 2 || report.Failed != 0 {
		t.Errorf("Rebuild: %+v", report)
	}
	want := []string{"O-2024-000001", "O-2024-000003"}
	indexed := byCustomer.Query()
	for name, q := range map[string]tables.Query[acmeOrder]{
		"partition": r.Query().Partition("acme"),
		"table":     r.Query().AllowTableScan(),
		"selection": r.Query().Partition("acme").Select("Total"),
		"index":     indexed.Partition("acme"),
	} {
		var got []string
		for o, err := range q.All(ctx) {
			if err != nil {
				t.Fatal(name, err)
			}
			got = append(got, o.RowKey)
			if name == "selection" && (o.Kind != "" || o.Customer != "") {
				t.Errorf("a property that was not selected was read: %+v", o)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, row := range []string{"O-2024-000002", "O-2024-000003-note", "O", "X-2024-000001", "customer_c0"} {
		if _, err := r.Get(ctx, tables.Key{Partition: "acme", Row: row}); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("Get of %s: %v", row, err)
		}
		if _, err := r.Update(ctx, tables.Key{Partition: "acme", Row: row}, func(*acmeOrder) error { return nil }); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("Update of %s: %v", row, err)
		}
	}
	changed := assert.Must[*acmeOrder](t)(r.Update(ctx, tables.Key{Partition: "acme", Row: want[0]}, func(o *acmeOrder) error { o.Customer = "new"; return nil }))
	if changed.Rest["Extra"] != tables.String("kept") {
		t.Errorf("%+v", changed)
	}
	if v := assert.Must[patterns.VerifyReport](t)(r.Verify(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error { return fmt.Errorf("%+v", f) }})); v.Read != 2 {
		t.Errorf("Verify: %+v", v)
	}
	if after := others(t, table); !slices.Equal(after, before) {
		t.Errorf("rows of other types have changed:\n%q\n%q", before, after)
	}
}

// others are the rows with their ETags that are neither orders nor the library's.
func others(t *testing.T, table *tables.Table) (all []string) {
	t.Helper()
	for e, err := range table.Entities().Query().Partition("acme").All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if k := e.Key.Row; k != "O-2024-000001" && k != "O-2024-000003" && !strings.HasPrefix(k, "customer_") {
			all = append(all, k+" "+string(e.ETag))
		}
	}
	return all
}

// TestOwnRowsAreWritten: a repository writes nothing that its own queries would not find.
func TestOwnRowsAreWritten(t *testing.T) {
	ctx := context.Background()
	r := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(harness.NewTable(t, harness.Account(t)), acmeSchema))
	good := func() *acmeOrder {
		return &acmeOrder{PartitionKey: "acme", RowKey: "O-2024-000009", Kind: "order", Customer: "c"}
	}
	for what, spoil := range map[string]func(*acmeOrder){
		"Schema.Rows":  func(o *acmeOrder) { o.RowKey = "P-2024-000009" },
		"Schema.Mine":  func(o *acmeOrder) { o.RowKey = "O-9" },
		"Schema.Where": func(o *acmeOrder) { o.Kind = "offer" },
	} {
		o := good()
		spoil(o)
		if err := harness.WantKind(t, r.Insert(ctx, o), tables.ErrInvalid); !strings.Contains(fmt.Sprint(err), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o := good()
	if err := r.Insert(ctx, o); err != nil {
		t.Fatal(err)
	}
	o.Total = 7
	if err := r.Merge(ctx, o, "Total"); err != nil {
		t.Errorf("a merge that leaves Kind as it is: %v", err)
	}
	o.Kind = "offer"
	harness.WantKind(t, r.Merge(ctx, o, "Kind"), tables.ErrInvalid)
	harness.WantKind(t, r.Replace(ctx, o), tables.ErrInvalid)
	if err := r.Delete(ctx, o); err != nil {
		t.Errorf("a delete of an entity that no longer meets the condition in memory: %v", err)
	}
}

// TestSchemaOfOwnRows: a schema that could never find an entity is refused.
func TestSchemaOfOwnRows(t *testing.T) {
	table := harness.Account(t).Table("Orders")
	key := func(o *item) tables.Key { return tables.Key{Partition: "p", Row: o.Name} }
	for name, schema := range map[string]patterns.Schema[item]{
		"an empty span":             {Key: key, Rows: compoundkey.Range("b", "a")},
		"an illegal span":           {Key: key, Rows: compoundkey.Range("a/b", "")},
		"a property without field":  {Key: key, Where: tables.Eq("Type", "order")},
		"Timestamp":                 {Key: key, Where: tables.Ne("Timestamp", "x")},
		"a value of another type":   {Key: key, Where: tables.Eq("Name", 7)},
		"an empty condition":        {Key: key, Where: tables.And()},
		"six comparisons":           {Key: key, Where: tables.Or(slices.Repeat([]tables.Condition{tables.Eq("Name", "a")}, 6)...)},
		"no Key, and no key fields": {},
	} {
		_, err := patterns.NewRepository(table, schema)
		t.Log(name, err)
		harness.WantKind(t, err, tables.ErrWiring)
	}
	if _, err := patterns.NewRepository(table, patterns.Schema[item]{Key: key, Rows: compoundkey.Range("a", "z")},
		intrapartition.NewUnique("name", func(v *item) string { return v.Name }, nil)); err == nil {
		t.Error("an index among the entities' own rows was accepted")
	}
}

// item is an entity without fields for its key.
type item struct {
	tables.Meta
	Name string
}

// TestOverlappingRepositories: two repositories of a store must not take each other's rows for their own.
func TestOverlappingRepositories(t *testing.T) {
	store := assert.Must[*patterns.Store](t)(patterns.Open("overlap", &patterns.StoreOptions{Account: harness.Account(t)}))
	add := func(table string, schema patterns.Schema[acmeOrder]) error {
		_, err := patterns.NewRepository(store.Table(table), schema)
		return err
	}
	orders, offers := patterns.Schema[acmeOrder]{Name: "orders"}, patterns.Schema[acmeOrder]{Name: "offers"}
	first := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	first(add("Whole", orders))
	harness.WantKind(t, add("Whole", offers), tables.ErrWiring)
	harness.WantKind(t, add("whole", offers), tables.ErrWiring) // names of tables have no case

	first(add("Apart", patterns.Schema[acmeOrder]{Name: "orders", Prefix: "order"}))
	first(add("Apart", patterns.Schema[acmeOrder]{Name: "offers", Prefix: "offer"}))
	harness.WantKind(t, add("Apart", patterns.Schema[acmeOrder]{Name: "more", Rows: compoundkey.Range("offer_7", "z")}), tables.ErrWiring)

	first(add("Kinds", patterns.Schema[acmeOrder]{Name: "orders", Where: tables.Eq("Kind", "order")}))
	first(add("Kinds", patterns.Schema[acmeOrder]{Name: "offers", Where: tables.Eq("Kind", "offer")}))
	harness.WantKind(t, add("Kinds", patterns.Schema[acmeOrder]{Name: "all"}), tables.ErrWiring)
}

// TestUnmatchedRows: a job says so where the schema fits no row of a table that has rows, and says nothing of an empty table.
func TestUnmatchedRows(t *testing.T) {
	ctx := context.Background()
	store := assert.Must[*patterns.Store](t)(patterns.Open("unmatched", &patterns.StoreOptions{Account: harness.Account(t)}))
	for name, schema := range map[string]patterns.Schema[acmeOrder]{
		"ByRows":  {Prefix: "order"},
		"ByMine":  {Mine: func(k tables.Key) bool { return k.Row == "none" }},
		"ByWhere": {Where: tables.Eq("Kind", "order")},
		"ByAll":   {},
	} {
		table := store.Table(storagetest.Open(t).TableName(t) + name)
		r := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, schema))
		assert.Check(t, table.CreateIfMissing(ctx))
		told := func(want string) {
			t.Helper()
			for op, run := range map[string]harness.RepositoryJob[tally.Report]{"Verify": harness.Tallied(r.Verify), "Rebuild": harness.Tallied(r.Rebuild)} {
				report := assert.Must[tally.Report](t)(run(ctx, nil))
				if report.Unmatched != want || strings.Contains(report.String(), "no row of the table") != (want != "") {
					t.Errorf("%s of %s: %s", op, name, report)
				}
			}
		}
		told("")
		assert.Check(t, table.Entities().Insert(ctx, harness.Bag("p", "r", "value")))
		if name == "ByAll" {
			told("")
			continue
		}
		told(table.Name())
		if name == "ByWhere" {
			e := harness.Bag("p", "s", "value")
			e.Properties.Set("Kind", tables.String("order"))
			assert.Check(t, table.Entities().Insert(ctx, e))
			told("")
		}
	}
	report := assert.Must[patterns.VerifyReport](t)(store.Verify(ctx, nil))
	if strings.Count(report.Unmatched, "ByRows")+strings.Count(report.Unmatched, "ByMine") != 2 || strings.Contains(report.Unmatched, "ByWhere") {
		t.Errorf("all: %+v", report)
	}
}

// TestEmptyPartition: a key without a partition is refused before any request, whatever is done, unless the schema allows it.
func TestEmptyPartition(t *testing.T) {
	ctx := t.Context()
	account := harness.Account(t)
	open := func(table string, allow bool) *patterns.Repository[acmeOrder] {
		orders := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(account.Table(table), patterns.Schema[acmeOrder]{AllowEmptyPartition: allow}))
		return orders
	}
	refused, order := open("Missing", false), &acmeOrder{RowKey: "O-1"}
	for what, err := range map[string]error{"Insert": refused.Insert(ctx, order), "Upsert": refused.Upsert(ctx, order),
		"Get": assert.Err(refused.Get(ctx, tables.Key{Row: "O-1"})), "Delete": refused.DeleteUnconditional(ctx, tables.Key{Row: "O-1"})} {
		if e := harness.WantKind(t, err, tables.ErrInvalid); !strings.Contains(e.Error(), "AllowEmptyPartition") {
			t.Errorf("%s: %v", what, err)
		}
	}
	allowed := open("Allowed", true)
	assert.Check(t, allowed.Table().Create(ctx), allowed.Insert(ctx, order), assert.Err(allowed.Get(ctx, tables.Key{Row: "O-1"})))
}

// TestPrefixOrRows: a schema has one of the two.
func TestPrefixOrRows(t *testing.T) {
	for want, schema := range map[string]patterns.Schema[acmeOrder]{"both set": {Prefix: "order", Rows: compoundkey.Range("O-", "O.")}, "Schema.Prefix": {Prefix: "a_b"}} {
		_, err := patterns.NewRepository(harness.Account(t).Table("Orders"), schema)
		assert.ErrorContains(t, harness.WantKind(t, err, tables.ErrWiring), want, "%+v", schema)
	}
}
