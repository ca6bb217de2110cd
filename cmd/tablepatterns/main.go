// Command tablepatterns inspects, copies, backs up, restores and compares tables of Azure Storage. See docs/reference/command.md.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/tablepatterns/tablepatterns/tables"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	p := &program{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, bars: term.IsTerminal(int(os.Stderr.Fd())),
		options: &tables.AccountOptions{Logger: slog.New(slog.DiscardHandler)}} // no log, since the command prints its errors
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
