//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package storagetest

import (
	"context"
	"os"
	"os/exec"
)

// lock does nothing here (Windows and others without flock): two processes that find no Azurite install it twice, side by
// side, and the first to finish is used by both.
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
