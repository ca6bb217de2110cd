// Package jobs runs the long jobs on the entities of a repository: Verify, Repair, Rebuild, RemoveUnattached and
// rewriting.
//
// A run goes through phases. The first ones compare: they scan the tables, add up digests of what the entities require and of what is stored, and read
// again only the places at which the sums differ. Verify reads each of these places and its entity by themselves, twice, and reports what is wrong; Repair also makes
// the place agree with the entity; Rebuild makes places agree that an entity requires. The last phase reads pages of rows, and
// processes each: Rebuild fills what entities lack, a rewriting writes entities, RemoveUnattached deletes rows.
//
// A run can be interrupted at any point. It is resumed at its last checkpoint.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/sharedlocks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
)

// The names of the jobs in errors.
const (
	Verify  = "Verify"
	Repair  = "Repair"
	Rebuild = "Rebuild"
	Remove  = "RemoveUnattached"
)

// Options are patterns.JobOptions.
type Options struct {
	Partitions, Patterns       []string
	Concurrency, RowsPerSecond int
	Lag                        time.Duration
	Rows                       int64
	DryRun                     bool
	Found                      func(entity.Finding) error
	Progress                   func(entity.Progress)
	Resume                     string

	RunFacts, OpenFacts int64 // overrides of the constants of the same names, for tests
	PageSize            int   // of scans, 0 for the service's maximum, for tests
}

const (
	defaultConcurrency = 8
	defaultLag         = 5 * time.Second
)

// unused returns an error if a field is set that the job op does not use.
func (o *Options) unused(op string) error {
	switch verifies, repairs := op == Verify || op == Repair, op == Repair || op == Remove; {
	case o.Patterns != nil && !verifies && op != Rebuild:
		return fmt.Errorf("JobOptions.Patterns is set, and %s does not use it; leave it nil", op)
	case o.DryRun && !repairs:
		return fmt.Errorf("JobOptions.DryRun is set, and %s does not use it; leave it false", op)
	case o.Lag != 0 && !verifies:
		return fmt.Errorf("JobOptions.Lag is %v, and %s does not use it; leave it 0", o.Lag, op)
	case o.Rows != 0 && !verifies:
		return fmt.Errorf("JobOptions.Rows is %d, and %s does not use it; leave it 0", o.Rows, op)
	}
	return nil
}

// check sets defaults, and returns an error for invalid options.
func (o *Options) check(op string, attached []*driver.Implementation) error {
	if err := cmp.Or(o.unused(op), pace.Check("JobOptions", o.RowsPerSecond)); err != nil {
		return err
	}
	o.Lag, o.Concurrency = cmp.Or(o.Lag, defaultLag), cmp.Or(o.Concurrency, defaultConcurrency)
	o.RunFacts, o.OpenFacts = cmp.Or(o.RunFacts, runFacts), cmp.Or(o.OpenFacts, openFacts)
	if o.Lag < 0 || o.Concurrency < 0 || o.Rows < 0 {
		return fmt.Errorf("JobOptions.Lag is %v, Concurrency %d and Rows %d; none may be negative", o.Lag, o.Concurrency, o.Rows)
	}
	for _, p := range o.Partitions {
		if err := rows.CheckKey("partition key", p); err != nil {
			return err
		}
	}
	for _, name := range o.Patterns {
		if !slices.ContainsFunc(attached, func(p *driver.Implementation) bool { return p.Name == name }) {
			return fmt.Errorf("JobOptions.Patterns names %q, but no attached pattern has this name; give the names of attached patterns", name)
		}
	}
	o.Partitions, o.Patterns = sorted(o.Partitions), sorted(o.Patterns)
	return nil
}

// sorted sorts texts and removes duplicates; nil stays nil.
func sorted(texts []string) []string {
	if texts == nil {
		return nil
	}
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(texts)))...)
}

// finding is a difference, with what Repair needs to know of it.
type finding struct {
	entity.Finding
	site  site
	wrong *rowVersion // the wrong row; nil for none
}

// job is one run.
type job struct {
	r       *engine.Engine
	op      string
	options Options
	scope   map[string]bool // the entities' partitions, nil for all
	areas   []area
	near    bool              // the rows in the entities' partitions are compared
	locks   sharedlocks.Locks // of rows that entities share
	id      string            // of the marks that the run writes
	slots   chan struct{}     // one element for each item of the pages that is processed
	parts   []part            // the scans whose pages are processed

	unattached []string // the names of the patterns of RemoveUnattached

	state      state // the position, with the counts
	checkpoint state // a copy of state at the position from which the run can be resumed; zero before the first
	listing    bool  // an auditor's list is being read, so checkpoint keeps the position before it
	began      time.Time
	rowsHere   int64 // rows that this run has compared
	told       error // of the caller's Found, which then gets no further finding

	onePage sync.Mutex // held by the page that is processed, unless several are at once
	mu      sync.Mutex
	found   []*finding    // of rows and facts that cannot be read, not yet passed to the caller
	pending []*page       // pages that have begun and do not yet count in state
	marked  []*markedSite // what Repair has marked, to be settled at its end
}

// newJob returns a run with checked options; nil is the same as the zero value.
func newJob(r *engine.Engine, op string, o *Options) (*job, error) {
	if r == nil {
		return nil, engine.ErrNil(op)
	}
	j := &job{r: r, op: op, options: *cmp.Or(o, &Options{}), id: tablerow.NewWriteID(), began: time.Now()}
	if err := j.options.check(op, r.Patterns); err != nil {
		return nil, errs.Wiringf(op, r.Table.Name(), "%w", err)
	}
	j.slots = make(chan struct{}, j.options.Concurrency)
	if j.options.Partitions != nil {
		j.scope = map[string]bool{}
		for _, p := range j.options.Partitions {
			j.scope[p] = true
		}
	}
	return j, nil
}

// Run is Verify, Repair or Rebuild; op is the name of one of them.
func Run(ctx context.Context, r *engine.Engine, op string, o *Options) (tally.Report, error) {
	j, err := newJob(r, op, o)
	if err != nil {
		return tally.Report{}, err
	}
	j.addAreas()
	first := phaseEntities
	if op == Rebuild {
		if err := j.refuseUnfillable(); err != nil {
			return tally.Report{}, err
		}
		j.parts = []part{j.fillable()}
		first = j.firstOfRebuild()
	}
	return j.run(ctx, first, true)
}

// compares reports whether the job is Verify or Repair.
func (j *job) compares() bool { return j.op == Verify || j.op == Repair }

// run begins a run at a phase, or resumes it, and goes through the phases. whole says that the job reads all entities in its scope.
func (j *job) run(ctx context.Context, first phase, whole bool) (report tally.Report, err error) {
	if err := j.begin(first); err != nil {
		return tally.Report{}, err
	}
	ctx, span := j.r.Table.Account().Telemetry().Begin(ctx, telemetry.Tables, j.op, j.r.Table.Name())
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	err = j.phases(pace.With(ctx, j.options.RowsPerSecond))
	for _, p := range j.pending { // no reader runs any more
		if told := j.finish(p); err == nil {
			err = told
		}
	}
	report = j.report()
	if err == nil {
		report.Resume = ""
		if whole && report.Read == 0 && j.scope == nil {
			report.Unmatched = readiness.NameUnmatched(ctx, j.r)
		}
	}
	return report, err
}

// phases goes through the phases from the position in the state.
func (j *job) phases(ctx context.Context) error {
	if j.scope != nil && len(j.scope) == 0 {
		return nil
	}
	if j.options.Resume == "" { // a run has compared the numbers before it can be resumed
		if err := j.totals(ctx); err != nil {
			return err
		}
	}
	steps := [...]func(context.Context) error{j.scanEntities, j.scanOutside, j.scanHeld, j.compareFar, j.pages}
	for j.state.Phase < phaseDone {
		if err := steps[j.state.Phase](ctx); err != nil {
			return err
		}
		if j.state.Phase == phaseDone {
			break
		}
		j.state.Phase++
		j.state.Part, j.state.Scan, j.state.Open = 0, tablescan.State{}, nil
		if j.state.Phase == phaseFar && j.op == Rebuild {
			j.leaveEmpty()
		}
		if j.state.Phase == phasePages && len(j.parts) == 0 {
			j.state.Phase = phaseDone
		}
		j.progressed()
	}
	return j.settleMarked(ctx)
}

// hand repairs findings if the job is Repair, and passes them to the caller.
func (j *job) hand(ctx context.Context, findings []*finding) error {
	var err error
	if j.op == Repair {
		err = j.repairAll(ctx, findings)
	}
	told := j.tell(findings)
	return cmp.Or(err, told)
}

// tell passes findings to the caller, and counts them.
func (j *job) tell(findings []*finding) error {
	for _, f := range findings {
		if f.Repaired && j.op == Repair {
			j.state.Report.Repaired++
		}
	}
	for _, f := range findings {
		if j.told != nil {
			break
		}
		if j.state.Report.Findings++; j.options.Found != nil {
			j.told = j.options.Found(f.Finding)
		}
	}
	return j.told
}

// progressed makes the run resumable from its current position and calls the caller's Progress. While it reads
// the list of an auditor (a pattern with Effect.List), the run remains resumable only from the position before
// that list.
func (j *job) progressed() {
	if !j.listing {
		j.checkpoint.set(&j.state)
	}
	if j.options.Progress != nil {
		var p entity.Progress
		tally.Into(j.report(), &p)
		j.options.Progress(p)
	}
}

// report returns the counts of the run, and the token of its last checkpoint.
func (j *job) report() tally.Report {
	s := &j.state
	p := s.Report
	p.Unchanged, p.Elapsed, p.Resume = max(0, p.Unchanged), time.Since(j.began), j.options.Resume
	switch {
	case j.checkpoint.Phase == phaseDone:
		p.Resume = ""
	case j.checkpoint.Version != 0:
		p.Resume = j.checkpoint.text()
	}
	p.PartitionsDone = j.partitionsDone()
	if !j.compares() {
		return p
	}
	p.Estimate = j.estimate(p.PartitionsDone)
	if left := p.Estimate - p.Rows; left > 0 && j.rowsHere > 0 {
		p.ETA = time.Duration(float64(time.Since(j.began)) * float64(left) / float64(j.rowsHere))
	}
	return p
}

// partitionsDone returns Report.PartitionsDone.
func (j *job) partitionsDone() (n int) {
	s := &j.state
	switch {
	case j.scope == nil, !j.compares() && s.Phase < phasePages:
		return 0
	case j.compares() && s.Phase == phaseEntities:
		return s.Scan.Done()
	case j.compares():
		return len(j.scope)
	}
	for i, p := range j.parts {
		switch {
		case p.partitions == nil || s.Phase == phasePages && i > s.Part:
		case s.Phase == phasePages && i == s.Part:
			n += s.Scan.Done()
		default:
			n += len(p.partitions)
		}
	}
	return n
}

// estimate returns the number of rows that the run will read: Options.Rows, or an extrapolation from the
// partitions that are done; 0 if unknown.
func (j *job) estimate(done int) int64 {
	switch {
	case j.options.Rows > 0:
		return max(j.options.Rows, j.state.Report.Rows)
	case j.far() || done == 0:
		return 0 // the number of rows in the outside tables is unknown
	}
	return j.state.Report.Rows * int64(len(j.options.Partitions)) / int64(done)
}

// locked calls write while it holds the locks with these names, so that no other goroutine of the run writes
// the same shared rows. Engine.SharedBy and engine.HeldName return the names.
func (j *job) locked(ctx context.Context, names []string, write func() error) error {
	release, err := j.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return write()
}

// fatal returns an error that ends the run, or nil if err concerns only one entity.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, kind := range []error{entity.ErrDenied, entity.ErrMissingResource, entity.ErrBeingDeleted} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return nil
}

// retryable reports whether to read and write an entity again. It returns true after a conflict with another
// writer; after a lost response, since a second write does no harm; and after the loss of a lease, for example
// because the process was suspended. It returns false if ctx has ended.
func retryable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (engine.Lost(err) || errors.Is(err, entity.ErrUnknownOutcome) || errors.Is(err, context.Canceled))
}

// each calls a function for every item, at most n concurrently, and returns the first error.
func each[I any](parent context.Context, n int, items []I, do func(context.Context, I) error) error {
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(n)
	for _, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(ctx, item)
		})
	}
	if group.Wait() != nil || parent.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// heavy reports whether an entity of a repository can take much more memory than its own row, because it has
// large values in blobs or further rows. A job limits how many such entities it holds at once; see mostHeavy.
func heavy(r *engine.Engine) bool {
	return r.Layout != nil || slices.ContainsFunc(r.Transformers, func(p *driver.Implementation) bool { return p.Transform.Stage == driver.StageSpill })
}

// mostHeavy is the maximum number of heavy entities that a reader, or a set, holds at once.
const mostHeavy = 50
