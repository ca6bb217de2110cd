//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package storagetest

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C from Azurite, which the program may need for its own shutdown, by a process group.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
