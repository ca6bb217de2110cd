// Command contoso runs the company of the Azure Storage Table Design Guide: it loads employees by the thousand, asks the
// guide's questions with the patterns and without them, and shows what each cost in requests and time.
//
//	go run ./examples/contoso [-n employees] [-service azurite|simulator|account] [-chaos] [-report file] [-json] [-seed seed] [-keep] [-growth sizes]
//
// It runs on the account that AZURE_STORAGE_CONNECTION_STRING names, or on Azurite, which it installs, starts and stops, or,
// where there is no Node.js for Azurite, on a simulator in memory. On an account it makes tables, queues and blob containers
// with names that nobody else has, and drops them at the end.
//
// scenarios.go lists the scenarios, each about one section of the guide; scene.go and measure.go have the steps of which they are made. A
// scenario that finds anything other than it should ends the run with an error. The run ends with a summary and a page of HTML with plots.
//
// With -chaos, 5 % of the calls fail while the scenarios write: the call is not sent, or its response is lost, cut off, 500 although the
// service has done the work, or 503; and 2 % of the transactions fail inside a response with status 202. The worker that archives former
// employees is then a process of its own, which is killed again and again. The results must be the same as without -chaos: the same
// answers, nothing for Verify to find, no message on a poison queue.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
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
	employees         int
	seed              uint64
	service, report   string
	growth            []int
	json, keep, chaos bool
}

// The employees that the scenarios ask for are among the first 250, and a row key has six digits.
const (
	minEmployees = 250
	maxEmployees = 500_000
)

// parseSizes reads numbers of employees with commas between them. The empty text is none.
func parseSizes(text string) (sizes []int, err error) {
	if text == "" {
		return nil, nil
	}
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < minEmployees || n > maxEmployees {
			return nil, fmt.Errorf("%q is not a number from %d to %s", field, minEmployees, grouped(maxEmployees))
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("contoso", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.employees, "n", 5000, fmt.Sprintf("number of `employees`, %d to %s", minEmployees, grouped(maxEmployees)))
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the data: the same seed makes the same employees")
	flags.StringVar(&o.service, "service", "", "azurite, simulator or account; without it, an account if "+connectionVariable+" is set, else azurite if there is Node.js, else simulator")
	flags.StringVar(&o.report, "report", "", "`file` of the report in HTML; without it, a new file in the folder for temporary files")
	chosen := false
	flags.Func("growth", "numbers of employees at which reads are measured on a simulator, with commas; empty for none; without it, those of 500, 5,000 and 20,000 that are at most 20 times -n", func(text string) (err error) {
		chosen = true
		o.growth, err = parseSizes(text)
		return err
	})
	flags.BoolVar(&o.json, "json", false, "print one JSON document in place of the tables")
	flags.BoolVar(&o.keep, "keep", false, "leave tables, queues and containers on the account of "+connectionVariable)
	flags.BoolVar(&o.chaos, "chaos", false, "have calls go wrong while the scenarios write, and kill the worker of the archive again and again")
	err := flags.Parse(args)
	if !chosen { // a short run stays short
		o.growth = slices.DeleteFunc([]int{500, 5_000, 20_000}, func(n int) bool { return n > 20*o.employees })
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, flag.ErrHelp // Parse has said what is wrong
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.employees < minEmployees || o.employees > maxEmployees:
		return o, fmt.Errorf("-n is %d: it can be %d to %d", o.employees, minEmployees, maxEmployees)
	case !slices.Contains([]string{"", "azurite", "simulator", "account"}, o.service):
		return o, fmt.Errorf("-service is %q: it can be azurite, simulator or account", o.service)
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
	page, err := newPage(o.report)
	if err != nil {
		return err
	}
	defer page.Close() // after an error; save has closed it otherwise
	begin := time.Now()
	progress := &progress{w: stderr}
	at, err := find(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.leave()) }()
	c, err := openCompany(o, at, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()

	out := io.Discard
	if !o.json {
		out = stdout
	}
	r := &report{Account: c.account.String(), Emulator: at.emulator, Chosen: at.chosen, Seed: o.seed, Employees: o.employees, Departments: len(departments), Kept: o.keep, Chaos: c.chaos(), File: page.Name()}
	r.writeHead(out)
	if err := c.play(ctx, parts, r, out); err != nil {
		return err
	}
	if r.Growth, err = measureGrowth(ctx, o, progress); err != nil {
		return err
	}
	if err := c.dropAll(ctx); err != nil {
		return err
	}
	r.Resources, r.Requests, r.Milliseconds, r.Chaos = c.resources, c.requests.Count(), milliseconds(time.Since(begin)), c.chaos()
	r.sumUp()
	if err := r.save(page); err != nil {
		return err
	}
	r.writeEnd(out)
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return nil
}

// play opens all scenarios, creates what they keep in the account, and runs them.
func (c *company) play(ctx context.Context, parts []scenario, r *report, out io.Writer) error {
	runs := make([]func(context.Context), len(parts))
	for i, part := range parts {
		s := &section{Title: part.title, Guide: part.guide, Plain: part.plain}
		r.Sections = append(r.Sections, s)
		if err := attempt(part.title, func() { runs[i] = part.open(&scene{c, s}) }); err != nil {
			return err
		}
	}
	if err := c.store.Create(ctx); err != nil {
		return err
	}
	for i, part := range parts {
		if err := attempt(part.title, func() {
			runs[i](ctx)
			r.Sections[i].write(out)
			for _, x := range part.shows {
				r.Patterns = append(r.Patterns, must(x.measured(r.Sections[i])))
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// measureGrowth runs the scenarios that only read, at each of the sizes, on simulators: requests and rows are the same on every service,
// and there it is quick. What it returns are the questions for which the pattern searches fewer rows.
func measureGrowth(ctx context.Context, o options, p *progress) ([]*growth, error) {
	byQuestion := map[string]*growth{}
	var all []*growth
	for _, n := range o.growth {
		at, err := newSimulator()
		if err != nil {
			return nil, err
		}
		p.say(fmt.Sprintf("Measuring the reads with %s employees, on a simulator", grouped(n)))
		c, err := openCompany(options{employees: n, seed: o.seed}, at, &progress{w: io.Discard})
		if err != nil {
			return nil, err
		}
		c.repeat = 1
		r := &report{}
		if err := c.play(ctx, reads(), r, io.Discard); err != nil {
			return nil, err
		}
		for _, s := range r.Sections {
			for _, l := range s.Lookups {
				g := byQuestion[l.Question]
				if g == nil && l.With.Searched < l.Without.Searched {
					g = &growth{Question: l.Question}
					byQuestion[l.Question], all = g, append(all, g)
				}
				if g != nil {
					g.Points = append(g.Points, growthPoint{n, l.With, l.Without})
				}
			}
		}
	}
	return all, nil
}

// progress tells a person what takes long.
type progress struct {
	w    io.Writer
	last time.Time
}

// say writes a line.
func (p *progress) say(message string) { fmt.Fprintln(p.w, message) }

// bulk reports on the loading of a number of employees, every two seconds and at the end.
func (p *progress) bulk(what string, total int) func(tables.BulkReport) {
	p.last = time.Now()
	return func(b tables.BulkReport) {
		done := int(b.Written + b.Unchanged)
		if time.Since(p.last) < 2*time.Second && done != total {
			return
		}
		p.last = time.Now()
		p.say(fmt.Sprintf("%s: %7s of %s employees, %3d %%, %s a second", what, grouped(done), grouped(total),
			done*100/total, grouped(int(float64(done)/max(b.Elapsed.Seconds(), 1e-9)))))
	}
}
