package tables_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestKeptBag: a bag that was read from one of several rows that a repository keeps consistent is not inserted elsewhere, since it lacks
// the library's own properties; a new bag, a struct and a row of nobody are.
func TestKeptBag(t *testing.T) {
	a := harness.Account(t)
	from, to := harness.NewTable(t, a), harness.NewTable(t, a)
	write := tablerow.Row{Verb: wire.VerbInsert, Key: tables.Key{Partition: "p", Row: "kept"}, Properties: tables.Properties{{Name: "N", Value: tables.Int32(1)}}, Own: tablerow.Own{Copies: "email"}}
	if _, _, err := (*core.Table)(from).Commit(t.Context(), "Test", write); err != nil {
		t.Fatal(err)
	}
	assert.Check(t, from.Entities().Insert(t.Context(), harness.Row("p", "plain")))
	kept := assert.Must[*tables.Entity](t)(from.Entities().Get(t.Context(), write.Key))
	err := to.Entities().Insert(t.Context(), kept)
	if harness.WantKind(t, err, tables.ErrInvalid); !strings.Contains(err.Error(), "package backup") {
		t.Error(err)
	}
	report, err := to.Entities().BulkNonAtomic(t.Context(), from.Entities().Query().AllowTableScan().All(t.Context()), &tables.BulkOptions{Refused: func(e *tables.Error) error {
		harness.WantKind(t, e, tables.ErrInvalid)
		return nil
	}})
	if err != nil || report.Failed != 1 || report.Written != 1 {
		t.Error(report, err)
	}
	tx := to.NewTransaction()
	tx.Insert(kept)
	harness.WantKind(t, assert.Err(tx.Commit(t.Context())), tables.ErrInvalid)
	assert.Check(t, to.Entities().Insert(t.Context(), &tables.Entity{Key: kept.Key, Properties: kept.Properties}))
}
