// Command contoso runs the company of the Azure Storage Table Design Guide: it loads employees by the thousand, asks the
// guide's questions with the patterns and without them, and shows what each cost in requests and time.
//
//	go run ./examples/contoso [-n employees] [-seed seed] [-json] [-keep] [-chaos]
//
// It runs on Azurite, which it installs, starts and stops, on the account that AZURE_STORAGE_CONNECTION_STRING names, or,
// with STORAGETEST_SERVICE=simulator, on a simulator in memory. On an account it makes tables, queues and blob containers
// of its own, with names that nobody else has, and drops them at the end. Each part of the run is a scenario, in a file of
// its own. A scenario that finds anything other than it should ends the run with an error.
//
// With -chaos, a share of the calls goes wrong while the scenarios write: it is not sent, or its answer is lost, cut off, 500
// though the service did its work, or 503; and 2 % of the transactions fail inside an answer with status 202, with 503, 500 or
// 429. And the worker that archives former employees is a process of its own, this program
// once more, which is killed in the middle of its work again and again. A simulator lives in one process, so nothing is killed
// there. The end of it must be as without: the same answers, nothing for Verify to find, no message given up.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	var err error
	if job := os.Getenv(workerVariable); job != "" {
		err = beWorker(ctx, job, os.Stdin, os.Stderr)
	} else {
		err = run(ctx, os.Args[1:], findPlace, scenarios(), os.Stdout, os.Stderr)
	}
	stop()
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "contoso:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	employees int
	seed      uint64
	json      bool
	keep      bool
	chaos     bool
}

// The employees that the scenarios ask for are among the first 250, and a row key has six digits.
const (
	minEmployees = 250
	maxEmployees = 500_000
)

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("contoso", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.employees, "n", 5000, fmt.Sprintf("number of `employees`, %d to %s", minEmployees, grouped(maxEmployees)))
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the data: the same seed makes the same employees")
	flags.BoolVar(&o.json, "json", false, "print one JSON document in place of the tables")
	flags.BoolVar(&o.keep, "keep", false, "leave tables, queues and containers on the account of "+connectionVariable)
	flags.BoolVar(&o.chaos, "chaos", false, "have calls go wrong while the scenarios write, and kill the worker of the archive again and again")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, flag.ErrHelp // Parse has said what is wrong
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.employees < minEmployees || o.employees > maxEmployees:
		return o, fmt.Errorf("-n is %d: it can be %d to %d", o.employees, minEmployees, maxEmployees)
	}
	return o, nil
}

// finder finds the storage service to run on.
type finder func(context.Context, options, *progress) (*place, error)

// run is the program: it returns nil when every scenario found what it should, and what it has made is dropped.
func run(ctx context.Context, args []string, find finder, parts []scenario, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	begin := time.Now()
	progress := newProgress(stderr)
	at, err := find(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.leave()) }()
	c, err := openCompany(ctx, o, at, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()

	out := io.Discard
	if !o.json {
		out = stdout
	}
	r := &report{Account: c.account.String(), Emulator: at.emulator, Seed: o.seed, Employees: o.employees, Departments: len(departments()), Kept: o.keep, Chaos: c.chaos()}
	r.writeHead(out)
	for _, sc := range parts {
		s := &section{Title: sc.title, Guide: sc.guide}
		if err := sc.run(ctx, c, s); err != nil {
			progress.end()
			return fmt.Errorf("%s: %w", sc.title, err)
		}
		progress.end()
		s.write(out)
		r.Sections = append(r.Sections, s)
		if err := r.show(sc, s); err != nil {
			return err
		}
	}
	if err := c.dropAll(ctx); err != nil {
		return err
	}
	r.Tables, r.Queues, r.Containers = c.tables, c.queues, c.containers
	r.Requests, r.Milliseconds = c.requests.Count(), milliseconds(time.Since(begin))
	r.Chaos = c.chaos()
	r.sumUp()
	r.writeSummary(out)
	r.writeFoot(out)
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return nil
}
