//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package npm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// lock takes the lock on the named file, waiting until ctx ends. The kernel releases it when its process ends
// for any reason, so a lock is never stale. lock never removes the file: otherwise two processes could lock
// two different files of the same name.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func userID() string {
	return strconv.Itoa(os.Getuid())
}

// mustBeOurs refuses a directory that another user made or may write to.
func mustBeOurs(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a directory that only this user can write to", dir)
	}
	return nil
}
