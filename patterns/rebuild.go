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
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rebuildAll is Repository.Rebuild.
func rebuildAll(ctx context.Context, r *engine.Engine, o *JobOptions) (tables.Report, error) {
	b, err := newRebuild(r, o)
	if err != nil {
		return tables.Report{}, err
	}
	err = b.run(pace.With(ctx, b.options.RowsPerSecond))
	return b.report(), err
}

// rebuild is one run of Rebuild.
type rebuild struct {
	*verifier      // reads entities and compares copies
	always    bool // a pattern that cannot report what it stores is always filled

	mu     sync.Mutex
	state  rebuildState
	resume string     // the token of the last checkpoint
	failed []*finding // of the current page
}

// rebuildState is the position of a run, as its token stores it.
type rebuildState struct {
	Version int
	Run     string
	Part    int
	Page    string
	Report  rebuildCounts
}

// rebuildCounts are the counts of a run, as its token stores them.
type rebuildCounts struct{ Entities, Written, Skipped, Conflicts, Failed, Findings int64 }

const rebuildVersion = 1

// rebuilt is an entity that the run is processing.
type rebuilt struct {
	value any
	row   *engine.StoredRow // with every property as stored
}

func newRebuild(r *engine.Engine, o *JobOptions) (*rebuild, error) {
	const op = opRebuild
	v, err := newVerifier(r, op, o)
	if err != nil {
		return nil, err
	}
	v.aim(true, nil, nil)
	b := &rebuild{verifier: v}
	for _, p := range r.Patterns {
		switch named := slices.Contains(v.options.Patterns, p.Name); {
		case !v.chosen(p.Name) || p.Audit != nil:
		case p.Rows != nil || p.Companions != nil:
			b.always = true
		case named && p.Copies == nil && p.Outside == nil:
			return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("pattern %q stores no copies or facts to fill; remove it from JobOptions.Patterns", p.Name))
		}
	}
	b.state = rebuildState{Version: rebuildVersion, Run: continuation.Hash("rebuild %s", v.fingerprint())}
	if b.resume = v.options.Resume; b.resume != "" {
		if err := b.state.parse(b.resume, b.state.Run); err != nil {
			return nil, r.Invalid(op, tables.Key{}, err)
		}
	}
	return b, nil
}

func (s *rebuildState) parse(token, run string) error {
	var c rebuildState
	switch {
	case continuation.Decode(token, &c) != nil:
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier Rebuild", len(token))
	case c.Version != rebuildVersion:
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", c.Version, rebuildVersion)
	case c.Run != run:
		return errors.New("JobOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	case c.Part < 0:
		return errNowhere
	}
	*s = c
	return nil
}

// run processes the entities page by page.
func (b *rebuild) run(ctx context.Context) error {
	for b.state.Part < b.parts() {
		page, err := b.query(b.state.Part).Page(ctx, b.state.Page)
		if err == nil {
			err = b.fillPage(ctx, page.Items)
		}
		if told := b.tellFailures(); err == nil {
			err = told
		}
		if err != nil {
			return err
		}
		if b.state.Page = page.Next; page.Next == "" {
			b.state.Part++
		}
		b.resume = ""
		if b.state.Part < b.parts() {
			b.resume = continuation.Encode(&b.state)
		}
		if b.options.Progress != nil {
			b.options.Progress(b.report())
		}
	}
	return nil
}

// report returns the counts of the run, and the token of its last checkpoint.
func (b *rebuild) report() tables.Report {
	c := &b.state.Report
	p := tables.Report{Read: c.Entities, Written: c.Written, Unchanged: c.Skipped, Conflicts: c.Conflicts, Failed: c.Failed, Findings: c.Findings,
		Elapsed: time.Since(b.began), Resume: b.resume}
	if b.scope != nil {
		p.PartitionsDone = b.state.Part
	}
	return p
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
			b.fail(Finding{Kind: Undecodable, Table: b.r.Table.Name(), Entity: e.key, Err: cmp.Or(e.bad, e.busy)})
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

// tellFailures gives the caller the entities of the page that could not be read or filled.
func (b *rebuild) tellFailures() error {
	for _, f := range b.failures {
		b.problem(f.Finding)
	}
	failed := b.failed
	b.failures, b.failed = nil, nil
	return b.tell(failed, &b.state.Report.Findings)
}

// problem records an entity that could not be filled.
func (b *rebuild) problem(f Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.Report.Failed++
	b.failed = append(b.failed, &finding{Finding: f})
}

func (b *rebuild) add(count func(*rebuildCounts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count(&b.state.Report)
}

// fill writes what the patterns lack of one entity.
func (b *rebuild) fill(ctx context.Context, x *rebuilt) error {
	for attempt := 0; ; attempt++ {
		err := b.fillAlone(ctx, x)
		if !retryable(ctx, err) || attempt+1 >= b.r.Schema.MaxAttempts {
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

// giveUp records why an entity could not be filled, unless the error concerns the whole run.
func (b *rebuild) giveUp(ctx context.Context, x *rebuilt, err error) error {
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
	b.problem(Finding{Kind: kind, Pattern: e.Pattern, Table: b.r.Table.Name(), Entity: x.row.Key, Err: err})
	return nil
}
