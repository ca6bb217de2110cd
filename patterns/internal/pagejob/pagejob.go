// Package pagejob runs a long job on the rows of tables page by page, so that it can be interrupted and resumed. Several readers read pages
// ahead of the job, which processes them one by one.
package pagejob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// Part is one of the scans that a job runs one after another.
type Part struct {
	Table      *core.Table
	Partitions []string // sorted; nil for the whole table
	Span       compoundkey.Span
	Where      []entity.Condition // at most 10 comparisons
	Keep       func(*tablerow.Row) bool
}

// Problem is an entity, or a row, that a job gives to JobOptions.Found.
type Problem struct {
	Undecodable bool // the entity or row cannot be read
	Pattern     string
	Table       string
	Location    string // location of a row; "" for a whole entity
	Entity      entity.Key
	Err         error
	Removed     bool // the job has removed the row
	Spurious    bool // no entity requires the row
}

// Job is one run.
type Job struct {
	Op      string
	Engine  *engine.Engine
	Options string // fingerprint of the options; a run with another fingerprint cannot resume this run
	Parts   []Part
	Page    func(ctx context.Context, part int, page []*tablerow.Row) error // processes the rows of one page

	CountRead     bool // the report counts the rows of a page as read when the page is done
	Readers       int
	Resume        string
	RowsPerSecond int
	Found         func(Problem) error // the caller's function, may be nil
	Progress      func(entity.Report)

	mu       sync.Mutex
	report   entity.Report
	problems []Problem // of the current page
	began    time.Time
}

// position is the position in a run, as Report.Resume encodes it.
type position struct {
	Version int
	Run     string
	Part    int
	Scan    tablescan.State
}

const version = 2

// content has the rows of a page that the job processes.
type content struct{ rows []*tablerow.Row }

// scan reads the rows of a part, with all their properties.
func (p *Part) scan(readers int) tablescan.Scan[*content] {
	return tablescan.Scan[*content]{Table: p.Table, Ranges: tablescan.Partitions(p.Partitions), Span: p.Span, Where: p.Where, Readers: readers,
		New: func() *content { return &content{} },
		Row: func(_ context.Context, page *content, row *tablerow.Row) error {
			if !p.Keep(row) {
				return nil
			}
			page.rows = append(page.rows, row.Clone())
			return nil
		},
	}
}

// Run reads the parts and calls Page for each page of rows. Report.Resume is the position after the last page
// that was processed.
func (j *Job) Run(ctx context.Context) (entity.Report, error) {
	j.began = time.Now()
	at := position{Version: version, Run: continuation.Hash("%s %s %q", j.Op, j.Options, j.Engine.Table.Name())}
	if j.Resume != "" {
		if err := at.parse(j.Op, j.Resume, j.Parts); err != nil {
			return entity.Report{}, j.Engine.Invalid(j.Op, entity.Key{}, err)
		}
	}
	j.report.Resume = j.Resume
	j.count(&at)
	ctx, span := j.Engine.Table.Account().Telemetry().Begin(ctx, telemetry.Tables, j.Op, j.Engine.Table.Name())
	err := telemetry.ErrPanicked // until the callbacks have returned
	defer func() { span.End(err) }()
	err = j.run(pace.With(ctx, j.RowsPerSecond), &at)
	j.report.Elapsed = time.Since(j.began)
	return j.report, err
}

func (p *position) parse(op, token string, parts []Part) error {
	var c position
	switch {
	case continuation.Decode(token, &c) != nil:
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier %s", len(token), op)
	case c.Version != version:
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", c.Version, version)
	case c.Run != p.Run:
		return errors.New("JobOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	case c.Part < 0 || c.Part >= len(parts) || !c.Scan.Valid(tablescan.Partitions(parts[c.Part].Partitions)):
		return errors.New("JobOptions.Resume is damaged: it has no position; begin again without it")
	}
	*p = c
	return nil
}

// next moves the position to the beginning of the next part.
func (p *position) next() { p.Part, p.Scan = p.Part+1, tablescan.State{} }

func (j *Job) run(ctx context.Context, at *position) error {
	for ; at.Part < len(j.Parts); at.next() {
		for page, err := range j.Parts[at.Part].scan(j.Readers).Pages(ctx, at.Scan) {
			if err == nil {
				err = j.Page(ctx, at.Part, page.Content.rows)
			}
			if told := j.tell(); err == nil {
				err = told
			}
			if err != nil {
				return err
			}
			if j.CountRead {
				j.report.Read += int64(len(page.Content.rows))
			}
			at.Scan = page.Rest
			j.checkpoint(*at)
			if j.Progress != nil {
				j.Progress(j.report)
			}
		}
	}
	return nil
}

// checkpoint sets Report.Resume to the token of a position.
func (j *Job) checkpoint(at position) {
	if at.Scan.Over(len(tablescan.Partitions(j.Parts[at.Part].Partitions))) {
		at.next()
	}
	j.count(&at)
	j.report.Resume, j.report.Elapsed = "", time.Since(j.began)
	if at.Part < len(j.Parts) {
		j.report.Resume = continuation.Encode(&at)
	}
}

// count sets Report.PartitionsDone.
func (j *Job) count(at *position) {
	j.report.PartitionsDone = 0
	for i, p := range j.Parts {
		switch {
		case p.Partitions == nil || i > at.Part:
		case i == at.Part:
			j.report.PartitionsDone += at.Scan.Done()
		default:
			j.report.PartitionsDone += len(p.Partitions)
		}
	}
}

// tell passes the problems of the current page to the caller's Found.
func (j *Job) tell() error {
	problems := j.problems
	j.problems = nil
	for _, p := range problems {
		if j.report.Findings++; j.Found == nil {
			continue
		}
		if err := j.Found(p); err != nil {
			return err
		}
	}
	return nil
}

// Add calls count to change the counts of the run's report.
func (j *Job) Add(count func(*entity.Report)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	count(&j.report)
}

// Report records a problem of the current page.
func (j *Job) Report(p Problem) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problems = append(j.problems, p)
}

// Retryable reports whether to read and write an entity again. It returns true after a conflict with another
// writer; after a lost response, since a second write does no harm; and after the loss of a lease, for example
// because the process was suspended. It returns false if ctx has ended.
func Retryable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (engine.Lost(err) || errors.Is(err, entity.ErrUnknownOutcome) || errors.Is(err, context.Canceled))
}

// Each calls a function for every item, at most n concurrently, and returns the first error.
func Each[I any](parent context.Context, n int, items []I, do func(context.Context, I) error) error {
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

// Partitions sorts partition keys and removes duplicates; nil stays nil.
func Partitions(partitions []string) ([]string, error) {
	if partitions == nil {
		return nil, nil
	}
	for _, p := range partitions {
		if err := rows.CheckKey("partition key", p); err != nil {
			return nil, err
		}
	}
	sorted := slices.Sorted(slices.Values(partitions))
	return append([]string{}, slices.Compact(sorted)...), nil
}

// Patterns sorts the names of attached patterns; nil stays nil.
func Patterns(names []string, attached []*driver.Implementation) ([]string, error) {
	if names == nil {
		return nil, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(attached, func(p *driver.Implementation) bool { return p.Name == name }) {
			return nil, fmt.Errorf("JobOptions.Patterns names %q, but no attached pattern has this name; give the names of attached patterns", name)
		}
	}
	return append([]string{}, slices.Sorted(slices.Values(names))...), nil
}

// Heavy reports whether an entity of a repository can take much more memory than its own row, because it has
// large values in blobs or further rows. A job limits how many such entities it holds at once; see MostHeavy.
func Heavy(r *engine.Engine) bool {
	return r.Layout != nil || slices.ContainsFunc(r.Transformers, func(p *driver.Implementation) bool { return p.Transform.Stage == driver.StageSpill })
}

// MostHeavy is the maximum number of heavy entities that a reader, or a set, holds at once.
const MostHeavy = 50
