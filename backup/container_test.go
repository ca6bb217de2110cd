package backup_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestContainer: a vault in a container does what one in a folder does; two prefixes are two vaults.
func TestContainer(t *testing.T) {
	const n = 600
	account := harness.Account(t)
	table, to := newTable(t, account), newTable(t, account)
	fill(t, table, n)
	c := blobstorage.Container(account, storagetest.Open(t).ContainerName(t))
	assert.Check(t, assert.Err(c.Create(t.Context(), nil)))
	v := assert.Must[*backup.Vault](t)(backup.OpenContainer(c, "daily/tables"))
	all := []*tables.Table{table}
	options := backup.Options{ChunkBytes: 16 << 10}
	ctx, progress := stopping(t.Context(), 2)
	first := options
	first.Progress = progress
	if report, err := v.Backup(ctx, "monday", all, &first); err == nil {
		t.Fatal(report)
	}
	first = options
	first.Resume = assert.Must[string](t)(v.Unfinished(t.Context(), "monday"))
	if report, err := v.Backup(t.Context(), "monday", all, &first); err != nil || report.Read == 0 || report.Read >= n {
		t.Fatal(report, err)
	}
	options.Base = "monday"
	if report, err := v.Backup(t.Context(), "tuesday", all, &options); err != nil || report.Unchanged != n {
		t.Fatal(report, err)
	}
	harness.WantKind(t, assert.Err(v.Backup(t.Context(), "tuesday", all, nil)), tables.ErrExists)
	if report, err := v.Verify(t.Context(), "tuesday", nil); err != nil || report.Read != n {
		t.Fatal(report, err)
	}
	if result, err := v.Restore(t.Context(), "tuesday", []backup.Target{{Name: table.Name(), To: to}}, nil); err != nil || result.Written != n {
		t.Fatal(result, err)
	}
	wantSame(t, table, to, n)
	other := assert.Must[*backup.Vault](t)(backup.OpenContainer(c, "daily"))
	harness.WantKind(t, assert.Err(other.Manifest(t.Context(), "tuesday")), tables.ErrNotFound)
	assert.Check(t, assert.Err(c.NewBlobClient("daily/tables/tuesday.manifest").Delete(t.Context(), nil)))
	harness.WantKind(t, assert.Err(v.Verify(t.Context(), "tuesday", nil)), tables.ErrNotFound)
	missing := assert.Must[*backup.Vault](t)(backup.OpenContainer(blobstorage.Container(account, "there-is-none"), ""))
	harness.WantKind(t, assert.Err(missing.Backup(t.Context(), "monday", all, nil)), tables.ErrMissingResource)
	for _, prefix := range []string{"/a", "a/", "a//b", "../a", ".", "a b"} {
		harness.WantKind(t, assert.Err(backup.OpenContainer(c, prefix)), tables.ErrWiring)
	}
}
