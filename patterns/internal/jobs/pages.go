package jobs

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
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
	items  []*rebuilt      // of Rebuild
	counts entity.Report
	failed []*finding
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
func (p *page) add(count func(*entity.Report)) {
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
