// Command tablepatterns inspects, copies, backs up, restores and compares tables of Azure Storage. See docs/reference/command.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
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

// The exit codes.
const (
	exitOK         = 0 // done; compared tables are equal
	exitDifference = 1 // done; there are differences
	exitError      = 2 // wrong arguments, a failure, or an interruption
)

// errDifferences reports that the command has found differences and has printed them.
var errDifferences = errors.New("there are differences")

// program is one run of the command.
type program struct {
	stdout, stderr io.Writer
	getenv         func(string) string
	bars           bool                   // show progress on stderr
	options        *tables.AccountOptions // of every account

	// Flags of all commands.
	connection    string // name of an environment variable
	concurrency   int
	rowsPerSecond int
	partitions    []string
	quiet         bool
}

// run runs the command line, and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDifferences):
		return exitDifference
	case ctx.Err() != nil:
		fmt.Fprintln(p.stderr, "interrupted")
	}
	fmt.Fprintln(p.stderr, "tablepatterns:", strings.TrimPrefix(err.Error(), "tablepatterns: "))
	return exitError
}

// root returns the command with all subcommands.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tablepatterns",
		Short: "Inspect, copy, back up, restore and compare tables of Azure Storage",
		Long: `Inspect, copy, back up, restore and compare tables of Azure Storage.

The account is the one that the environment names: AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with
AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_AUTH_MODE=login. --connection-env names another variable
with a connection string. No secret is taken from the command line.

Exit codes: 0 done, or equal; 1 there are differences; 2 an error, or interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&p.connection, "connection-env", "", "`NAME` of an environment variable with the connection string of the account")
	flags.IntVar(&p.concurrency, "concurrency", 0, "requests in flight (default 8)")
	flags.IntVar(&p.rowsPerSecond, "rows-per-second", 0, "limit of rows read and written in a second (default none)")
	flags.StringArrayVar(&p.partitions, "partition", nil, "`KEY` of a partition to process, instead of all; repeat for several")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "show no progress")
	root.AddCommand(p.inspectCommand(), p.copyCommand(), p.backupCommand(), p.restoreCommand(), p.verifyCommand(), p.compareCommand())
	return root
}

// account opens the account from the environment; variable is the name of an environment variable with a
// connection string, or "" for the default variables.
func (p *program) account(variable string) (*tables.Account, error) {
	if variable == "" {
		options := *p.options
		credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options.ClientOptions})
		if err != nil {
			return nil, err
		}
		options.Credential = credential
		return tables.NewAccountFromEnv(&options)
	}
	text := p.getenv(variable)
	if text == "" {
		return nil, fmt.Errorf("the environment variable %s is empty; set it to the connection string of the account", variable)
	}
	return tables.NewAccountFromConnectionString(text, p.options)
}

// table opens a table of the account that variable stands for, as in account.
func (p *program) table(variable, name string) (*tables.Table, error) {
	account, err := p.account(variable)
	if err != nil {
		return nil, err
	}
	return account.Table(name), nil
}

// progress returns a function that shows the progress of a job, and a function that ends the display.
func (p *program) progress(what string) (show func(tables.Progress), end func()) {
	if !p.bars || p.quiet {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(p.stderr), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSpinnerType(14), progressbar.OptionSetElapsedTime(true))
	show = func(r tables.Progress) { _ = bar.Set64(max(r.Rows, r.Read)) }
	return show, func() { _ = bar.Finish() }
}
