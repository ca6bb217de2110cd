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
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rebuildAll implements Repository.Rebuild.
func rebuildAll(ctx context.Context, r *engine.Engine, o *JobOptions) (tables.Report, error) {
	b, err := newRebuild(r, o)
	if err != nil {
		return tables.Report{}, err
	}
	ctx, span := (*core.Account)(r.Table.Account()).Telemetry().Begin(ctx, telemetry.Tables, opRebuild, r.Table.Name())
	err = telemetry.ErrPanicked // until the callbacks have returned
	defer func() { span.End(err) }()
	err = b.run(pace.With(ctx, b.options.RowsPerSecond))
	report := b.report()
	if err == nil && report.Read == 0 && b.scope == nil {
		report.Unmatched = readiness.NameUnmatched(ctx, r)
	}
	return report, err
}

// rebuild is one run of Rebuild.
type rebuild struct {
	*verifier               // reads entities and compares copies
	always    bool          // write every entity, since a pattern of the run cannot report what it stores
	slots     chan struct{} // one element for each entity or set that is being written

	state  rebuildState
	resume string // the token of the last checkpoint

	mu      sync.Mutex
	pending []*rebuildPage // pages that have begun and do not yet count in state
}

// rebuildState is the position of a run, as its token stores it.
type rebuildState struct {
	Version  int
	Run      string
	Copies   string   // the position of the comparison of copies in other partitions
	Empty    []string // the patterns most of whose copies are missing
	Compared bool     // the comparison is over
	Scan     tablescan.State
	Report   rebuildCounts
}

// rebuildCounts are the counts of a run, as its token stores them.
type rebuildCounts struct{ Entities, Written, Skipped, Conflicts, Failed, Findings int64 }

// add adds the counts of a page.
func (c *rebuildCounts) add(page *rebuildCounts) {
	c.Entities += page.Entities
	c.Written += page.Written
	c.Skipped += page.Skipped
	c.Conflicts += page.Conflicts
	c.Failed += page.Failed
}

// rebuildPage is a page of entities with the results of the run for them.
type rebuildPage struct {
	*rebuild
	items  []*rebuilt
	counts rebuildCounts
	failed []*finding
}

// rebuilt is an entity that the run is processing.
type rebuilt struct {
	value any
	row   *tablerow.Row // with every property as stored
}

func newRebuild(r *engine.Engine, o *JobOptions) (*rebuild, error) {
	const op = opRebuild
	v, err := newVerifier(r, op, o)
	if err != nil {
		return nil, err
	}
	b := &rebuild{verifier: v, slots: make(chan struct{}, v.options.Concurrency)}
	for _, p := range r.Patterns {
		switch named := slices.Contains(v.options.Patterns, p.Name); {
		case !v.chosen(p.Name) || p.Effect.List != nil:
		case p.Rows != nil || p.Companions != nil:
			b.always = true
		case named && p.Copies == nil && p.Outside == nil:
			return nil, errs.Wiringf(op, r.Table.Name(), "pattern %q stores no copies or facts to fill; remove it from JobOptions.Patterns", p.Name)
		}
	}
	b.state = rebuildState{Version: rebuildVersion, Run: continuation.Hash("rebuild %s", v.fingerprint())}
	if b.resume = v.options.Resume; b.resume != "" {
		if err := b.state.parse(b.resume, b.state.Run, b.ranges()); err != nil {
			return nil, r.Invalid(op, tables.Key{}, err)
		}
	}
	return b, nil
}

func (s *rebuildState) parse(token, run string, ranges []rangescan.Range) error {
	var c rebuildState
	switch {
	case continuation.Decode(token, &c) != nil:
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier Rebuild", len(token))
	case c.Version != rebuildVersion:
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", c.Version, rebuildVersion)
	case c.Run != run:
		return errors.New("JobOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	case !c.Scan.Valid(ranges):
		return errNowhere
	}
	*s = c
	return nil
}

// run processes the entities. After an error, the counts of the report include the unfinished pages; the
// report's token is still the one before them.
func (b *rebuild) run(ctx context.Context) error {
	var told error
	err := b.compareCopies(ctx)
	if err == nil {
		told, err = b.pages(ctx)
	}
	for _, p := range b.pending { // no reader runs any more
		if b.state.Report.add(&p.counts); told == nil {
			told = b.tell(p.failed, &b.state.Report.Findings)
		}
	}
	return cmp.Or(err, told)
}

// pages adds the pages to the report, in order. The scan yields a page after one of its readers has written
// what the patterns lack for the page's entities. told is the error of the caller's Found, which ends the run;
// err is any other error.
func (b *rebuild) pages(ctx context.Context) (told, err error) {
	ranges := b.ranges()
	for page, err := range b.scan(ranges).Pages(ctx, b.state.Scan) {
		if err != nil {
			return nil, err
		}
		b.finish(page.Content)
		if err := b.tell(page.Content.failed, &b.state.Report.Findings); err != nil {
			return err, nil
		}
		b.state.Scan = page.Rest
		b.progressed()
	}
	return nil, nil
}

// begin returns a new page.
func (b *rebuild) begin() *rebuildPage {
	p := &rebuildPage{rebuild: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, p)
	return p
}

// finish adds a page to the counts.
func (b *rebuild) finish(p *rebuildPage) {
	b.state.Report.add(&p.counts)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = slices.DeleteFunc(b.pending, func(other *rebuildPage) bool { return other == p })
}

// report returns the counts of the run, and the token of its last checkpoint.
func (b *rebuild) report() tables.Report {
	c := &b.state.Report
	p := tables.Report{Read: c.Entities, Written: c.Written, Unchanged: max(0, c.Skipped), Conflicts: c.Conflicts, Failed: c.Failed, Findings: c.Findings,
		Elapsed: time.Since(b.began), Resume: b.resume}
	if b.scope != nil {
		p.PartitionsDone = b.state.Scan.Done()
	}
	return p
}

// scan returns the scan of the run's partitions or, without any, of the table. Its readers also fill the
// entities.
func (b *rebuild) scan(ranges []rangescan.Range) tablescan.Scan[*rebuildPage] {
	size := b.options.pageSize
	if pagejob.Heavy(b.r) {
		size = cmp.Or(size, pagejob.MostHeavy)
	}
	return tablescan.Scan[*rebuildPage]{Table: b.r.Table, Ranges: ranges, Span: b.r.Primary.Span, Where: b.r.Primary.Where, Readers: b.options.Concurrency, Size: size,
		New: b.begin,
		Row: func(ctx context.Context, p *rebuildPage, raw *tablerow.Row) error {
			row := raw
			if !b.r.Owns(row) || !b.mine(row.Key) {
				return nil
			}
			e, err := b.decode(ctx, row)
			if err != nil || e.foreign || e.gone() {
				return err
			}
			p.counts.Entities++
			if e.known() {
				p.items = append(p.items, &rebuilt{e.value, e.row.With(slices.Clone(e.stored))})
			} else {
				p.problem(Finding{Kind: Undecodable, Table: b.r.Table.Name(), Entity: e.key, Err: cmp.Or(e.bad, e.busy)})
			}
			return nil
		},
		Work: func(ctx context.Context, at rangescan.Range, p *rebuildPage) error {
			return p.fillPage(ctx, at, p.items)
		},
	}
}

// problem records an entity that could not be filled.
func (b *rebuildPage) problem(f Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Failed++
	b.failed = append(b.failed, &finding{Finding: f})
}

func (b *rebuildPage) add(count func(*rebuildCounts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count(&b.counts)
}

// fill writes the rows and facts of one entity that the patterns lack.
func (b *rebuildPage) fill(ctx context.Context, x *rebuilt) error {
	for attempt := 0; ; attempt++ {
		err := b.locked(ctx, b.r.SharedBy(x.row.Key, x.value), func() error { return b.fillOnce(ctx, x) })
		if !pagejob.Retryable(ctx, err) || attempt+1 >= b.r.Schema.MaxAttempts {
			return b.giveUp(ctx, x, err)
		}
		b.add(func(r *rebuildCounts) { r.Conflicts++ })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
		value, row, err := b.r.ReadOwn(ctx, b.op, x.row.Key)
		if err != nil || value == nil {
			return b.giveUp(ctx, x, err)
		}
		x = &rebuilt{value, row}
	}
}

// giveUp records why an entity could not be filled, unless the error concerns the whole run.
func (b *rebuildPage) giveUp(ctx context.Context, x *rebuilt, err error) error {
	if err == nil {
		return nil
	}
	kind := Undecodable
	e := engine.AsError(err)
	switch {
	case errors.Is(err, tables.ErrDuplicate), errors.Is(err, tables.ErrMissingReference), engine.Lost(err), e != nil && ctx.Err() == nil && errors.Is(err, context.Canceled):
		kind = Missing
	case e == nil || ctx.Err() != nil || !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrWiring) && !errors.Is(err, tables.ErrTooLarge) && !errors.Is(err, tables.ErrGarbled):
		return err
	}
	b.problem(Finding{Kind: kind, Pattern: e.Pattern, Table: b.r.Table.Name(), Entity: x.row.Key, Err: err})
	return nil
}
