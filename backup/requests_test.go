package backup_test

import (
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequests: what the jobs take for 900 rows of a partition, which fit a page, and 9 transactions.
func TestRequests(t *testing.T) {
	const n = 900
	account, made := harness.Counted(t)
	from, to, restored := newTable(t, account), newTable(t, account), newTable(t, account)
	if _, err := from.Entities().BulkNonAtomic(t.Context(), func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			if !yield(harness.Row("p", fmt.Sprintf("%04d", i)), nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	c := blobstorage.Container(account, storagetest.Open(t).ContainerName(t))
	assert.Check(t, assert.Err(c.Create(t.Context(), nil)))
	v := assert.Must[*backup.Vault](t)(backup.OpenContainer(c, "x"))
	targets := []backup.Target{{Name: from.Name(), To: restored}}
	for _, job := range []struct {
		name string
		want int64
		run  func() error
	}{
		{"Copy", 1 + 9, func() error { _, err := backup.Copy(t.Context(), from, to, nil); return err }},
		{"Copy of rows that are there", 1 + 2*9, func() error { _, err := backup.Copy(t.Context(), from, to, nil); return err }},
		{"Compare", 1 + 1, func() error { _, err := backup.Compare(t.Context(), from, to, nil); return err }},
		{"Backup of one chunk", 1 + 4 + 5, func() error { _, err := v.Backup(t.Context(), "all", []*tables.Table{from}, nil); return err }},
		{"Verify", 1 + 1, func() error { _, err := v.Verify(t.Context(), "all", nil); return err }},
		{"Restore", 2 + 9, func() error { _, err := v.Restore(t.Context(), "all", targets, nil); return err }},
		{"Compare with the backup", 2 + 1, func() error { _, err := v.Compare(t.Context(), "all", from.Name(), to, nil); return err }},
	} {
		before := made.Load()
		assert.Check(t, job.run())
		assert.Equal(t, made.Load()-before, job.want, "%s: requests", job.name)
	}
}
