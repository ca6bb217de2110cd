//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipeForPosition: a named pipe in place of the file of a position is refused, and nobody waits for its other end.
func TestPipeForPosition(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openPosition("copy", pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
