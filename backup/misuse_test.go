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

// TestMisuse: wrong programs are ErrWiring and bad input is ErrInvalid, before any request.
func TestMisuse(t *testing.T) {
	account, made := harness.Counted(t)
	a, b := account.Table("MisuseA"), account.Table("MisuseB")
	cosmos := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.cosmos.azure.com"}, "contoso", "a2V5", nil)).Table("Rows")
	v := opened(t)
	c := blobstorage.Container(account, storagetest.Open(t).ContainerName(t))
	ctx := t.Context()
	copied := func(from, to *tables.Table, o *backup.Options) error {
		_, err := backup.Copy(ctx, from, to, o)
		return err
	}
	saved := func(o *backup.Options, all ...*tables.Table) error { _, err := v.Backup(ctx, "x", all, o); return err }
	compared := func(first, second *tables.Table, o *backup.Options) error {
		_, err := backup.Compare(ctx, first, second, o)
		return err
	}
	verified := func(o *backup.Options) error { _, err := v.Verify(ctx, "x", o); return err }
	for name, err := range map[string]error{
		"nil table":             copied(nil, b, nil),
		"no account":            copied(&tables.Table{}, b, nil),
		"the same table":        copied(a, account.Table("misusea"), nil),
		"Base":                  copied(a, b, &backup.Options{Base: "x"}),
		"ChunkBytes":            copied(a, b, &backup.Options{ChunkBytes: 5000}),
		"Concurrency":           copied(a, b, &backup.Options{Concurrency: -1}),
		"RowsPerSecond":         copied(a, b, &backup.Options{RowsPerSecond: -1}),
		"Existing":              copied(a, b, &backup.Options{Existing: 9}),
		"Partitions and From":   copied(a, b, &backup.Options{Partitions: []string{"a"}, From: tables.Key{Partition: "a"}}),
		"Existing of Compare":   compared(a, b, &backup.Options{Existing: backup.SkipExisting}),
		"DryRun of Backup":      saved(&backup.Options{DryRun: true}, a),
		"no tables":             saved(nil),
		"two of a name":         saved(nil, a, account.Table("misusea")),
		"small chunks":          saved(&backup.Options{ChunkBytes: 1}, a),
		"Resume of Verify":      verified(&backup.Options{Resume: "x"}),
		"Concurrency of Verify": verified(&backup.Options{Concurrency: 2}),
		"Partitions of Verify":  verified(&backup.Options{Partitions: []string{"a"}}),
		"Cosmos":                saved(nil, cosmos),
		"Compare of Cosmos":     compared(a, cosmos, nil),
		"a set of no container": saved(&backup.Options{Blobs: []backup.BlobSet{{Name: "x", Prefix: "p", Table: a}}}, a),
		"a set of no prefix":    saved(&backup.Options{Blobs: []backup.BlobSet{{Name: "x", Container: c, Table: a}}}, a),
		"two sets of a name": saved(&backup.Options{Blobs: []backup.BlobSet{{Name: "x", Container: c, Prefix: "p", Table: a},
			{Name: "X", Container: c, Prefix: "q", Table: a}}}, a),
	} {
		t.Run(name, func(t *testing.T) { harness.WantKind(t, err, tables.ErrWiring) })
	}
	for name, err := range map[string]error{
		"an illegal key":         copied(a, b, &backup.Options{Partitions: []string{"a/b"}}),
		"no token":               copied(a, b, &backup.Options{Resume: "x"}),
		"a token of another job": saved(&backup.Options{Resume: "eyJ2IjoxLCJxIjoiIiwicCI6IiJ9"}, a),
		"the name of a set":      saved(&backup.Options{Blobs: []backup.BlobSet{{Name: "../x", Container: c, Prefix: "p", Table: a}}}, a),
	} {
		t.Run(name, func(t *testing.T) { harness.WantKind(t, err, tables.ErrInvalid) })
	}
	assert.Equal(t, made.Load(), 0, "requests")
}

// TestLiveWriters: beside writers that insert and delete other rows, a backup has every row that does not change, as it is.
func TestLiveWriters(t *testing.T) {
	const n = 1500
	account := harness.Account(t)
	table := newTable(t, account)
	fill(t, table, n)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		rows := table.Entities()
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			key := tables.Key{Partition: keyOf(i % n).Partition, Row: fmt.Sprintf("%06dx", i%n)}
			if err := rows.Upsert(t.Context(), &tables.Entity{Key: key}); err != nil {
				done <- err
				return
			}
			if i%2 == 0 {
				if err := rows.DeleteUnconditional(t.Context(), key); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	v := opened(t)
	_, err := v.Backup(t.Context(), "live", []*tables.Table{table}, &backup.Options{ChunkBytes: 16 << 10})
	close(stop)
	assert.Check(t, err, <-done)
	assert.Check(t, assert.Err(v.Verify(t.Context(), "live", nil)))
	found := assert.Must[[]backup.Difference](t)(inBackup(t.Context(), v, "live", table.Name(), table))
	for _, d := range found {
		if d.Key.Row[len(d.Key.Row)-1] != 'x' {
			t.Error(d)
		}
	}
}
