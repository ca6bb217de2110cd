package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// files returns the contents of the files of a folder by path.
func files(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	assert.Check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil {
			all[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	}))
	return all
}

// TestBackup: several tables are backed up in chunks, the manifest says what there is, and a restore to other names has all rows.
func TestBackup(t *testing.T) {
	const n = 1500
	account := harness.Account(t)
	first, second, empty := newTable(t, account), newTable(t, account), newTable(t, account)
	fill(t, first, n)
	fill(t, second, 10)
	folder := t.TempDir()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	all := []*tables.Table{first, second, empty}
	report, err := v.Backup(t.Context(), "Monday-1", all, &backup.Options{ChunkBytes: 20 << 10})
	if err != nil || report.Read != n+10 || report.Written != n+10 || report.Resume != "" {
		t.Fatal(report, err)
	}
	m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "Monday-1"))
	if len(m.Tables) != 3 || m.Tables[0].Name != first.Name() || m.Tables[0].Rows != n || m.Tables[0].Chunks < 5 || m.Tables[2].Rows != 0 || m.Tables[2].Chunks != 0 ||
		m.Tables[0].First.IsZero() || m.Tables[0].Last.Before(m.Tables[0].First) || m.Tables[0].Stored*2 > m.Tables[0].Bytes || m.Ended.Before(m.Began) {
		t.Errorf("%+v", m)
	}
	for name := range files(t, folder) {
		if !strings.HasPrefix(name, "chunks/") && name != "Monday-1.manifest" {
			t.Errorf("file %s", name)
		}
	}
	if report, err := v.Verify(t.Context(), "Monday-1", nil); err != nil || report.Read != n+10 {
		t.Fatal(report, err)
	}
	assert.ErrorIs(assert.Fatal(t), assert.Err(v.Backup(t.Context(), "Monday-1", all, nil)), tables.ErrExists)
	to, other := newTable(t, account), newTable(t, account)
	var last tables.Progress
	result, err := v.Restore(t.Context(), "Monday-1", []backup.Target{{Name: first.Name(), To: to}, {Name: strings.ToLower(empty.Name()), To: other}},
		&backup.Options{Progress: func(p tables.Progress) { last = p }})
	if err != nil || result.Written != n || last.Estimate != n {
		t.Fatal(result, err)
	}
	wantSame(t, first, to, n)
	wantSame(t, empty, other, 0)
}

// TestBase: an incremental backup stores only the chunks of ranges that differ, and states fully what it consists of.
func TestBase(t *testing.T) {
	const n = 1200
	account := harness.Account(t)
	table := newTable(t, account)
	fill(t, table, n)
	folder := t.TempDir()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	options := &backup.Options{ChunkBytes: 16 << 10}
	report, err := v.Backup(t.Context(), "full", []*tables.Table{table}, options)
	if err != nil || report.Unchanged != 0 {
		t.Fatal(report, err)
	}
	before := len(files(t, folder))
	same := *options
	same.Base = "full"
	if report, err = v.Backup(t.Context(), "same", []*tables.Table{table}, &same); err != nil || report.Unchanged != n || report.Written != 0 {
		t.Fatal(report, err)
	}
	assert.Equal(t, len(files(t, folder)), before+1, "after %d files", before)
	rows := table.Entities()
	assert.Check(t, rows.DeleteUnconditional(t.Context(), keyOf(600)), rows.Insert(t.Context(), harness.Row("zz", "new")))
	if _, err := rows.BulkNonAtomic(t.Context(), func(yield func(*tables.Entity, error) bool) {
		for i := range 300 {
			if !yield(harness.Row("end", fmt.Sprint(i), tables.Property{Name: "Text", Value: tables.String(strings.Repeat("x", 500))}), nil) {
				return
			}
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	same.Base = "same"
	if report, err = v.Backup(t.Context(), "changed", []*tables.Table{table}, &same); err != nil || report.Read != n+300 || report.Written >= n || report.Unchanged < n/2 || report.Written+report.Unchanged != n+300 {
		t.Fatal(report, err)
	}
	found, err := inBackup(t.Context(), v, "changed", table.Name(), table)
	if err != nil || len(found) > 0 {
		t.Error(found, err)
	}
	if found, err = inBackup(t.Context(), v, "full", table.Name(), table); err != nil || len(found) != 302 {
		t.Error(len(found), err)
	}
	assert.Check(t, os.Remove(filepath.Join(folder, "full.manifest")))
	to := newTable(t, account)
	if result, err := v.Restore(t.Context(), "changed", []backup.Target{{Name: table.Name(), To: to}}, nil); err != nil || result.Written != n+300 {
		t.Fatal(result, err)
	}
	wantSame(t, table, to, n+300)
}

// errStop ends a job where Progress has counted enough.
var errStop = errors.New("stop")

// stopping cancels a job after some calls of Progress.
func stopping(ctx context.Context, after int) (context.Context, func(tables.Progress)) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func(tables.Progress) {
		if after--; after <= 0 {
			cancel(errStop)
		}
	}
}

// TestResume: jobs that are cancelled again and again, and resumed, do their work once.
func TestResume(t *testing.T) {
	const n = 1200 // more than a page
	account := harness.Account(t)
	table := newTable(t, account)
	fill(t, table, n)
	v := opened(t)
	all := []*tables.Table{table}
	repeat := func(name string, job func(ctx context.Context, o *backup.Options) (tally.Report, error)) {
		t.Helper()
		token, read, runs := "", int64(0), 0
		for {
			ctx, progress := stopping(t.Context(), 1+runs%3)
			report, err := job(ctx, &backup.Options{Resume: token, Progress: progress, Concurrency: 2})
			read += report.Read
			if runs++; runs > 500 {
				t.Fatal("no end")
			}
			if err == nil {
				if report.Resume != "" || read < n || runs < 2 {
					t.Fatalf("%s: %v after %d runs, %d read", name, report, runs, read)
				}
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(name, err)
			}
			token = report.Resume // "" if nothing is done without a gap
		}
	}
	repeat("Backup", func(ctx context.Context, o *backup.Options) (tally.Report, error) {
		o.ChunkBytes = 32 << 10
		return tally.Of[tally.Report](v.Backup(ctx, "all", all, o))
	})
	if report, err := v.Verify(t.Context(), "all", nil); err != nil || report.Read != n {
		t.Fatal(report, err)
	}
	restored, copied := newTable(t, account), newTable(t, account)
	repeat("Restore", func(ctx context.Context, o *backup.Options) (tally.Report, error) {
		return tally.Of[tally.Report](v.Restore(ctx, "all", []backup.Target{{Name: table.Name(), To: restored}}, o))
	})
	repeat("Copy", func(ctx context.Context, o *backup.Options) (tally.Report, error) {
		return tally.Of[tally.Report](backup.Copy(ctx, table, copied, o))
	})
	repeat("Compare", func(ctx context.Context, o *backup.Options) (tally.Report, error) {
		return tally.Of[tally.Report](backup.Compare(ctx, table, restored, o))
	})
	repeat("Vault.Compare", func(ctx context.Context, o *backup.Options) (tally.Report, error) {
		return tally.Of[tally.Report](v.Compare(ctx, "all", table.Name(), copied, o))
	})
	wantSame(t, table, restored, n)
	wantSame(t, table, copied, n)
}

// TestUnfinished: after a crash the vault has the token, and another backup of the name is refused.
func TestUnfinished(t *testing.T) {
	const n = 600
	account := harness.Account(t)
	table := newTable(t, account)
	fill(t, table, n)
	folder := t.TempDir()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	all := []*tables.Table{table}
	if token, err := v.Unfinished(t.Context(), "all"); token != "" || err != nil {
		t.Fatal(token, err)
	}
	ctx, progress := stopping(t.Context(), 3)
	assert.ErrorIs(assert.Fatal(t), assert.Err(v.Backup(ctx, "all", all, &backup.Options{ChunkBytes: 4 << 10, Progress: progress})), context.Canceled)
	for _, job := range []func() error{
		func() error { _, err := v.Manifest(t.Context(), "all"); return err },
		func() error { _, err := v.Verify(t.Context(), "all", nil); return err },
		func() error { _, err := v.Compare(t.Context(), "all", table.Name(), table, nil); return err },
	} {
		harness.WantKind(t, job(), tables.ErrNotFound)
	}
	assert.ErrorIs(assert.Fatal(t), assert.Err(v.Backup(t.Context(), "all", all, &backup.Options{ChunkBytes: 4 << 10})), tables.ErrExists)
	token := assert.Must[string](t)(v.Unfinished(t.Context(), "all"))
	if _, err := v.Backup(t.Context(), "all", all, &backup.Options{Resume: token, Partitions: []string{"a"}}); !errors.Is(err, tables.ErrInvalid) {
		t.Fatal(err)
	}
	assert.ErrorIs(assert.Fatal(t), assert.Err(v.Backup(t.Context(), "other", all, &backup.Options{Resume: token})), tables.ErrInvalid)
	journal := slices.Sorted(func(yield func(string) bool) {
		for name := range files(t, folder) {
			if strings.HasPrefix(name, "all.journal/0") && !yield(name) {
				return
			}
		}
	})
	report, err := v.Backup(t.Context(), "all", all, &backup.Options{Resume: token})
	if err != nil || report.Read >= n || len(journal) == 0 {
		t.Fatal(report, err, journal)
	}
	if report, err := v.Verify(t.Context(), "all", nil); err != nil || report.Read != n {
		t.Fatal(report, err)
	}
	// The process has died after the manifest and before it took away the journal.
	if report, err = v.Backup(t.Context(), "all", all, &backup.Options{Resume: token}); err != nil || report.Read != 0 {
		t.Fatal(report, err)
	}
	if token, err := v.Unfinished(t.Context(), "all"); token != "" || err != nil {
		t.Fatal(token, err)
	}
}
