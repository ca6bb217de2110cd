package patterns

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RebuildOptions are the options of Rebuild; nil is the same as the zero value.
type RebuildOptions struct {
	// Patterns are the names of the attached patterns to fill; nil is all that hold copies of entities, or facts of them.
	Patterns []string
	// Partitions are those of the entities; nil is the whole table.
	Partitions []string
	// Concurrency is the number of entities under way at once, 8 for 0.
	Concurrency int
	// Progress is called after each page of entities.
	Progress func(RebuildReport)
	// Resume goes on where an earlier run was when RebuildReport.Resume was this text. With other options, or another table,
	// it is ErrInvalid.
	Resume string
}

// maxProblems bounds the list of what could not be filled.
const maxProblems = 1000

// RebuildReport is what a run has done, with what the runs before it did that it resumes.
type RebuildReport struct {
	Entities  int64 // seen
	Written   int64 // entities written again, or brought into agreement with an intent
	Skipped   int64 // entities that had all already
	Conflicts int64 // attempts that another writer, a lost answer or a lost lease ended; the entity was read again
	Failed    int64 // entities that could not be filled, for the reasons in Problems
	// Problems are the first 1,000 of these: keys that another entity has (Missing, with ErrDuplicate), entities that other
	// writers changed, or whose lease was lost, at each of Schema.MaxAttempts attempts (Missing), what a pattern does not find, such
	// as a parent (Missing, with ErrMissingReference), and entities that cannot be read or that an index refuses (Undecodable). Those of
	// earlier runs are not in it.
	Problems []Discrepancy
	Elapsed  time.Duration // of this run

	// Resume is for RebuildOptions.Resume of a later run. It is "" when all is done, and beside an error when nothing is.
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
	always      bool // a pattern that tells nothing of what it holds is to be filled

	mu    sync.Mutex
	state rebuildState
}

// rebuildState is where a run is: what its token holds.
type rebuildState struct {
	Version int
	Run     string
	Part    int
	Page    string
	Report  RebuildReport
}

const rebuildVersion = 1

// rebuilt is an entity on its way.
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
			return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("pattern %q has nothing to fill", p.Name))
		}
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "rebuild %s", v.fingerprint())
	b.state = rebuildState{Version: rebuildVersion, Run: fmt.Sprintf("%016x", h.Sum64())}
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
	text, _ := json.Marshal(&c) // texts and numbers cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

func (s *rebuildState) parse(token, run string) error {
	var c rebuildState
	text, err := base64.RawURLEncoding.DecodeString(token)
	switch {
	case err != nil || json.Unmarshal(text, &c) != nil:
		return fmt.Errorf("%d characters are no token of a run", len(token))
	case c.Version != rebuildVersion:
		return fmt.Errorf("a token of version %d, this build reads version %d", c.Version, rebuildVersion)
	case c.Run != run:
		return errors.New("the token is of a run with other options, or of another table")
	case c.Part < 0:
		return errNowhere
	}
	*s = c
	s.Report.Resume = token
	return nil
}

// run goes through the entities, page by page.
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

// query reads the entities of one partition, or all.
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

// noteFailures moves what the page could not read to the report.
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

// fill enters one entity in the patterns that lack it.
func (b *rebuild) fill(ctx context.Context, x *rebuilt) error {
	for attempt := 0; ; attempt++ {
		err := b.fillAlone(ctx, x)
		if !startsAgain(ctx, err) || attempt+1 >= b.r.Schema.MaxAttempts {
			return b.failed(ctx, x, err)
		}
		b.add(func(r *RebuildReport) { r.Conflicts++ })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
		value, row, err := b.r.Look(ctx, b.op, x.row.Key)
		if err != nil || value == nil {
			return b.failed(ctx, x, err)
		}
		x = &rebuilt{value, row}
	}
}

// fillAlone is fillOnce while no other worker of the run writes what the entity shares with others.
func (b *rebuild) fillAlone(ctx context.Context, x *rebuilt) error {
	release, err := b.locks.Acquire(ctx, b.r.SharedBy(x.row.Key, x.value))
	if err != nil {
		return err
	}
	defer release()
	return b.fillOnce(ctx, x)
}

// startsAgain reports whether an entity is to be read and filled once more. A rewrite of what was read does no harm if an earlier
// one was applied, so a lost answer is a reason, and so is a lease that ended while the process was held up.
func startsAgain(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (conflicts(err) || errors.Is(err, tables.ErrUnknownOutcome) || errors.Is(err, context.Canceled))
}

// conflicts reports whether a write of an entity was surely refused because somebody else changed the entity or a row that
// patterns share among entities.
func conflicts(err error) bool {
	e := engine.AsError(err)
	return tables.LostRace(err) || e != nil && errors.Is(e.Kind, tables.ErrConflict) && !errors.Is(err, tables.ErrUnknownOutcome)
}

// failed notes why an entity could not be filled, unless the reason says that none can.
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
