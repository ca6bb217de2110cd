//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package npm

import (
	"context"
	"os"
)

// lock does nothing here (Windows and others without flock): if two processes find no installation, both of
// them install, and both use the installation that is finished first.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}

func userID() string {
	return "user"
}

// mustBeOurs checks nothing here, since each user of Windows has a temporary directory of their own.
func mustBeOurs(dir string) error {
	_, err := os.Stat(dir)
	return err
}
