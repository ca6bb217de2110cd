//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package storagetest

import (
	"os/exec"
	"syscall"
)

// detach puts the command in a process group of its own: Ctrl-C at a terminal then does not reach Azurite,
// which the program may still need during its own shutdown.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
