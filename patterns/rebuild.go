package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RebuildOptions are the options of Rebuild; nil is the same as the zero value.
type RebuildOptions struct {
	// Patterns are the names of the attached patterns to fill; nil is all that store copies of entities or facts about
	// them.
	Patterns []string
	// Partitions are the partitions of the entities to process; nil is the whole table.
	Partitions []string
	// Concurrency is the maximum number of entities processed at once (default 8).
	Concurrency int
	// Progress is called after each page of entities.
	Progress func(RebuildReport)
	// Resume continues an earlier run: give the text of its RebuildReport.Resume. The token is ErrInvalid with other
	// options or another table.
	Resume string
}

// maxProblems limits the entities listed in RebuildReport.Problems.
const maxProblems = 1000

// RebuildReport counts what a run has done, including the earlier runs that it resumes.
type RebuildReport struct {
	Entities  int64 // entities read
	Written   int64 // entities rewritten, or whose outside copies were reconciled under an intent
	Skipped   int64 // entities that needed no change
	Conflicts int64 // attempts that ended in a conflict, a lost response or a lost lease; the entity was read again
	Failed    int64 // entities that could not be filled, for the reasons in Problems
	// Problems lists the first 1,000 failed entities of this run: keys that another entity owns (Missing, with
	// ErrDuplicate), entities that other writers changed, or whose lease was lost, at each of Schema.MaxAttempts
	// attempts (Missing), something that a pattern does not find, such as a parent (Missing, with ErrMissingReference), and
	// entities that cannot be read or that an index refuses (Undecodable).
	Problems []Discrepancy
	Elapsed  time.Duration // duration of this run

	// Resume continues the run when given as RebuildOptions.Resume. It is "" when the run is complete, and after an error
	// before any work was done.
	Resume string `json:"-"`
}

// rebuildAll is Repository.Rebuild.
func rebuildAll(ctx context.Context, r *engine.Engine, o *RebuildOptions) (RebuildReport, error) {
	if o == nil {
		o = &RebuildOptions{}
	}
	b, err := newRebuild(r, o)
	if err != nil {
		return RebuildReport{}, err
	}
	err = b.run(ctx)
	b.state.Report.Elapsed = time.Since(b.began)
	return b.state.Report, err
}

// rebuild is one run of Rebuild.
type rebuild struct {
	*verifier   // reads entities and compares copies
	concurrency int
	progress    func(RebuildReport)
	began       time.Time
	always      bool // a pattern that cannot report what it stores is always filled

	mu    sync.Mutex
	state rebuildState
}

// rebuildState is the position of a run, as its token stores it.
type rebuildState struct {
	Version int
	Run     string
	Part    int
	Page    string
	Report  RebuildReport
}

const rebuildVersion = 1

// rebuilt is an entity that the run is processing.
type rebuilt struct {
	value any
	row   *engine.StoredRow // with every property as stored
}

func newRebuild(r *engine.Engine, o *RebuildOptions) (*rebuild, error) {
	const op = "Rebuild"
	v, err := newVerifier(r, op, &VerifyOptions{Patterns: o.Patterns, Partitions: o.Partitions, Concurrency: o.Concurrency})
	if err != nil {
		return nil, err
	}
	v.aim(true, nil, nil)
	b := &rebuild{verifier: v, concurrency: v.options.Concurrency, progress: o.Progress, began: time.Now()}
	for _, p := range r.Patterns {
		switch named := slices.Contains(o.Patterns, p.Name); {
		case !v.chosen(p.Name) || p.Audit != nil:
		case p.Rows != nil || p.Companions != nil:
			b.always = true
		case named && p.Copies == nil && p.Outside == nil:
			return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("pattern %q stores no copies or facts to fill; remove it from RebuildOptions.Patterns", p.Name))
		}
	}
	b.state = rebuildState{Version: rebuildVersion, Run: continuation.Hash("rebuild %s", v.fingerprint())}
	if o.Resume != "" {
		if err := b.state.parse(o.Resume, b.state.Run); err != nil {
			return nil, r.Invalid(op, tables.Key{}, err)
		}
	}
	return b, nil
}

func (s *rebuildState) text() string {
	c := *s
	c.Report.Problems = nil
	return continuation.Encode(&c)
}

func (s *rebuildState) parse(token, run string) error {
	var c rebuildState
	switch {
	case continuation.Decode(token, &c) != nil:
		return fmt.Errorf("RebuildOptions.Resume, of %d characters, is not a token of an earlier RebuildReport", len(token))
	case c.Version != rebuildVersion:
		return fmt.Errorf("RebuildOptions.Resume has version %d, and this build reads version %d; begin again without it", c.Version, rebuildVersion)
	case c.Run != run:
		return errors.New("RebuildOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	case c.Part < 0:
		return errNowhere
	}
	*s = c
	s.Report.Resume = token
	return nil
}

// run processes the entities page by page.
func (b *rebuild) run(ctx context.Context) error {
	for b.state.Part < b.parts() {
		page, err := b.query(b.state.Part).Page(ctx, b.state.Page)
		if err != nil {
			return err
		}
		b.noteFailures()
		if err := each(ctx, b.concurrency, page.Items, b.fill); err != nil {
			return err
		}
		if b.state.Page = page.Next; page.Next == "" {
			b.state.Part++
		}
		b.state.Report.Resume = ""
		if b.state.Part < b.parts() {
			b.state.Report.Resume = b.state.text()
		}
		if b.progress != nil {
			report := b.state.Report
			report.Problems, report.Elapsed = slices.Clone(report.Problems), time.Since(b.began)
			b.progress(report)
		}
	}
	return nil
}

// query reads the entities of one partition, or of all.
func (b *rebuild) query(part int) tables.Query[rebuilt] {
	src := engine.Raw(b.r.Table).Source(b.r.Primary.Span)
	src.Load = engine.Loads(func(ctx context.Context, row *engine.StoredRow, _ []string) (any, error) {
		if row.IsCopy || !b.mine(row.Key) {
			return nil, nil
		}
		e, err := b.decode(ctx, row)
		if err != nil || e.foreign || e.gone() {
			return nil, err
		}
		b.state.Report.Entities++
		if !e.known() {
			b.fail(Discrepancy{Kind: Undecodable, Table: b.r.Table.Name(), Entity: e.key, Err: cmp.Or(e.bad, e.busy)})
			return nil, nil
		}
		return &rebuilt{e.value, e.row.With(slices.Clone(e.stored))}, nil
	})
	q := tables.QueryOf[rebuilt](pass, src)
	if b.scope != nil {
		return q.Partition(b.options.Partitions[part])
	}
	return q.AllowTableScan()
}

// noteFailures moves the entities that the page could not read to the report.
func (b *rebuild) noteFailures() {
	for _, f := range b.failures {
		b.problem(f.Discrepancy)
	}
	b.failures = nil
}

func (b *rebuild) problem(d Discrepancy) {
	b.add(func(r *RebuildReport) {
		r.Failed++
		if len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, d)
		}
	})
}

func (b *rebuild) add(count func(*RebuildReport)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count(&b.state.Report)
}

// fill writes what the patterns lack of one entity.
func (b *rebuild) fill(ctx context.Context, x *rebuilt) error {
	for attempt := 0; ; attempt++ {
		err := b.fillAlone(ctx, x)
		if !retryable(ctx, err) || attempt+1 >= b.r.Schema.MaxAttempts {
			return b.failed(ctx, x, err)
		}
		b.add(func(r *RebuildReport) { r.Conflicts++ })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
		value, row, err := b.r.ReadOwn(ctx, b.op, x.row.Key)
		if err != nil || value == nil {
			return b.failed(ctx, x, err)
		}
		x = &rebuilt{value, row}
	}
}

// fillAlone runs fillOnce while no other worker of the run writes a row that the entity shares with others.
func (b *rebuild) fillAlone(ctx context.Context, x *rebuilt) error {
	release, err := b.locks.Acquire(ctx, b.r.SharedBy(x.row.Key, x.value))
	if err != nil {
		return err
	}
	defer release()
	return b.fillOnce(ctx, x)
}

// retryable reports whether to read and fill the entity once more. Rewriting is idempotent, so it retries after a
// lost response, and after a lease that was lost while the process was suspended.
func retryable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (conflicts(err) || errors.Is(err, tables.ErrUnknownOutcome) || errors.Is(err, context.Canceled))
}

// conflicts reports whether a write was definitely refused because another writer changed the entity or a row that
// patterns share among entities.
func conflicts(err error) bool {
	e := engine.AsError(err)
	return tables.LostRace(err) || e != nil && errors.Is(e.Kind, tables.ErrConflict) && !errors.Is(err, tables.ErrUnknownOutcome)
}

// failed records why an entity could not be filled, unless the error concerns the whole run.
func (b *rebuild) failed(ctx context.Context, x *rebuilt, err error) error {
	if err == nil {
		return nil
	}
	kind := Undecodable
	e := engine.AsError(err)
	switch {
	case errors.Is(err, tables.ErrDuplicate), errors.Is(err, tables.ErrMissingReference), conflicts(err), e != nil && ctx.Err() == nil && errors.Is(err, context.Canceled), e != nil && e.Pattern != "" && errors.Is(e.Kind, tables.ErrNotFound):
		kind = Missing
	case e == nil || ctx.Err() != nil || !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) && !errors.Is(err, tables.ErrGarbled):
		return err
	}
	b.problem(Discrepancy{Kind: kind, Pattern: e.Pattern, Table: b.r.Table.Name(), Entity: x.row.Key, Err: err})
	return nil
}
