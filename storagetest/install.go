package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The lock holds every package's integrity hash and no registry's address: npm takes the one it is set up with.
//
//go:embed azurite/package.json
var packageJSON []byte

//go:embed azurite/package-lock.json
var packageLock []byte

const (
	// azuriteEntry is the file that starts Azurite, inside an installation.
	azuriteEntry = "node_modules/azurite/dist/src/azurite.js"
	// installTime bounds an installation, or the wait for that of another process.
	installTime = 5 * time.Minute
	// staleTime is the age at which an unfinished installation is rubbish: nobody works on one for longer than installTime.
	staleTime = time.Hour

	needNode = "install Node.js 20 or newer with npm, or set " + ConnectionStringVariable + " to the connection string of an account to test on"
)

// install returns the directory of an installed Azurite, installing it first if this machine has not got it. An
// installation grows in a temporary directory and is renamed when complete, so that the final name never shows a part of one.
func install(ctx context.Context, progress func(string)) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", fmt.Errorf("installing Azurite: %w", err)
	}
	hash := sha256.Sum256(append(bytes.Clone(packageJSON), packageLock...))
	dir := filepath.Join(root, "azurite-"+hex.EncodeToString(hash[:6]))
	if installed(dir) {
		return dir, nil
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("installing Azurite: waiting for another process to finish it: %w", err)
	}
	defer unlock()
	if installed(dir) {
		return dir, nil // by the process that held the lock
	}
	progress("installing Azurite (once, about 15 s) into " + dir)
	if err := installTo(ctx, dir); err != nil {
		return "", fmt.Errorf("installing Azurite: %w", err)
	}
	return dir, nil
}

func installed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(azuriteEntry)))
	return err == nil
}

// installTo makes dir. It is right without the lock too, which only saves doing the work twice: of two that finish, one
// renames, and the other finds dir there.
func installTo(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not on PATH: " + needNode)
	}
	removeStale(dir)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for name, content := range map[string][]byte{"package.json": packageJSON, "package-lock.json": packageLock} {
		if err := os.WriteFile(filepath.Join(tmp, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := npmCI(ctx, npm, tmp); err != nil {
		return err
	}
	if !installed(tmp) {
		return errors.New("npm ci succeeded, but " + azuriteEntry + " is missing")
	}
	if installed(dir) {
		return nil
	}
	os.RemoveAll(dir) // one that somebody deleted a part of; if this fails, so does the rename
	if err := os.Rename(tmp, dir); err != nil && !installed(dir) {
		return err
	}
	return nil
}

// npmCI installs what the lock in dir says. Its cache is inside dir, so that it works where the home directory
// cannot be written, and is removed afterwards: nothing else would use it.
func npmCI(ctx context.Context, npm, dir string) error {
	cache := filepath.Join(dir, "npm-cache")
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier",
		"--loglevel=error", "--cache", cache)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("npm ci: %w", ctx.Err())
	}
	if err != nil {
		const most = 2000
		out = bytes.TrimSpace(out)
		out = out[max(0, len(out)-most):]
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.RemoveAll(cache)
}

// removeStale deletes what installations that were cut off left beside dir. What cannot be deleted stays, and harms nobody.
func removeStale(dir string) {
	left, err := filepath.Glob(dir + ".part-*")
	if err != nil {
		return
	}
	for _, part := range left {
		if info, err := os.Stat(part); err == nil && time.Since(info.ModTime()) > staleTime {
			os.RemoveAll(part)
		}
	}
}

// cacheRoot is the directory that holds installations: in the user's cache directory, or, where there is none (HOME is
// not set, or cannot be written), in the temporary directory.
func cacheRoot() (string, error) {
	if cache, err := os.UserCacheDir(); err == nil {
		root := filepath.Join(cache, "tablepatterns")
		if err := os.MkdirAll(root, 0o700); err == nil {
			return root, nil
		}
	}
	root := filepath.Join(os.TempDir(), "tablepatterns-"+strings.ReplaceAll(userID(), string(filepath.Separator), "-"))
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	// The name can be guessed and the place is everyone's: run only code that nobody else could have put there.
	if err := mustBeOurs(root); err != nil {
		return "", err
	}
	return root, nil
}
