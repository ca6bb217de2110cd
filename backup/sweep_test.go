package backup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const sweptRows = 24

// swept is the world of a sweep: a table, an empty one, and a vault in a container, as a process of its own opens them.
type swept struct {
	from, to *tables.Table
	vault    *backup.Vault
}

func openSwept(s *storagetest.Service) (*swept, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	v, err := backup.OpenContainer(blobstorage.Container(account, "swept-backups"), "")
	return &swept{account.Table("SweptFrom"), account.Table("SweptTo"), v}, err
}

// newSwept makes the tables and the container.
func newSwept(t testing.TB, s *storagetest.Service) *swept {
	t.Helper()
	w := assert.Must[*swept](t)(openSwept(s))
	assert.Check(t, w.from.Create(t.Context()), w.to.Create(t.Context()))
	for _, name := range []string{"swept-backups", "swept-files", "swept-restored"} {
		assert.Check(t, assert.Err(blobstorage.Container(w.from.Account(), name).Create(t.Context(), nil)))
	}
	for _, name := range sweptBlobs {
		if _, err := blobstorage.Container(w.from.Account(), "swept-files").NewBlockBlobClient("files/"+name).UploadBuffer(t.Context(), []byte("content of "+name), nil); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, w.from, sweptRows)
	return w
}

var sweptBlobs = []string{"a/1", "a/2"}

// files are the blobs of a container, as a set of a table.
func (w *swept) files(container string, table *tables.Table) []backup.BlobSet {
	return []backup.BlobSet{{Name: "files", Container: blobstorage.Container(w.from.Account(), container), Prefix: "files", Table: table}}
}

// one makes the calls of a job one after another.
func one() *backup.Options { return &backup.Options{Concurrency: 1} }

// same returns an error unless the destination has what the source has.
func (w *swept) same(ctx context.Context) error {
	found, err := differences(ctx, w.from, w.to, nil)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%d differences: %v", len(found), found[0])
	}
	return err
}

// save backs the table up, or goes on with a backup that was interrupted.
func (w *swept) save(ctx context.Context) error {
	o, err := one(), error(nil)
	o.ChunkBytes, o.Blobs = 4<<10, w.files("swept-files", w.from)
	if o.Resume, err = w.vault.Unfinished(ctx, "all"); err != nil {
		return err
	}
	_, err = w.vault.Backup(ctx, "all", []*tables.Table{w.from}, o)
	if errors.Is(err, tables.ErrExists) && o.Resume == "" {
		_, err = w.vault.Verify(ctx, "all", nil) // an earlier call has completed it, and its answer was an error
	}
	return err
}

// TestSweep breaks every storage call of a copy, a backup and a restore. A job that has returned no error has done its work; after one that
// has, the same call completes it. No row and no object is ever other than it must be.
func TestSweep(t *testing.T) {
	restore := func(ctx context.Context, w *swept) error {
		o := one()
		o.Blobs = w.files("swept-restored", w.to)
		_, err := w.vault.Restore(ctx, "all", []backup.Target{{Name: w.from.Name(), To: w.to}}, o)
		return err
	}
	sameBlobs := func(ctx context.Context, w *swept) error {
		for _, name := range sweptBlobs {
			content := make([]byte, 64)
			n, err := blobstorage.Container(w.to.Account(), "swept-restored").NewBlobClient("files/"+name).DownloadBuffer(ctx, content, nil)
			if err != nil || string(content[:n]) != "content of "+name {
				return fmt.Errorf("blob %s: %q, %w", name, content[:n], err)
			}
		}
		return w.same(ctx)
	}
	for name, c := range map[string]struct {
		prepare func(ctx context.Context, w *swept) error
		operate func(ctx context.Context, w *swept) error
		check   func(ctx context.Context, w *swept) error
		floor   int
	}{
		"Copy": {func(context.Context, *swept) error { return nil }, func(ctx context.Context, w *swept) error {
			_, err := backup.Copy(ctx, w.from, w.to, one())
			return err
		}, func(ctx context.Context, w *swept) error { return w.same(ctx) }, 368},
		"Backup": {func(context.Context, *swept) error { return nil }, func(ctx context.Context, w *swept) error { return w.save(ctx) },
			func(ctx context.Context, w *swept) error {
				if _, err := w.vault.Verify(ctx, "all", nil); err != nil {
					return err
				}
				found, err := inBackup(ctx, w.vault, "all", w.from.Name(), w.from)
				if err == nil && len(found) > 0 {
					err = fmt.Errorf("%d differences: %v", len(found), found[0])
				}
				return err
			}, 952},
		"Restore": {func(ctx context.Context, w *swept) error { return w.save(ctx) }, restore, sameBlobs, 760},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: c.floor, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				assert.Check(t, c.prepare(t.Context(), newSwept(t, s)))
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						w, err := openSwept(s)
						if err != nil {
							return err
						}
						return c.operate(ctx, w)
					},
					Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
						w, err := openSwept(s)
						if err != nil {
							return err
						}
						if end.Point.Caller == storagetest.CallerRetries && end.Err != nil {
							return fmt.Errorf("five attempts, and still %w", end.Err)
						}
						if !end.Succeeded() {
							if err := c.operate(ctx, w); err != nil {
								return fmt.Errorf("after %w, the next call returned: %w", end.Err, err)
							}
						}
						return c.check(ctx, w)
					},
				}
			}})
		})
	}
}
