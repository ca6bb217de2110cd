package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// folder stores objects as files, through an os.Root, so that no name or symbolic link leads out of it.
type folder struct{ root *os.Root }

// OpenFolder returns the vault in a folder, which it creates if it is missing. Close the vault after use.
func OpenFolder(name string) (*Vault, error) {
	const op = "OpenFolder"
	if name == "" {
		return nil, errs.Wiringf(op, "", "the name of the folder is empty; give a path")
	}
	err := os.MkdirAll(name, 0o700)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(name); err == nil {
			return &Vault{objects: folder{root}, where: "folder " + name}, nil
		}
	}
	return nil, &tables.Error{Op: op, Kind: kindOfFile(err), Err: err}
}

func kindOfFile(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tables.ErrNotFound
	case errors.Is(err, fs.ErrExist):
		return tables.ErrExists
	case errors.Is(err, fs.ErrPermission):
		return tables.ErrDenied
	case slices.ContainsFunc(notOfVault, func(errno error) bool { return errors.Is(err, errno) }):
		return tables.ErrGarbled
	}
	return tables.ErrUnavailable
}

// notOfVault are the errors for what no vault has: a file in place of a folder or the reverse, a loop of symbolic links, a socket.
var notOfVault = []error{syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO}

func ofFile(err error) error {
	if err == nil {
		return nil
	}
	return &tables.Error{Kind: kindOfFile(err), Err: err}
}

// unreadableFile reports whether an error concerns one file only, so that Verify continues.
func unreadableFile(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok && !errors.Is(err, fs.ErrClosed)
}

// open opens for reading without waiting: a named pipe would block until another process opens its other end, whatever the context says.
func (f folder) open(name string) (*os.File, error) {
	return f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (f folder) get(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.open(name)
	if err != nil {
		return nil, ofFile(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, ofFile(err)
	case !info.Mode().IsRegular(): // a pipe would block, and a device has no end
		return nil, &tables.Error{Kind: tables.ErrGarbled, Err: errors.New("the path is not a regular file; remove it, or restore the file of the vault")}
	case info.Size() > limit:
		return nil, errTooLong
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, ofFile(err)
	}
	return content, nil
}

// put writes a temporary file and renames it, so that no incomplete file gets the final name.
func (f folder) put(ctx context.Context, name string, content []byte, create bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if create {
		if _, err := f.root.Lstat(name); err == nil {
			return ofFile(fs.ErrExist)
		}
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return ofFile(err)
	}
	temporary := path.Join(path.Dir(name), temporaryPrefix+rand.Text())
	defer func() {
		if removed := f.root.Remove(temporary); err == nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = ofFile(removed)
		}
	}()
	file, err := f.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return ofFile(err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return ofFile(err)
	}
	if create {
		if err = f.root.Link(temporary, name); err == nil || errors.Is(err, fs.ErrExist) {
			f.sync(path.Dir(name))
			return ofFile(err)
		}
		if err = f.reserve(name); err != nil {
			return ofFile(err)
		}
	}
	if err = f.root.Rename(temporary, name); err != nil && create {
		_ = f.root.Remove(name)
	}
	f.sync(path.Dir(name))
	return ofFile(err)
}

// reserve takes the name on a file system without links, by an empty file that the caller replaces. Of two processes, one gets fs.ErrExist. A crash
// leaves the file empty.
func (f folder) reserve(name string) error {
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// sync makes the names in a folder durable, which the Sync of a file does only on some systems. It ignores errors: some systems cannot sync a
// folder.
func (f folder) sync(name string) {
	if dir, err := f.open(name); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// temporaryPrefix begins the names of files that are being written, and of no object.
const temporaryPrefix = ".tmp-"

func (f folder) list(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := f.open(path.Join(".", prefix))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield("", ofFile(err))
			return
		}
		defer dir.Close()
		for {
			entries, err := dir.ReadDir(1000)
			if err == nil {
				err = ctx.Err()
			}
			for _, e := range entries {
				if err == nil && e.Type().IsRegular() && !strings.HasPrefix(e.Name(), temporaryPrefix) && !yield(prefix+e.Name(), nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", ofFile(err))
				return
			}
		}
	}
}

// clear also removes temporary files that killed processes have left there.
func (f folder) clear(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for name, err := range f.list(ctx, prefix) {
		if err == nil && !strings.HasSuffix(name, "/"+begunName) { // the journal's header goes last: with it, Unfinished finds the other files after a crash
			err = f.root.Remove(name)
		}
		if err != nil {
			return ofFile(err)
		}
	}
	return ofFile(f.root.RemoveAll(path.Clean(prefix)))
}

func (f folder) flush() {
	f.sync(chunksFolder)
	f.sync(".")
}

func (f folder) close() error { return f.root.Close() }
