package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// position is how far a job has come. It is saved in a file, so that a later run can continue. Only one goroutine uses it at a time.
type position struct {
	command string // such as "copy"
	file    string // "" until a file is needed
	token   string // from the last report of the job
	found   int64  // differences, including those of earlier runs
	saved   time.Time
	failed  error // error of the last write of the file by follow
}

// stored is the content of a position's file. The token contains keys of the table.
type stored struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	Resume  string `json:"resume"`
	Found   int64  `json:"differences"`
}

const (
	storedVersion = 1
	saveEvery     = time.Second // the shortest interval between two writes of the file
	maxStored     = 16 << 20    // the largest file of a position, in bytes
)

// readFile reads the file of a position. It opens the file without waiting: otherwise a named pipe blocks until another process opens its
// other end.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxStored:
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes; give another name with --resume", name, maxStored)
	}
	return io.ReadAll(io.LimitReader(file, maxStored))
}

// openPosition reads the file of an earlier run, if it exists.
func openPosition(command, file string) (*position, error) {
	p := &position{command: command, file: file}
	if file == "" {
		return p, nil
	}
	data, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	var s stored
	switch err := json.Unmarshal(data, &s); {
	case err != nil || s.Version != storedVersion || s.Resume == "":
		return nil, fmt.Errorf("the file %s is not the position of an interrupted run; give another name with --resume", file)
	case s.Command != command:
		return nil, fmt.Errorf("the file %s is the position of the command %q; repeat that command, or give another name with --resume", file, s.Command)
	}
	p.token, p.found = s.Resume, s.Found
	return p, nil
}

// follow records a job's position and, if the user has named a file, writes it there at most once in saveEvery.
func (p *position) follow(r tables.Progress) {
	if p.token = r.Resume; p.file == "" || p.token == "" || time.Since(p.saved) < saveEvery {
		return
	}
	p.saved, p.failed = time.Now(), p.write()
}

func (p *position) write() error {
	data, err := json.Marshal(stored{storedVersion, p.command, p.token, p.found})
	if err != nil {
		return err
	}
	return replaceFile(p.file, data)
}

// done removes the file after the job is complete.
func (p *position) done() error {
	if p.file == "" {
		return nil
	}
	if err := os.Remove(p.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keep writes the position of a job that has ended early, and returns advice how to continue. If the user has
// named no file, it creates one.
func (p *position) keep() (advice string, err error) {
	if p.token == "" {
		return "nothing was done yet: repeat the command to begin", nil
	}
	if p.file == "" {
		file, err := os.CreateTemp(".", "tablepatterns-"+p.command+"-*.resume")
		if err != nil {
			return "", err
		}
		p.file = file.Name()
		if err := file.Close(); err != nil {
			return "", fmt.Errorf("cannot write the position of the interrupted run to %s: %w; name a writable file with --resume", p.file, err)
		}
	}
	if err := p.write(); err != nil {
		return "", err
	}
	return "to go on, repeat the command with --resume " + p.file, nil
}

// free returns an error if the file exists, unless overwrite is set. Call it before a long job that writes the file
// at its end.
func free(name string, overwrite bool) error {
	if name == "" || overwrite {
		return nil
	}
	switch _, err := os.Lstat(name); {
	case err == nil:
		return fmt.Errorf("the file %s exists; give another name, or --overwrite", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// writeFile writes the file completely or not at all. Only its owner can read it, since it may contain keys.
func writeFile(name string, overwrite bool, data []byte) error {
	if overwrite {
		return replaceFile(name, data)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return free(name, false)
	}
	if err != nil {
		return err
	}
	if err := fill(file, data); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// replaceFile writes a temporary file and renames it when it is complete.
func replaceFile(name string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	if err = fill(temporary, data); err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

func fill(file *os.File, data []byte) error {
	_, err := file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}
