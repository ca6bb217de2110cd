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

// The lock file holds every package's integrity hash but no registry's address: npm uses the registry that it is
// configured with.
//
//go:embed azurite/package.json
var packageJSON []byte

//go:embed azurite/package-lock.json
var packageLock []byte

const (
	// azuriteEntry is the file that starts Azurite, inside an installation.
	azuriteEntry = "node_modules/azurite/dist/src/azurite.js"
	// installTime limits an installation, and the wait for that of another process.
	installTime = 5 * time.Minute
	// staleTime is the age at which an unfinished installation counts as abandoned: no process works on one for
	// longer than installTime.
	staleTime = time.Hour

	needNode = "install Node.js 20 or newer with npm, or set " + ConnectionStringVariable + " to the connection string of an account to test on"
)

// install returns the directory of an installed Azurite, and installs it first if it is missing. It installs into a
// temporary directory and renames that when complete, so that the final name never shows a partial installation.
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
		return dir, nil // installed by the process that held the lock
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

// installTo makes dir. It is correct without the lock, too, which only avoids duplicate work: if two processes
// finish, one renames, and the other finds dir.
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
	os.RemoveAll(dir) // a damaged installation; if it cannot be removed, the rename fails, too
	if err := os.Rename(tmp, dir); err != nil && !installed(dir) {
		return err
	}
	return nil
}

// npmCI installs the packages of the lock file in dir. Its cache is inside dir, so that it works with a read-only
// home directory, and is removed afterwards because nothing else uses it.
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

// removeStale deletes what interrupted installations left beside dir. It ignores errors: what cannot be deleted does
// no harm.
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

// cacheRoot returns the directory that holds installations: in the user's cache directory, or in the temporary
// directory if there is none (HOME is not set, or cannot be written).
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
	// Everyone can guess this name and write to the temporary directory: run only code from a directory that no other
	// user could have written.
	if err := mustBeOurs(root); err != nil {
		return "", err
	}
	return root, nil
}
