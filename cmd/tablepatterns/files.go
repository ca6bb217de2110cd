package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// free returns an error if the file exists. Call it before a long job that writes the file at its end.
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

// writeFile writes a complete file, or none after an error. Only its owner can read it, since it may contain
// keys.
func writeFile(name string, overwrite bool, content func() ([]byte, error)) error {
	data, err := content()
	if err != nil {
		return err
	}
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
