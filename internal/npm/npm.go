// Package npm installs npm packages, pinned by a lock file, into the user's cache directory: once for each lock file, whatever number of
// processes ask for it.
package npm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// installTime limits an installation, and the wait for the installation of another process.
	installTime = 5 * time.Minute
	// staleTime is the age at which an unfinished installation counts as abandoned: no process works on one for
	// longer than installTime.
	staleTime = time.Hour
)

// Packages are npm packages that are installed together. The lock file holds every package's integrity hash but no registry's address:
// npm uses the registry that it is configured with.
type Packages struct {
	Name         string // in messages
	Dir          string // prefix of the name of the installation's directory
	Manifest     []byte // package.json
	Lock         []byte // package-lock.json
	Entry        string // a file that a complete installation has, with slashes
	Cost         string // duration and size of a first installation, for the user, such as "about 15 s"
	WithoutTools string // what to do if Node.js or npm is missing
}

// Node returns the path of the program node.
func (p *Packages) Node() (string, error) { return p.tool("node") }

func (p *Packages) tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errors.New(name + " is not on PATH: " + p.WithoutTools)
	}
	return path, nil
}

// Install returns the directory of an installation, and makes it first if it is missing. It installs into a
// temporary directory and renames that when complete, so that the final name never shows a partial installation.
func (p *Packages) Install(ctx context.Context, progress func(string)) (string, error) {
	dir, err := p.install(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("installing %s: %w", p.Name, err)
	}
	return dir, nil
}

func (p *Packages) install(ctx context.Context, progress func(string)) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(append(bytes.Clone(p.Manifest), p.Lock...))
	dir := filepath.Join(root, p.Dir+"-"+hex.EncodeToString(hash[:6]))
	if p.installed(dir) {
		return dir, nil
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another process to finish it: %w", err)
	}
	defer unlock()
	if p.installed(dir) {
		return dir, nil // installed by the process that held the lock
	}
	progress("installing " + p.Name + " (once, " + p.Cost + ") into " + dir)
	return dir, p.installTo(ctx, dir)
}

func (p *Packages) installed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(p.Entry)))
	return err == nil
}

// installTo makes dir. The lock only avoids duplicate work: without it, of two processes that finish, one
// renames its directory to dir and the other uses that.
func (p *Packages) installTo(ctx context.Context, dir string) error {
	npm, err := p.tool("npm")
	if err != nil {
		return err
	}
	removeStale(dir)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for name, content := range map[string][]byte{"package.json": p.Manifest, "package-lock.json": p.Lock} {
		if err := os.WriteFile(filepath.Join(tmp, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := npmCI(ctx, npm, tmp); err != nil {
		return err
	}
	if !p.installed(tmp) {
		return errors.New("npm ci succeeded, but " + p.Entry + " is missing")
	}
	if p.installed(dir) {
		return nil
	}
	os.RemoveAll(dir) // a damaged installation; if it cannot be removed, the rename fails, too
	if err := os.Rename(tmp, dir); err != nil && !p.installed(dir) {
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

// CheckLock returns an error unless a lock file pins every package by its hash, and names no registry.
func CheckLock(lock []byte) error {
	var file struct {
		Packages map[string]struct{ Resolved, Integrity string }
	}
	if err := json.Unmarshal(lock, &file); err != nil {
		return err
	}
	var failures []error
	for name, p := range file.Packages {
		if p.Resolved != "" {
			failures = append(failures, fmt.Errorf("%s names an address: make the lock with --omit-lockfile-registry-resolved", name))
		}
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			failures = append(failures, fmt.Errorf("%s has no SHA-512 hash: %q", name, p.Integrity))
		}
	}
	if len(file.Packages) < 2 || bytes.Contains(lock, []byte(`"resolved"`)) || bytes.Contains(lock, []byte(".tgz")) {
		failures = append(failures, errors.New("the lock file lists no packages, or contains an address; make it with npm install --omit-lockfile-registry-resolved"))
	}
	return errors.Join(failures...)
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
	// Every user of the machine can guess this name and write to the temporary directory, so refuse a
	// directory that another user could have written.
	if err := mustBeOurs(root); err != nil {
		return "", err
	}
	return root, nil
}
