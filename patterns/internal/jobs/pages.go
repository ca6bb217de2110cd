package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// part is one of the scans whose pages a job processes, one scan after another.
type part struct {
	table      *core.Table
	partitions []string // sorted; nil for the whole table
	span       compoundkey.Span
	where      []entity.Condition // at most 10 comparisons
	size       int                // rows of a page, 0 for the service's maximum
	row        func(ctx context.Context, p *page, row *tablerow.Row) error
	process    func(ctx context.Context, p *page, at rangescan.Range) error
	together   bool // several pages are processed at once
}

// page is a page of rows, with what the job has done for them.
type page struct {
	*job
	rows   []*tablerow.Row // that the job processes
	items  []*item         // of Rebuild
	counts tally.Report
	read   int64 // entities that count as read once the page is done
	failed []*finding
}

// item is an entity that a job writes again.
type item struct {
	key   entity.Key
	value any
	row   *tablerow.Row // with every property as stored
	done  bool          // written

	// Of Rebuild, what patterns still have to store for the entity.

	outside  map[string][]string // by pattern: locations outside of the partition whose content is missing or wrong
	intended map[string][]string // by pattern: those of outside that rewriting the entity does not repair
	write    bool                // the entity must be written again
	taken    error               // ErrDuplicate if another entity owns one of the required outside keys
	copied   bool                // copies in other partitions were written
	err      error               // error of a pattern that rejects the entity, or of its reconciliation

	// Of a rewriting.

	rows    int  // number of rows that the entity has in its partition
	size    int  // their size in bytes
	stale   bool // the entity must be read again before it is written
	unknown bool // the outcome of a write is unknown
}

// keep returns a part.row that keeps the rows that a function chooses.
func keep(chooses func(*tablerow.Row) bool) func(context.Context, *page, *tablerow.Row) error {
	return func(_ context.Context, p *page, row *tablerow.Row) error {
		if chooses(row) {
			p.rows = append(p.rows, row.Clone())
		}
		return nil
	}
}

// pages processes the pages of all parts. The readers of a scan also process its pages; the job counts a page, and passes on its findings, in the order in
// which the pages end. After an error, the counts of the report include the unfinished pages, and the token is still the one before them.
func (j *job) pages(ctx context.Context) error {
	s := &j.state
	for s.Part < len(j.parts) {
		at := s.Part
		p := &j.parts[at]
		ranges := tablescan.Partitions(p.partitions)
		scan := tablescan.Scan[*page]{Table: p.table, Ranges: ranges, Span: p.span, Where: p.where, Readers: j.options.Concurrency, Size: cmp.Or(j.options.PageSize, p.size),
			New: j.newPage, Row: func(ctx context.Context, page *page, row *tablerow.Row) error { return p.row(ctx, page, row) },
			Work: func(ctx context.Context, at rangescan.Range, page *page) error {
				if !p.together {
					j.onePage.Lock()
					defer j.onePage.Unlock()
				}
				return p.process(ctx, page, at)
			}}
		for page, err := range scan.Pages(ctx, s.Scan) {
			if err != nil {
				return err
			}
			if err := j.finish(page.Content); err != nil {
				return err
			}
			s.Report.Read += page.Content.read
			if s.Scan = page.Rest; s.Scan.Over(len(ranges)) {
				j.nextPart()
			}
			j.progressed()
		}
		if s.Part == at && s.Phase == phasePages {
			j.nextPart()
		}
	}
	return nil
}

// nextPart moves the position to the beginning of the next part.
func (j *job) nextPart() {
	if j.state.Part, j.state.Scan = j.state.Part+1, (tablescan.State{}); j.state.Part == len(j.parts) {
		j.state.Phase = phaseDone
	}
}

// newPage begins a page.
func (j *job) newPage() *page {
	p := &page{job: j}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(j.pending, p)
	return p
}

// finish adds a page to the report, and passes its findings to the caller.
func (j *job) finish(p *page) error {
	j.mu.Lock()
	j.pending = slices.DeleteFunc(slices.Clone(j.pending), func(other *page) bool { return other == p })
	j.mu.Unlock()
	r := &j.state.Report
	r.Read += p.counts.Read
	r.Rows += p.counts.Rows
	r.Written += p.counts.Written
	r.Deleted += p.counts.Deleted
	r.Unchanged += p.counts.Unchanged
	r.Conflicts += p.counts.Conflicts
	r.Failed += p.counts.Failed
	return j.tell(p.failed)
}

// add calls count to change the counts of the page.
func (p *page) add(count func(*tally.Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count(&p.counts)
}

// report records a finding of the page.
func (p *page) report(f entity.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, &finding{Finding: f})
}

// sharedBy returns the names of the locks for the rows that entities share with others.
func (j *job) sharedBy(set []*item) (names []string) {
	for _, x := range set {
		names = append(names, j.r.SharedBy(x.key, x.value)...)
	}
	return names
}

// together writes sets of entities, several at once. If the service refuses a set, it is divided, so that an entity that concurrent writers change all
// the time, or one that is too large, delays only itself. refused names the refused one; with nil, sets are halved, and an unknown outcome counts as
// refused. It returns the entities that are not done, to be processed alone.
func (p *page) together(ctx context.Context, sets [][]*item, write func(context.Context, []*item) error, refused func(error, []*item) int) (alone []*item, err error) {
	unknown := func(err error) bool { return refused != nil && errors.Is(err, entity.ErrUnknownOutcome) }
	err = eachSlot(ctx, p.job, sets, func(ctx context.Context, set []*item) error {
		_, err := division.Divided[*item]{Refused: refused,
			Write: func(some []*item) error {
				return p.locked(ctx, p.sharedBy(some), func() error { return write(ctx, some) })
			},
			Ends: func(err error) bool { return ctx.Err() != nil || engine.Ends(err) || unknown(err) }}.Run(set)
		if unknown(err) && ctx.Err() == nil {
			return nil // each entity of the set is read and written again alone
		}
		return err
	})
	for _, set := range sets {
		alone = append(alone, slices.DeleteFunc(slices.Clone(set), func(x *item) bool { return x.done })...)
	}
	return alone, err
}

// problem records an entity or row that could not be written.
func (p *page) problem(f entity.Finding) {
	p.add(func(r *tally.Report) { r.Failed++ })
	p.report(f)
}

// giveUp records why an entity could not be written, unless the error concerns the whole run. pattern is that of the job, "" for the one that the error names.
func (p *page) giveUp(ctx context.Context, key entity.Key, pattern string, err error) error {
	if err == nil {
		return nil
	}
	e := engine.AsError(err)
	is := func(kind error) bool { return errors.Is(err, kind) }
	absent := engine.Lost(err) || slices.ContainsFunc([]error{entity.ErrDuplicate, entity.ErrMissingReference, context.Canceled}, is)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e == nil || !absent && !slices.ContainsFunc([]error{entity.ErrInvalid, entity.ErrWiring, entity.ErrTooLarge, entity.ErrGarbled}, is):
		return err
	}
	f := entity.Finding{Kind: entity.Different, Pattern: cmp.Or(pattern, e.Pattern), Table: p.r.Table.Name(), Entity: key, Err: err}
	switch {
	case absent && p.op == Rebuild:
		f.Kind = entity.Missing
	case is(entity.ErrGarbled) || p.op == Rebuild:
		f.Kind = entity.Undecodable
	}
	p.problem(f)
	return nil
}

// attempts calls write until it does not conflict with another writer, at most Schema.MaxAttempts times. After each conflict it calls again, which
// reads the entity again and reports whether there is still something to write.
func (p *page) attempts(ctx context.Context, write func() error, again func() (more bool, err error)) error {
	for attempt := 0; ; attempt++ {
		err := write()
		if !retryable(ctx, err) || attempt+1 >= p.r.Schema.MaxAttempts {
			return err
		}
		p.add(func(r *tally.Report) { r.Conflicts++ })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
		if more, err := again(); err != nil || !more {
			return err
		}
	}
}

// eachSlot calls each for the items of one page. The slots limit how many items of all pages together
// are processed at once.
func eachSlot[I any](ctx context.Context, j *job, items []I, do func(context.Context, I) error) error {
	return each(ctx, cap(j.slots), items, func(ctx context.Context, item I) error {
		select {
		case j.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-j.slots }()
		return do(ctx, item)
	})
}

// group divides items into groups of one key each, in the order of the keys' first items.
func group[I any, K comparable](items []I, keyOf func(I) K) [][]I {
	at := map[K]int{}
	var groups [][]I
	for _, item := range items {
		key := keyOf(item)
		if i, known := at[key]; known {
			groups[i] = append(groups[i], item)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, []I{item})
	}
	return groups
}
