package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func ofKind(kind string) patterns.Schema[acmeOrder] {
	return patterns.Schema[acmeOrder]{Name: kind, Where: tables.Eq("Kind", kind), MaxAttempts: 3}
}

func acmeOf(kind string, id int) *acmeOrder {
	return &acmeOrder{PartitionKey: "acme", RowKey: fmt.Sprint(kind, "-", id), Kind: kind, Customer: fmt.Sprint("c", id)}
}

func byCustomer() *intrapartition.Unique[acmeOrder, string] {
	return intrapartition.NewUnique("customer", func(o *acmeOrder) string { return o.Kind + o.Customer }, nil)
}

// TestOtherTypesKeepTheirRows: a row that the schema leaves out is not absent. RemoveUnattached leaves its copies, Upsert does not overwrite
// it, and says so in one attempt.
func TestOtherTypesKeepTheirRows(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	index := byCustomer()
	offers := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, ofKind("offer"), index))
	attached := byCustomer()
	before := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, ofKind("order"), attached))
	for id := range 5 {
		assert.Check(t, offers.Insert(ctx, acmeOf("offer", id)), before.Insert(ctx, acmeOf("order", id)))
	}
	orders := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, ofKind("order")))
	report := assert.Must[patterns.RemoveReport](t)(orders.RemoveUnattached(ctx, []patterns.Pattern[acmeOrder]{byCustomer()}, nil))
	if report.Deleted != 5 || report.Failed != 0 {
		t.Errorf("RemoveUnattached: %s", report)
	}
	assert.Check(t, harness.Clean(ctx, offers.Verify, nil))
	if got := assert.Must[*acmeOrder](t)(index.In("acme").Get(ctx, "offerc3")); got.RowKey != "offer-3" {
		t.Errorf("%+v", got)
	}
	taken := acmeOf("order", 7)
	taken.RowKey = "offer-3"
	if err := orders.Upsert(ctx, taken); !strings.Contains(fmt.Sprint(err), "is not an entity of the repository") {
		t.Error(err)
	}
	harness.WantKind(t, orders.Insert(ctx, taken), tables.ErrExists)
	if got := assert.Must[*acmeOrder](t)(offers.Get(ctx, tables.Key{Partition: "acme", Row: "offer-3"})); got.Customer != "c3" {
		t.Errorf("overwritten: %+v", got)
	}
}

// TestIntentOfAnotherSchema: a worker whose schema leaves out a live entity leaves its intent to another one, and what is outside of its
// partition alone.
func TestIntentOfAnotherSchema(t *testing.T) {
	ctx := context.Background()
	account := harness.Account(t)
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, storagetest.Open(t).QueueName(t), nil))
	assert.Check(t, queue.CreateIfMissing(ctx))
	table := harness.In(harness.NewTable(t, account), queue)
	index := func() *notes[acmeOrder] {
		return &notes[acmeOrder]{name: "customer", table: account.Table(table.Name()), text: func(o *acmeOrder) string { return o.Customer }}
	}
	wide := ofKind("order")
	wide.Where = tables.Or(tables.Eq("Kind", "order"), tables.Eq("Kind", "offer"))
	customers := index()
	assert.Check(t, assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, wide, patterns.Async(customers))).Insert(ctx, acmeOf("offer", 1)))

	older := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, queue.Name(), nil))
	assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(harness.In(account.Table(table.Name()), older), ofKind("order"), patterns.Async(index())))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(older, nil, nil))
	if _, err := worker.Drain(ctx); err != nil {
		t.Log(err)
	}
	if s := worker.Stats(); s.Handled != 0 || s.Failed != 0 || s.Released != 1 {
		t.Errorf("the older worker: %+v", s)
	}
	assert.Must[int](t)(assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil)).Drain(ctx))
	if !customers.has(t, "c1", tables.Key{Partition: "acme", Row: "offer-1"}) {
		t.Log("the intent comes again after its delay")
	}
}

// TestProblemsOfOtherRows: a row that cannot be read is told by those whose row it is, and by nobody else.
func TestProblemsOfOtherRows(t *testing.T) {
	ctx := context.Background()
	account := harness.AccountWith(t, harness.Damaged(`"Total":"5555"`, `"Total":{"x":5}`, `"Kind":"damaged"`, `"Kind":{"x":1}`))
	table := harness.NewTable(t, account)
	r := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, acmeSchema, byCustomer()))
	for i, row := range []string{"O-2024-000001", "O-2024-000002", "O-note", "O-2024-000003"} {
		o := acmeOf("order", i)
		o.RowKey = row
		e := harness.Row("acme", row, tables.Property{Name: "Kind", Value: tables.String("order")}, tables.Property{Name: "Customer", Value: tables.String(o.Customer)},
			tables.Property{Name: "Total", Value: tables.Int64(int64(i))})
		switch row {
		case "O-note":
			e.Set("Total", tables.Int64(5555))
		case "O-2024-000003":
			e.Set("Kind", tables.String("damaged"))
		}
		assert.Check(t, table.Entities().Insert(ctx, e))
	}
	found := 0
	report := assert.Must[patterns.RebuildReport](t)(r.Rebuild(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
		if found++; f.Entity.Row != "O-2024-000003" {
			t.Errorf("%+v", f)
		}
		return nil
	}}))
	if found != 0 && report.Failed != int64(found) {
		t.Errorf("%s", report)
	}
	read := 0
	for o, err := range r.Query().Partition("acme").All(ctx) {
		var e *tables.Error
		switch {
		case errors.As(err, &e) && e.OfRow && e.Key.Row == "O-2024-000003":
		case err != nil:
			t.Error(err)
		default:
			if read++; o.RowKey == "O-note" {
				t.Error("a row of another type")
			}
		}
	}
	if read != 2 {
		t.Errorf("%d orders", read)
	}
	if _, err := r.Query().Partition("acme").Where(tables.Ge("RowKey", "O-2024-000002")).First(ctx); err != nil {
		t.Error(err)
	}
	if v := assert.Must[patterns.VerifyReport](t)(r.Verify(ctx, nil)); v.Findings != 1 {
		t.Errorf("a row whose Kind cannot be read is not told: %s", v)
	}
}

// TestOverlapWithPatterns: rows of two patterns of one name could not be told apart.
func TestOverlapWithPatterns(t *testing.T) {
	store := assert.Must[*patterns.Store](t)(patterns.Open("overlap", &patterns.StoreOptions{Account: harness.Account(t)}))
	assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(store.Table("Both"), ofKind("order"), byCustomer()))
	_, err := patterns.NewRepository(store.Table("Both"), ofKind("offer"), byCustomer())
	if harness.WantKind(t, err, tables.ErrWiring); !strings.Contains(err.Error(), "customer") {
		t.Error(err)
	}
	other := ofKind("order")
	other.Where = nil
	_, err = patterns.NewRepository(store.Table("Both"), other)
	harness.WantKind(t, err, tables.ErrWiring) // another schema under the same name
}

// TestNamesOfPatterns: a pattern that stores rows or lists under its name needs a name of its own wherever two repositories of a store
// share the place. Only copies in the entities' partitions can be told apart if the row keys of the entities are separate.
func TestNamesOfPatterns(t *testing.T) {
	text := func(o *acmeOrder) string { return o.Customer }
	account := storeAccount(t, storagetest.Simulator(t, nil))
	type opened = func(*patterns.Store) patterns.Pattern[acmeOrder]
	outside := func(table string) opened {
		return func(s *patterns.Store) patterns.Pattern[acmeOrder] {
			o := &interpartition.Options[acmeOrder]{}
			if table != "" {
				o.Table = s.Table(table)
			}
			return interpartition.NewIndex("customer", text, o)
		}
	}
	lists := func(table string) opened {
		return func(s *patterns.Store) patterns.Pattern[acmeOrder] {
			if table == "" {
				return indexentities.NewInTable("customer", text, nil, nil)
			}
			return indexentities.NewInTable("customer", text, s.Table(table), nil)
		}
	}
	near := func(*patterns.Store) patterns.Pattern[acmeOrder] {
		return intrapartition.NewUnique("customer", text, nil)
	}
	nearLists := func(*patterns.Store) patterns.Pattern[acmeOrder] {
		return indexentities.NewInPartition("customer", text)
	}
	for _, c := range []struct {
		name            string
		first, second   opened
		refused, beside bool // on one table, and on separate tables
	}{
		{"rows in the partition", near, near, false, false},
		{"lists in the partition", nearLists, nearLists, true, false},
		{"rows outside", outside(""), outside(""), true, false},
		{"rows in a table", outside("Copies"), outside("Copies"), true, true},
		{"rows in two tables", outside("Copies"), outside("Others"), false, false},
		{"rows in the other's table", outside(""), outside("Company"), true, true},
		{"lists outside", lists(""), lists(""), true, false},
		{"lists in a table", lists("Lists"), lists("Lists"), true, true},
		{"lists in the other's table", lists(""), lists("Company"), true, true},
		{"rows and lists", near, nearLists, true, false},
	} {
		for second, refused := range map[string]bool{"Company": c.refused, "Another": c.beside} {
			store := assert.Must[*patterns.Store](t)(patterns.Open("names", &patterns.StoreOptions{Account: account}))
			open := func(table *tables.Table, rows string, pattern opened) error {
				_, err := patterns.NewRepository(table, patterns.Schema[acmeOrder]{Name: rows, Prefix: rows}, pattern(store))
				return err
			}
			assert.Check(t, open(store.Table("Company"), "order", c.first))
			err := open(store.Table(second), "offer", c.second)
			if refused != errors.Is(err, tables.ErrWiring) || refused != strings.Contains(fmt.Sprint(err), `a pattern "customer"`) {
				t.Errorf("%s, tables Company and %s: %v", c.name, second, err)
			}
			assert.Check(t, open(store.RunTimeTable(account.Table(second)), "more", c.second))
		}
	}
}
