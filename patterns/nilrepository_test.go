package patterns_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestNilRepository: a repository whose error nobody looked at returns errors and does not panic.
func TestNilRepository(t *testing.T) {
	ctx, key := t.Context(), tables.Key{Partition: "red", Row: "1"}
	var r *patterns.Repository[person]
	x := storeAccount(t, storagetest.Simulator(t, nil)).Table("Persons").NewTransaction()
	r.StageInsert(x, ann())
	query := func() (err error) {
		for _, err = range r.Query().Partition("red").All(ctx) {
		}
		return err
	}
	many := func() (err error) {
		for _, err = range r.GetMany(ctx, []tables.Key{key}, nil) {
		}
		return err
	}
	for what, err := range map[string]error{
		"Get": assert.Err(r.Get(ctx, key)), "Insert": r.Insert(ctx, ann()), "Replace": r.Replace(ctx, ann()), "Upsert": r.Upsert(ctx, ann()), "Merge": r.Merge(ctx, ann()),
		"ReplaceUnconditional": r.ReplaceUnconditional(ctx, ann()), "Delete": r.Delete(ctx, ann()), "DeleteUnconditional": r.DeleteUnconditional(ctx, key),
		"Update": assert.Err(r.Update(ctx, key, nil)), "Check": r.Check(ctx, ann()), "Explain": assert.Err(r.Explain(ctx, driver.ChangeInsert, ann())),
		"Query": query(), "Page": assert.Err(r.Query().Page(ctx, "")), "First": assert.Err(r.Query().First(ctx)), "GetMany": many(),
		"Verify": assert.Err(r.Verify(ctx, nil)), "Repair": assert.Err(r.Repair(ctx, nil)), "Rebuild": assert.Err(r.Rebuild(ctx, nil)),
		"RemoveUnattached": assert.Err(r.RemoveUnattached(ctx, nil, nil)), "BulkNonAtomic": assert.Err(r.BulkNonAtomic(ctx, nil, nil)), "Commit": assert.Err(x.Commit(ctx)),
	} {
		if e := harness.WantKind(t, err, tables.ErrWiring); e.Error() == "" {
			t.Errorf("%s: no text", what)
		}
	}
	if r.Table() != nil {
		t.Error("a nil repository has a table")
	}
}
