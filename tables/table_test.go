package tables_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTableNames: a name that no table can have is refused by everything, before any request.
func TestTableNames(t *testing.T) {
	ctx := context.Background()
	refusing := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", req.Method, req.URL)
		return harness.Reply(req, 500, ""), nil
	})
	for _, name := range []string{"", "ab", strings.Repeat("a", 64), "tables", "Tables", "TABLES", "1abc", "a-b", "a_b", "a b", "abc/", "äöü", "abc'", "abc()"} {
		table := refusing.Table(name)
		bags := table.Entities()
		_, get := bags.Get(ctx, tables.Key{Partition: "p", Row: "r"})
		_, plan := bags.Query().Partition("p").Plan()
		_, page := bags.Query().Partition("p").Page(ctx, "")
		x := table.NewTransaction()
		x.Insert(harness.Bag("p", "r", ""))
		_, commit := x.Commit(ctx)
		for _, err := range []error{get, plan, page, commit, table.Create(ctx), table.CreateIfMissing(ctx), table.Drop(ctx), bags.Insert(ctx, harness.Bag("p", "r", "")),
			bags.DeleteUnconditional(ctx, tables.Key{Partition: "p", Row: "r"})} {
			harness.WantKind(t, err, tables.ErrWiring)
		}
	}
}

// TestTableLongestAndShortestNames are names that the service takes.
func TestTableLongestAndShortestNames(t *testing.T) {
	ctx := context.Background()
	a := harness.Account(t)
	unique := storagetest.Open(t).TableName(t)
	for _, name := range []string{unique + strings.Repeat("z", 63-len(unique)), "a" + unique[len(unique)-2:]} {
		table := a.Table(name)
		assert.Check(t, table.CreateIfMissing(ctx))
		assert.Check(t, table.Entities().Upsert(ctx, harness.Bag("p", "r", name)))
		assert.Check(t, table.Drop(ctx))
	}
}

func TestTableLife(t *testing.T) {
	ctx := context.Background()
	a := harness.Account(t)
	table := a.Table(storagetest.Open(t).TableName(t))
	harness.WantKind(t, table.Drop(ctx), tables.ErrMissingResource)
	harness.WantKind(t, table.Entities().Insert(ctx, harness.Bag("p", "r", "")), tables.ErrMissingResource)
	harness.WantKind(t, assert.Err(table.Entities().Get(ctx, tables.Key{Partition: "p", Row: "r"})), tables.ErrMissingResource)
	harness.WantKind(t, assert.Err(table.Entities().Query().Partition("p").First(ctx)), tables.ErrMissingResource)
	x := table.NewTransaction()
	x.Insert(harness.Bag("p", "r", ""))
	x.Insert(harness.Bag("p", "s", ""))
	harness.WantKind(t, assert.Err(x.Commit(ctx)), tables.ErrMissingResource)
	assert.Check(t, table.Create(ctx))
	if e := harness.WantKind(t, table.Create(ctx), tables.ErrExists); e.Code != "TableAlreadyExists" || e.Table != table.Name() {
		t.Errorf("%v", e)
	}
	assert.Check(t, table.CreateIfMissing(ctx))
	if table.Account() != a || table.Client() == nil || table.Entities().Table() != table {
		t.Error("the table does not know where it belongs")
	}
	assert.Check(t, table.Drop(ctx))
}

// TestTableBeingDeleted: the emulator frees a name at once, the service keeps it for a while.
func TestTableBeingDeleted(t *testing.T) {
	a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, 409, `{"odata.error":{"code":"TableBeingDeleted","message":{"lang":"en-US","value":"wait"}}}`, "Content-Type", "application/json"), nil
	})
	ctx := context.Background()
	table := a.Table("Contoso")
	for _, err := range []error{table.Create(ctx), table.CreateIfMissing(ctx), table.Drop(ctx), table.Entities().Insert(ctx, harness.Bag("p", "r", ""))} {
		harness.WantKind(t, err, tables.ErrBeingDeleted)
	}
}
