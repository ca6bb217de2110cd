//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package backup_test

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// folderCalls are the calls that open files in the folder of a vault, which has the backup "all" and the unfinished backup "half".
func folderCalls(table, to *tables.Table) map[string]func(context.Context, *backup.Vault) error {
	half := func(ctx context.Context, v *backup.Vault, o backup.Options) error {
		o.ChunkBytes = small.ChunkBytes
		_, err := v.Backup(ctx, "half", []*tables.Table{table}, &o)
		return err
	}
	return map[string]func(context.Context, *backup.Vault) error{
		"Manifest":   func(ctx context.Context, v *backup.Vault) error { _, err := v.Manifest(ctx, "all"); return err },
		"Unfinished": func(ctx context.Context, v *backup.Vault) error { _, err := v.Unfinished(ctx, "half"); return err },
		"Verify":     func(ctx context.Context, v *backup.Vault) error { _, err := v.Verify(ctx, "all", nil); return err },
		"Compare": func(ctx context.Context, v *backup.Vault) error {
			_, err := v.Compare(ctx, "all", table.Name(), table, nil)
			return err
		},
		"Restore": func(ctx context.Context, v *backup.Vault) error {
			_, err := v.Restore(ctx, "all", []backup.Target{{Name: table.Name(), To: to}}, nil)
			return err
		},
		"Backup": func(ctx context.Context, v *backup.Vault) error { return half(ctx, v, backup.Options{}) },
		"Resume": func(ctx context.Context, v *backup.Vault) error {
			token, err := v.Unfinished(ctx, "half")
			if err != nil || token == "" {
				return err
			}
			return half(ctx, v, backup.Options{Resume: token})
		},
		"Base": func(ctx context.Context, v *backup.Vault) error {
			_, err := v.Backup(ctx, "next", []*tables.Table{table}, &backup.Options{Base: "all", ChunkBytes: small.ChunkBytes})
			return err
		},
	}
}

// TestNoRegularFile: a named pipe, a socket, a directory or a loop of symbolic links in place of any file or folder of a vault makes no
// call wait. The file that a call needs is damaged.
func TestNoRegularFile(t *testing.T) {
	folder, v, table := smallBackup(t, 10)
	interrupted(t, v, "half", table, *small)
	to := newTable(t, harness.Account(t))
	names := map[string]bool{"chunks": true, "half.journal": true}
	for name := range files(t, folder) {
		if names[name] = true; strings.HasPrefix(name, "chunks/") {
			names[path.Dir(name)] = true
		}
	}
	for kind, replace := range map[string]func(at string) error{
		"pipe":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"directory": func(at string) error { return os.Mkdir(at, 0o700) },
		"loop":      func(at string) error { return os.Symlink(filepath.Base(at), at) },
		"socket":    socketAt,
	} {
		for name := range names {
			for call, do := range folderCalls(table, to) {
				copied := t.TempDir()
				assert.Check(t, os.CopyFS(copied, os.DirFS(folder)))
				at := filepath.Join(copied, filepath.FromSlash(name))
				assert.Check(t, os.RemoveAll(at), replace(at))
				done := make(chan error, 1)
				go func() {
					v, err := backup.OpenFolder(copied)
					if err == nil {
						defer v.Close()
						err = do(t.Context(), v)
					}
					done <- err
				}()
				select {
				case err := <-done:
					if needed := name == "all.manifest" && call == "Verify" || strings.HasPrefix(name, "chunks") && call == "Restore"; needed {
						harness.WantKind(t, err, tables.ErrGarbled)
					}
				case <-time.After(20 * time.Second):
					t.Errorf("%s waits for a %s at %s", call, kind, name)
					release := assert.Must[*os.File](t)(os.OpenFile(at, os.O_RDWR, 0))
					<-done
					release.Close()
				}
			}
		}
	}
}

// socketAt makes a socket. It binds a short name first, since the names of sockets are limited.
func socketAt(at string) error {
	short, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(short)
	s, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	name := filepath.Join(short, "s")
	return errors.Join(syscall.Bind(s, &syscall.SockaddrUnix{Name: name}), syscall.Close(s), os.Rename(name, at))
}
