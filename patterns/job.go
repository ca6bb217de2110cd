package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/removing"
	"github.com/tablepatterns/tablepatterns/patterns/internal/rewriting"
	"github.com/tablepatterns/tablepatterns/tables"
)

// JobOptions are the options of every long job on the entities of a repository: Verify, Repair, Rebuild,
// RemoveUnattached, encryption.Reencrypt and heterogeneous.Type.Upgrade; nil is the same as the zero value. A
// job returns ErrWiring if a field that the job does not use is set.
type JobOptions struct {
	// Partitions are the partitions of the entities to process; nil is the whole table. No option to allow a table scan
	// is needed.
	Partitions []string
	// Patterns are the names of the attached patterns to process; nil is all of them. Rebuild fills only
	// patterns that store copies of entities or facts about them. Reencrypt, Upgrade and RemoveUnattached do
	// not use it.
	Patterns []string
	// Concurrency is the maximum number of candidates that Verify and Repair check, or entities and change sets
	// that the other jobs process, at once (default 8). It is also the number of readers with which the jobs
	// scan a table: each reader scans some ranges of its keys, as in Query.AllParallel. On Azure Cosmos DB
	// there is one reader.
	Concurrency int
	// RowsPerSecond is the average number of table rows that the job may read and write in a second (default 0:
	// no limit). Set it to leave throughput of the tables to other programs. The job never waits within a
	// change: a change that exceeds the limit delays the next one.
	RowsPerSecond int
	// Lag is how long a difference in what a pattern with OutsideKeys stores outside of the entity's partition must persist before it is
	// reported (default 5 s), so that an intent that waits for a worker is not reported earlier. Copies of indexes over
	// partitions need no Lag. Only Verify and Repair use it.
	Lag time.Duration
	// Rows is the expected number of rows that the scans read, such as Report.Rows of an earlier run; 0 if
	// unknown. Report.Estimate and Report.ETA are computed from it. Only Verify and Repair use it.
	Rows int64
	// DryRun makes Repair find what it would repair, and RemoveUnattached what it would remove, without writing
	// anything. Other jobs do not use it.
	DryRun bool
	// The job calls Found with each finding, one call at a time, and waits until it returns. If Found returns
	// an error, the job ends and returns that error with the report. A run that resumes with Report.Resume
	// continues from there; Found may get the last findings once more.
	Found func(Finding) error
	// Verify and Repair call Progress after each request of a scan and after each group of candidates, and so does Rebuild while it
	// compares copies in other partitions; the other jobs, and Rebuild then, after each page of rows. There is one call at a time. The job waits until it returns, but the
	// readers continue until their pages are full.
	Progress func(tables.Report)
	// Resume continues an earlier run: it is Report.Resume of that run's last report. Found gets the findings
	// after that position again. A job with other Partitions or Patterns, or on another table, returns
	// ErrInvalid.
	Resume string

	runFacts, openFacts int64 // overrides of the constants of the same names, for tests
	pageSize            int   // of scans, 0 for the service's maximum, for tests
}

// FindingKind says how a stored row or fact differs from what the entities require.
type FindingKind uint8

// The kinds of finding.
const (
	// Missing: an entity requires a row or fact that is absent, or that belongs to another entity.
	Missing FindingKind = iota
	// Spurious: a row or fact is stored that no entity requires.
	Spurious
	// Different: a row or fact is stored with other content than its entity requires.
	Different
	// Undecodable: an entity, or what a pattern stores, cannot be read, so the correct state is unknown.
	Undecodable
)

// String returns the kind's name.
func (k FindingKind) String() string {
	return [...]string{"missing", "spurious", "different", "undecodable"}[k]
}

// Finding is one difference between what is stored and what the entities require, or one entity that a job could not
// process. Err says why.
type Finding struct {
	Kind     FindingKind
	Pattern  string     // "" for the entity's own rows, and if unknown
	Table    string     // table of the row; "" if only the pattern knows, as for lists and blobs
	Location string     // a row key in the entity's partition; or a partition key, a tab and a row key; or the pattern's own notation; "" for a whole entity
	Entity   tables.Key // the entity that requires the row or fact, or to which it says that it belongs
	Err      error      // details, or nil

	// Repaired reports that Repair has repaired the finding, or that RemoveUnattached has removed the row.
	Repaired bool
	// NotRepaired is why Repair has not repaired the finding: for example ErrDuplicate if two entities require
	// one key, ErrConflict if concurrent writers changed the rows at every attempt, or the decoding error of a
	// row that cannot be decoded. It is nil in a dry run and in other jobs.
	NotRepaired error
}

// String formats the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", f.Kind)
	if f.Pattern != "" {
		fmt.Fprintf(&b, "%s ", f.Pattern)
	}
	if f.Location != "" {
		fmt.Fprintf(&b, "%q ", f.Location)
	}
	if f.Table != "" {
		fmt.Fprintf(&b, "in %s ", f.Table)
	}
	fmt.Fprintf(&b, "of (%q, %q)", f.Entity.Partition, f.Entity.Row)
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	switch {
	case f.Repaired:
		b.WriteString("; repaired")
	case f.NotRepaired != nil:
		fmt.Fprintf(&b, "; not repaired: %v", f.NotRepaired)
	}
	return b.String()
}

const (
	// The names of the jobs in errors.
	opVerify  = "Verify"
	opRepair  = "Repair"
	opRebuild = "Rebuild"
	opRemove  = "RemoveUnattached"

	defaultConcurrency = 8               // of JobOptions.Concurrency
	defaultLag         = 5 * time.Second // of JobOptions.Lag

	// fewestTogether is the least number of findings that Repair repairs together. Fewer findings are repaired
	// one by one, which costs little more.
	fewestTogether = 4
)

// unused returns an error if a field is set that the job op does not use.
func (o *JobOptions) unused(op string) error {
	switch verifies, repairs := op == opVerify || op == opRepair, op == opRepair || op == opRemove; {
	case o == nil:
	case o.Patterns != nil && !verifies && op != opRebuild:
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

// checked returns the options of a job with defaults set, and rejects invalid ones.
func (o *JobOptions) checked(op string, attached []*driver.Implementation) (JobOptions, error) {
	c := JobOptions{}
	if err := o.unused(op); err != nil {
		return c, err
	}
	if o != nil {
		c = *o
	}
	if err := pace.Check("JobOptions", c.RowsPerSecond); err != nil {
		return c, err
	}
	c.Lag = cmp.Or(c.Lag, defaultLag)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Lag < 0 || c.Concurrency < 0 || c.Rows < 0 {
		return c, fmt.Errorf("JobOptions.Lag is %v, Concurrency %d and Rows %d; none may be negative", c.Lag, c.Concurrency, c.Rows)
	}
	c.runFacts, c.openFacts = cmp.Or(c.runFacts, runFacts), cmp.Or(c.openFacts, openFacts)
	var err error
	if c.Partitions, err = pagejob.Partitions(c.Partitions); err != nil {
		return c, err
	}
	c.Patterns, err = pagejob.Patterns(c.Patterns, attached)
	return c, err
}

// RewriteJob is a job that rewrites entities that are stored in an old form, such as encryption.Reencrypt.
type RewriteJob struct {
	Op      string
	Pattern string            // name of the pattern that the job is for, for findings
	Kind    driver.ChangeKind // ChangeReplace, or ChangeTouch if the entities do not change
	// Where are conditions that every entity in the old form meets, nil for none.
	Where []tables.Condition
	// Outdated reports whether an entity is stored in the old form, judging by its stored properties. If whole
	// is false, stored lacks those in further rows, and Outdated may return false as known.
	Outdated func(entity tables.Key, stored tables.Properties, whole bool) (outdated, known bool)
	// CountsAll makes Report.Read count all entities, and Report.Unchanged those in the current form. Without it, Report.Read
	// counts those in the old form.
	CountsAll bool
}

// Rewrite writes again those entities of a repository that are stored in an old form. It is for authors of patterns. JobOptions.Concurrency readers read the entities page by page. The old entities of a partition
// are written in change sets, each entity under its own ETag. If the service refuses a set because of one
// entity, that entity is left out and written alone, so that it delays only itself. JobOptions.Found gets the
// entities that cannot be read or written. Requests: 1 for each page of at most 1,000 rows, those of 1 change
// set for each 100 rows of entities in the old form (50 with patterns that add rows or entities), and for each
// entity that is written alone the requests of its write, plus 1 if the entity is read again.
func Rewrite(ctx context.Context, of driver.Host, job *RewriteJob, options *JobOptions) (tables.Report, error) {
	own, ok := of.(host)
	if !ok {
		return tables.Report{}, errs.Wiringf(job.Op, "", "the host is a %T; give the one of a Repository", of)
	}
	r := own.engine
	o, err := options.checked(job.Op, r.Patterns)
	if err != nil {
		return tables.Report{}, errs.Wiringf(job.Op, r.Table.Name(), "%w", err)
	}
	run := &rewriting.Rewriting{Kind: job.Kind, Pattern: job.Pattern, CountsAll: job.CountsAll, Concurrency: o.Concurrency,
		Outdated: func(row *tablerow.Row, whole bool) (outdated, known bool) {
			return job.Outdated(row.Key, row.Properties, whole)
		}}
	pages := o.pages(job.Op, r)
	pages.CountRead, pages.Options = job.CountsAll, fmt.Sprintf("%q", o.Partitions)
	pages.Parts = []pagejob.Part{{Table: r.Table, Partitions: o.Partitions, Span: r.Primary.Span, Where: slices.Concat(r.Primary.Where, job.Where),
		Keep: r.Owns}}
	pages.Page = func(ctx context.Context, _ int, page []*tablerow.Row) error { return run.Process(ctx, pages, page) }
	return pages.Run(ctx)
}

// pages returns a job that reads pages of rows, with these options.
func (o *JobOptions) pages(op string, r *engine.Engine) *pagejob.Job {
	job := &pagejob.Job{Op: op, Engine: r, Resume: o.Resume, Readers: o.Concurrency, RowsPerSecond: o.RowsPerSecond, Progress: o.Progress}
	if o.Found != nil {
		job.Found = func(p pagejob.Problem) error { return o.Found(findingOf(p)) }
	}
	return job
}

// findingOf converts a problem of a job into the Finding that the caller gets.
func findingOf(p pagejob.Problem) Finding {
	f := Finding{Kind: Different, Pattern: p.Pattern, Table: p.Table, Location: p.Location, Entity: p.Entity, Err: p.Err, Repaired: p.Removed}
	switch {
	case p.Undecodable:
		f.Kind = Undecodable
	case p.Spurious:
		f.Kind = Spurious
	}
	return f
}

// unattachedIn returns the patterns whose rows RemoveUnattached removes.
func unattachedIn(r *engine.Engine, patterns []attachment) ([]*driver.Implementation, error) {
	var all []*driver.Implementation
	for i := range patterns {
		p, err := patterns[i].implementation(r, i)
		if err != nil {
			return nil, err
		}
		if err := removing.Refuse(r, p, all); err != nil {
			return nil, fmt.Errorf("pattern %s: %w", patterns[i].name(p.Name, i), err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errors.New("no pattern is given; give those whose rows are to be removed, as they were declared")
	}
	return all, nil
}

// removeUnattached implements Repository.RemoveUnattached.
func removeUnattached(ctx context.Context, r *engine.Engine, patterns []*driver.Implementation, options *JobOptions) (tables.Report, error) {
	o, err := options.checked(opRemove, r.Patterns)
	if err != nil {
		return tables.Report{}, errs.Wiringf(opRemove, r.Table.Name(), "%w", err)
	}
	run := &removing.Removal{Engine: r, Patterns: patterns, Partitions: o.Partitions, Concurrency: o.Concurrency, DryRun: o.DryRun}
	pages := o.pages(opRemove, r)
	pages.Options = fmt.Sprintf("%q", o.Partitions)
	for _, p := range patterns {
		pages.Options += fmt.Sprintf(" %q", p.Name)
	}
	pages.Parts = []pagejob.Part{{Table: r.Table, Partitions: o.Partitions, Span: compoundkey.All(), Keep: run.Keep(r.Table, false)}}
	elsewhere := run.Tables()
	if run.Elsewhere() {
		elsewhere = append(elsewhere, r.Table)
	}
	for _, table := range elsewhere {
		pages.Parts = append(pages.Parts, pagejob.Part{Table: table, Span: compoundkey.All(), Keep: run.Keep(table, table.Same(r.Table))})
	}
	pages.Page = func(ctx context.Context, part int, page []*tablerow.Row) error {
		return run.Process(ctx, pages, pages.Parts[part].Table, page)
	}
	return pages.Run(ctx)
}
