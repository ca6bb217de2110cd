package backup_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// interrupted begins a backup, which ends after its first chunk, and returns its token.
func interrupted(t *testing.T, v *backup.Vault, name string, table *tables.Table, o backup.Options) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(tables.Progress) { cancel() }
	assert.Error(assert.Fatal(t), assert.Err(v.Backup(ctx, name, []*tables.Table{table}, &o)), "the backup was not interrupted")
	return assert.Must[string](t)(v.Unfinished(t.Context(), name))
}

// TestUnreadableRowsAreRecorded: the rows that a backup has left out are in its manifest, also if it was interrupted, and all jobs count them.
func TestUnreadableRowsAreRecorded(t *testing.T) {
	from := newTable(t, harness.AccountWith(t, harness.Damaged(`:5555`, `:{"x":5}`)))
	for i := range 40 {
		e := harness.Row("p", fmt.Sprintf("%02d", i), tables.Property{Name: "Total", Value: tables.Int32(5555)}, tables.Property{Name: "Text", Value: tables.String(strings.Repeat("x", 200))})
		if i != 1 && i != 30 {
			e.Set("Total", tables.Int32(int32(i)))
		}
		assert.Check(t, from.Entities().Insert(t.Context(), e))
	}
	v := opened(t)
	options := backup.Options{ChunkBytes: 1 << 10, Concurrency: 1}
	options.Resume = interrupted(t, v, "all", from, options)
	found := map[string]bool{}
	options.Found = func(d backup.Difference) error {
		found[d.Key.Row] = d.Kind == backup.LeftOut && d.Err != nil && d.Table == from.Name()
		return nil
	}
	report, err := v.Backup(t.Context(), "all", []*tables.Table{from}, &options)
	if err != nil || report.Failed != 2 || !found["01"] || !found["30"] {
		t.Errorf("%+v, %v, %v", report, err, found)
	}
	m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "all"))
	if s := m.Tables[0]; s.Rows != 38 || s.LeftOut != 2 || fmt.Sprint(s.LeftOutKeys) != fmt.Sprint([]tables.Key{{Partition: "p", Row: "01"}, {Partition: "p", Row: "30"}}) {
		t.Errorf("%+v", s)
	}
	if report, err := v.Verify(t.Context(), "all", nil); err != nil || report.Failed != 2 {
		t.Error(report, err)
	}
	if result, err := v.Restore(t.Context(), "all", []backup.Target{{Name: from.Name(), To: newTable(t, harness.Account(t))}}, nil); err != nil || result.Failed != 2 || result.Written != 38 {
		t.Error(result, err)
	}
	// With a base the count is that of the new backup.
	if report, err := v.Backup(t.Context(), "next", []*tables.Table{from}, &backup.Options{Base: "all"}); err != nil || report.Failed != 2 || report.Unchanged == 0 {
		t.Error(report, err)
	}
	if m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "next")); m.Tables[0].LeftOut != 2 || len(m.Tables[0].LeftOutKeys) != 2 {
		t.Errorf("%+v", m.Tables)
	}
}

// TestDryRunToken: the token of a dry run does not let a job leave out rows that were not written.
func TestDryRunToken(t *testing.T) {
	_, v, from := smallBackup(t, 30)
	to := newTable(t, harness.Account(t))
	var token string
	dry := &backup.Options{DryRun: true, Progress: func(r tables.Progress) { token = r.Resume }}
	for name, job := range map[string]func(*backup.Options) (backup.RestoreReport, error){
		"Copy": func(o *backup.Options) (backup.RestoreReport, error) {
			return tally.Of[backup.RestoreReport](backup.Copy(t.Context(), from, to, o))
		},
		"Restore": func(o *backup.Options) (backup.RestoreReport, error) {
			return v.Restore(t.Context(), "all", []backup.Target{{Name: from.Name(), To: to}}, o)
		},
	} {
		token = ""
		if result, err := job(dry); err != nil || token == "" {
			t.Fatal(name, result, err)
		}
		harness.WantKind(t, assert.Err(job(&backup.Options{Resume: token})), tables.ErrInvalid)
	}
}

// TestTokenOfAnotherAccount: the token of a backup is refused with a table of the same name in another account, and with other blobs.
func TestTokenOfAnotherAccount(t *testing.T) {
	account := harness.Account(t)
	table := newTable(t, account)
	fill(t, table, 30)
	c := blobstorage.Container(account, storagetest.Open(t).ContainerName(t))
	assert.Check(t, assert.Err(c.Create(t.Context(), nil)))
	v := opened(t)
	set := backup.BlobSet{Name: "photos", Container: c, Prefix: "a", Table: table}
	o := backup.Options{ChunkBytes: 1 << 10, Blobs: []backup.BlobSet{set}}
	o.Resume = interrupted(t, v, "all", table, o)
	other := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString("AccountName=other;AccountKey=YWJj;TableEndpoint=http://127.0.0.1:1/other;BlobEndpoint=http://127.0.0.1:1/blobs", nil))
	harness.WantKind(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{other.Table(table.Name())}, &o)), tables.ErrInvalid)
	for _, change := range []func(*backup.BlobSet){
		func(s *backup.BlobSet) { s.Container = blobstorage.Container(other, "photos") },
		func(s *backup.BlobSet) { s.Prefix = "b" },
	} {
		changed := set
		change(&changed)
		with := o
		with.Blobs = []backup.BlobSet{changed}
		harness.WantKind(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, &with)), tables.ErrInvalid)
	}
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, &o)))
}

// TestUnfinishedAfterTheManifest: a backup that was killed between its manifest and the removal of its journal ends with the token.
func TestUnfinishedAfterTheManifest(t *testing.T) {
	table := newTable(t, harness.Account(t))
	fill(t, table, 10)
	folder := t.TempDir()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	begun := filepath.Join(folder, "all.journal", "begun")
	var head []byte
	o := &backup.Options{Progress: func(tables.Progress) { head, _ = os.ReadFile(begun) }}
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, o)))
	assert.Check(t, os.Mkdir(filepath.Dir(begun), 0o700), os.WriteFile(begun, head, 0o600))
	token := assert.Must[string](t)(v.Unfinished(t.Context(), "all"))
	if _, err := v.Backup(t.Context(), "all", []*tables.Table{table}, &backup.Options{Resume: token}); token == "" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	if _, err := os.Stat(begun); !os.IsNotExist(err) {
		t.Error("the journal is left", err)
	}
}

// TestForgedBase: a chunk of a base that has not the rows that the base's manifest says is not used.
func TestForgedBase(t *testing.T) {
	folder, v, table := smallBackup(t, 1)
	forge(t, folder, func(h object, entries []object) []object {
		assert.Len(assert.Fatal(t), entries, 1)
		other := addChunk(t, folder, []byte(`{"PartitionKey":"x","RowKey":"y"}`+"\n"))
		entries[0]["c"], entries[0]["s"] = other["c"], other["s"]
		return []object{h, entries[0]}
	})
	if report, err := v.Backup(t.Context(), "next", []*tables.Table{table}, &backup.Options{Base: "all"}); err != nil || report.Written != 1 || report.Unchanged != 0 {
		t.Error(report, err)
	}
	assert.Check(t, assert.Err(v.Verify(t.Context(), "next", nil)))
}

// TestOverwrittenBlob: a blob that is overwritten after each listing is in the backup all the same.
func TestOverwrittenBlob(t *testing.T) {
	var overwrite atomic.Pointer[func()]
	account := harness.AccountWith(t, func(o *azcore.ClientOptions) {
		inner := o.Transport
		o.Transport = harness.Transport(func(req *http.Request) (*http.Response, error) {
			if f := overwrite.Load(); f != nil && req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/a/one") {
				(*f)()
			}
			return inner.Do(req)
		})
	})
	table := newTable(t, account)
	name := storagetest.Open(t).ContainerName(t)
	plain := blobstorage.Container(harness.Account(t), name)
	assert.Check(t, assert.Err(plain.Create(t.Context(), nil)))
	times := 0
	upload := func() {
		times++
		assert.NoError(t, assert.Err(plain.NewBlockBlobClient("a/one").UploadBuffer(t.Context(), fmt.Append(nil, "content ", times), nil)))
	}
	upload()
	overwrite.Store(&upload)
	v := opened(t)
	sets := []backup.BlobSet{{Name: "photos", Container: blobstorage.Container(account, name), Prefix: "a", Table: table}}
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, &backup.Options{Blobs: sets})))
	if m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "all")); m.Blobs[0].Blobs != 1 || times < 2 {
		t.Errorf("%+v after %d uploads", m.Blobs, times)
	}
}

// TestPartialBackup: a backup of some partitions or of a range of keys is not compared or restored as one of whole tables, nor one that lacks
// a range that it says it has.
func TestPartialBackup(t *testing.T) {
	folder, v, table := smallBackup(t, 60)
	targets := []backup.Target{{Name: table.Name(), To: newTable(t, harness.Account(t))}}
	for name, part := range map[string]backup.Options{
		"partitions": {Partitions: []string{"Ω", "a", "none"}},
		"range":      {From: tables.Key{Partition: "a"}, Before: tables.Key{Partition: "big", Row: "000020"}},
	} {
		assert.Check(t, assert.Err(v.Backup(t.Context(), name, []*tables.Table{table}, &part)))
		m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), name))
		if len(m.Partitions) != len(part.Partitions) || m.From != part.From || m.Before != part.Before || m.Tables[0].Rows == 0 {
			t.Errorf("%+v", m)
		}
		for _, o := range []*backup.Options{nil, {Partitions: []string{"a", "big"}}, {From: tables.Key{Partition: "a"}}} {
			harness.WantKind(t, assert.Err(v.Restore(t.Context(), name, targets, o)), tables.ErrInvalid)
			harness.WantKind(t, assert.Err(v.Compare(t.Context(), name, table.Name(), table, o)), tables.ErrInvalid)
		}
		for _, o := range []*backup.Options{&part, {Partitions: []string{"a"}}} {
			if report, err := v.Compare(t.Context(), name, table.Name(), table, o); err != nil || report.Findings != 0 || report.Read == 0 {
				t.Error(report, err)
			}
			if result, err := v.Restore(t.Context(), name, targets, o); err != nil || result.Read == 0 {
				t.Error(result, err)
			}
		}
	}
	forge(t, folder, func(h object, entries []object) []object {
		h["entries"] = len(entries) - 1
		return append([]object{h}, entries[1:]...)
	})
	harness.WantKind(t, assert.Err(v.Manifest(t.Context(), "all")), tables.ErrGarbled)
}

// TestUnreadableDestination: a row of the destination that cannot be read counts as another row, and rows between those of a transaction as none.
func TestUnreadableDestination(t *testing.T) {
	from := newTable(t, harness.Account(t))
	to := newTable(t, harness.AccountWith(t, harness.Damaged(`:5555`, `:{"x":5}`)))
	row := func(table *tables.Table, i, total int) {
		assert.Check(t, table.Entities().Insert(t.Context(), harness.Row("p", fmt.Sprintf("%04d", i), tables.Property{Name: "Total", Value: tables.Int32(int32(total))})))
	}
	row(from, 0, 1)
	row(from, 7000, 2)
	row(to, 0, 5555)
	_, err := backup.Copy(t.Context(), from, to, nil)
	harness.WantKind(t, err, tables.ErrExists)
	for _, o := range []backup.Options{{DryRun: true}, {Existing: backup.SkipExisting}} {
		var found []backup.Difference
		o.Found = func(d backup.Difference) error {
			found = append(found, d)
			return nil
		}
		if result, err := backup.Copy(t.Context(), from, to, &o); err != nil || result.Written != 1 || len(found) != 1 || found[0].Key.Row != "0000" || found[0].Kind != backup.Different {
			t.Error(result, err, found)
		}
	}
	if result, err := backup.Copy(t.Context(), from, to, &backup.Options{Existing: backup.ReplaceExisting}); err != nil || result.Written != 2 {
		t.Error(result, err)
	}
	wantSame(t, from, to, 2)
	if _, err := to.Entities().BulkNonAtomic(t.Context(), func(yield func(*tables.Entity, error) bool) {
		for i := range 4_500 {
			if !yield(harness.Row("p", fmt.Sprintf("%04d", 100+i)), nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	row(from, 7001, 3)
	if result, err := backup.Copy(t.Context(), from, to, &backup.Options{DryRun: true}); err != nil || result.Written != 1 || result.Unchanged != 2 {
		t.Error(result, err)
	}
}

// TestUnreadableFile: Verify names each file that the file system cannot read, and goes on.
func TestUnreadableFile(t *testing.T) {
	folder, v, table := smallBackup(t, 30)
	bad := 0
	for name := range files(t, folder) {
		if path := filepath.Join(folder, filepath.FromSlash(name)); strings.HasPrefix(name, "chunks/") && bad < 2 {
			bad++
			assert.Check(t, os.Remove(path), os.Symlink("/etc", path)) // out of the folder
		}
	}
	found := 0
	report, err := v.Verify(t.Context(), "all", &backup.Options{Found: func(d backup.Difference) error {
		if d.Kind == backup.Damaged && d.Table == table.Name() {
			found++
		}
		return nil
	}})
	if harness.WantKind(t, err, tables.ErrGarbled); found != 2 || report.Read == 0 {
		t.Error(report, err, found)
	}
}
