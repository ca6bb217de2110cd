//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package storagetest

import (
	"context"
	"os"
	"os/exec"
)

// lock does nothing here (Windows and others without flock): two processes that find no Azurite both install it, and
// both use the installation that is finished first.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}

// detach does nothing here: Ctrl-C ends Azurite together with the program.
func detach(*exec.Cmd) {}

func userID() string {
	return "user"
}

// mustBeOurs checks nothing here: the temporary directory of Windows is the user's own.
func mustBeOurs(dir string) error {
	_, err := os.Stat(dir)
	return err
}
