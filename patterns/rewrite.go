package patterns

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/rewriting"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RewriteJob is a job that rewrites entities that are stored in an old form, such as encryption.Reencrypt.
type RewriteJob struct {
	Op      string
	Pattern string            // name of the pattern that the job is for, for findings
	Kind    driver.ChangeKind // ChangeReplace, or ChangeTouch if the entities do not change
	// Where are conditions that every entity in the old form meets, nil for none.
	Where []tables.Condition
	// Outdated reports whether an entity is stored in the old form, judging by its stored properties. If whole is false, some of them
	// are in further rows, and Outdated may return that it does not know.
	Outdated func(entity tables.Key, stored tables.Properties, whole bool) (outdated, known bool)
	// CountsAll makes Report.Read count all entities, and Report.Unchanged those in the current form. Without it, Report.Read
	// counts those in the old form.
	CountsAll bool
}

// RewriteAll writes again those entities of a repository that are stored in an old form. It is for packages
// of this module. It reads entities by page, with JobOptions.Concurrency readers, and writes those of a
// partition in change sets, each entity under its own ETag. If the service refuses a set because of one
// entity, that entity is left out and written alone, so that it delays only itself. JobOptions.Found gets the
// entities that cannot be read or written. Requests: 1 for each page of at most 1,000 rows, those of 1 change
// set for each 100 rows of entities in the old form (50 with patterns that add rows or entities), and for
// each entity that is written alone the requests of its write, plus 1 if the entity is read again.
func RewriteAll[T any](ctx context.Context, _ rows.Pass, of driver.Host[T], job *RewriteJob, options *JobOptions) (tables.Report, error) {
	own, ok := of.(host[T])
	if !ok {
		return tables.Report{}, tables.Wiringf(job.Op, "", "the host is a %T; give the one of a Repository", of)
	}
	r := own.engine
	o, err := options.checked(job.Op, r.Patterns)
	if err != nil {
		return tables.Report{}, tables.Wiringf(job.Op, r.Table.Name(), "%w", err)
	}
	run := &rewriting.Rewriting{Kind: job.Kind, Pattern: job.Pattern, CountsAll: job.CountsAll, Concurrency: o.Concurrency,
		Outdated: func(row *engine.StoredRow, whole bool) (outdated, known bool) {
			return job.Outdated(row.Key, row.Properties, whole)
		}}
	pages := o.pages(job.Op, r)
	pages.CountRead, pages.Options = job.CountsAll, fmt.Sprintf("%q", o.Partitions)
	pages.Parts = []pagejob.Part{{Table: r.Table, Partitions: o.Partitions, Span: r.Primary.Span, Where: slices.Concat(r.Primary.Where, job.Where),
		Keep: r.Owns}}
	pages.Page = func(ctx context.Context, _ int, page []*engine.StoredRow) error { return run.Process(ctx, pages, page) }
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
