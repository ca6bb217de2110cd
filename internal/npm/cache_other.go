//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package npm

import (
	"context"
	"os"
)

// lock does nothing here (Windows and others without flock): two processes that find no installation both make one, and
// both use the installation that is finished first.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}

func userID() string {
	return "user"
}

// mustBeOurs checks nothing here: the temporary directory of Windows is the user's own.
func mustBeOurs(dir string) error {
	_, err := os.Stat(dir)
	return err
}
