package patterns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/jobs"
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
	Progress func(tables.Progress)
	// Resume continues an earlier run: it is Report.Resume of that run's last report. Found gets the findings
	// after that position again. A job with other Partitions or Patterns, or on another table, returns
	// ErrInvalid.
	Resume string

	runFacts, openFacts int64 // jobs.Options.RunFacts and OpenFacts, for tests
	pageSize            int   // jobs.Options.PageSize, for tests
}

// options returns the options of a job; nil for nil.
func (o *JobOptions) options() *jobs.Options {
	if o == nil {
		return nil
	}
	return &jobs.Options{Partitions: o.Partitions, Patterns: o.Patterns, Concurrency: o.Concurrency, RowsPerSecond: o.RowsPerSecond, Lag: o.Lag, Rows: o.Rows,
		DryRun: o.DryRun, Found: o.Found, Progress: o.Progress, Resume: o.Resume, RunFacts: o.runFacts, OpenFacts: o.openFacts, PageSize: o.pageSize}
}

// The names of package entity that the jobs use.
type (
	// Finding is one difference between what is stored and what the entities require, or one entity that a job could not process.
	Finding = entity.Finding
	// FindingKind says how a stored row or fact differs from what the entities require.
	FindingKind = entity.FindingKind
)

// The kinds of finding.
const (
	Missing     = entity.Missing
	Spurious    = entity.Spurious
	Different   = entity.Different
	Undecodable = entity.Undecodable
)

// run runs Verify, Repair or Rebuild.
func run[R any](ctx context.Context, r *engine.Engine, op string, o *JobOptions) (R, error) {
	return tally.Of[R](jobs.Run(ctx, r, op, o.options()))
}

// removeUnattached runs RemoveUnattached.
func removeUnattached(ctx context.Context, r *engine.Engine, unattached []attachment, o *JobOptions) (RemoveReport, error) {
	if r == nil {
		return RemoveReport{}, engine.ErrNil(jobs.Remove)
	}
	patterns, err := unattachedIn(r, unattached)
	if err != nil {
		return RemoveReport{}, errs.Wiringf(jobs.Remove, r.Table.Name(), "%w", err)
	}
	return tally.Of[RemoveReport](jobs.RemoveUnattached(ctx, r, patterns, o.options()))
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
func Rewrite(ctx context.Context, of driver.Host, job *RewriteJob, options *JobOptions) (RewriteReport, error) {
	own, ok := of.(host)
	if !ok {
		return RewriteReport{}, errs.Wiringf(job.Op, "", "the host is a %T; give the one of a Repository", of)
	}
	rewriting := &jobs.Rewriting{Op: job.Op, Kind: job.Kind, Pattern: job.Pattern, Where: job.Where, CountsAll: job.CountsAll,
		Outdated: func(row *tablerow.Row, whole bool) (outdated, known bool) {
			return job.Outdated(row.Key, row.Properties, whole)
		}}
	return tally.Of[RewriteReport](rewriting.Run(ctx, own.engine, options.options()))
}

// unattachedIn returns the patterns whose rows RemoveUnattached removes.
func unattachedIn(r *engine.Engine, patterns []attachment) ([]*driver.Implementation, error) {
	var all []*driver.Implementation
	for i := range patterns {
		p, err := patterns[i].implementation(r, i)
		if err != nil {
			return nil, err
		}
		if err := jobs.RefuseUnattached(r, p, all); err != nil {
			return nil, fmt.Errorf("pattern %s: %w", patterns[i].name(p.Name, i), err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errors.New("no pattern is given; give those whose rows are to be removed, as they were declared")
	}
	return all, nil
}
