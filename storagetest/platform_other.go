//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package storagetest

import "os/exec"

// detach does nothing: Ctrl-C ends Azurite together with the program.
func detach(*exec.Cmd) {}
