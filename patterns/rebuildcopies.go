package patterns

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// compareCopies fills the copies in other partitions of patterns that have most of them. As Verify does, it compares sums of what the entities
// require and what is stored, and then reads again what differs. Patterns that have less than half of their copies are noted in state.Empty: their
// copies are inserted without a read, page by page of the entities.
func (b *rebuild) compareCopies(ctx context.Context) error {
	for !b.state.Compared {
		v, err := b.comparison()
		if err != nil {
			return err
		}
		if err := v.run(ctx, phaseFar); err != nil {
			return err
		}
		empty := v.state.Copies.mostlyMissing()
		if b.state.Empty = append(b.state.Empty, empty...); len(empty) == 0 {
			if err := v.run(ctx, phaseDone); err != nil {
				return err
			}
			b.state.Compared = true
		}
		b.state.Copies = ""
	}
	return nil
}

// mostlyMissing returns the patterns that have less than half of their copies.
func (s stocks) mostlyMissing() (patterns []string) {
	for name, n := range s {
		if 2*n.Stored < n.Required {
			patterns = append(patterns, name)
		}
	}
	slices.Sort(patterns)
	return patterns
}

// comparison returns the verifier that compares the copies of the run's patterns without those in state.Empty, at its position.
func (b *rebuild) comparison() (*verifier, error) {
	o := b.options
	o.Patterns, o.Lag, o.Found, o.Resume = []string{}, 0, nil, b.state.Copies
	for _, p := range b.r.Outside {
		if b.chosen(p.Name) && !slices.Contains(b.state.Empty, p.Name) {
			o.Patterns = append(o.Patterns, p.Name)
		}
	}
	v, err := newVerifier(b.r, b.op, &o)
	if err != nil {
		return nil, err
	}
	v.near = false
	v.areas = slices.DeleteFunc(v.areas, func(a area) bool { return a.auditor != nil })
	v.differ = func(ctx context.Context, all []*candidate) error { return b.fillDiffering(ctx, v, all) }
	v.options.Progress = func(r tables.Report) {
		b.state.Copies = r.Resume
		b.progressed()
	}
	if len(o.Patterns) == 0 {
		v.state.Phase = phaseDone
		return v, nil
	}
	return v, v.begin()
}

// progressed makes the run resumable from its current position, and calls the caller's Progress.
func (b *rebuild) progressed() {
	if b.resume = ""; !b.state.Scan.Over(len(b.ranges())) {
		b.resume = continuation.Encode(&b.state)
	}
	if b.options.Progress != nil {
		b.options.Progress(b.report())
	}
}

// fillDiffering makes those candidates agree with their entities that the entities require.
func (b *rebuild) fillDiffering(ctx context.Context, v *verifier, all []*candidate) error {
	all = slices.DeleteFunc(all, func(s *candidate) bool { return !s.wanted })
	var groups [][]*candidate
	for from, to := 0, 0; from < len(all); from = to {
		for to = from; to < len(all) && to-from < b.mostRead() && all[to].area == all[from].area; to++ {
		}
		groups = append(groups, all[from:to])
	}
	p := b.begin()
	err := pagejob.Each(ctx, b.options.Concurrency, groups, func(ctx context.Context, group []*candidate) error {
		return p.fillGroup(ctx, &v.areas[group[0].area], group)
	})
	if err != nil {
		return err
	}
	b.finish(p)
	return b.tell(p.failed, &b.state.Report.Findings)
}

// fillGroup does what fillDiffering does for sites of one area, which are in the order of their entities. The scan of the entities counts each of them as
// unchanged.
func (b *rebuildPage) fillGroup(ctx context.Context, a *area, group []*candidate) error {
	copied := make([]*copied, len(group))
	for i, s := range group {
		key, err := driver.SplitKey(s.place)
		if err != nil {
			return err
		}
		copied[i] = newCopied(key, s.entity, false)
	}
	if err := b.fillSites(ctx, a, copied, nil); err != nil {
		return err
	}
	for from, to := 0, 0; from < len(group); from = to {
		var taken error
		written := false
		for to = from; to < len(group) && group[to].entity == group[from].entity; to++ {
			written, taken = written || copied[to].written(), cmp.Or(taken, copied[to].taken)
		}
		switch {
		case taken != nil:
			if err := b.giveUp(ctx, &rebuilt{row: &tablerow.Row{Key: group[from].entity}}, taken); err != nil {
				return err
			}
		case written:
			b.add(func(r *rebuildCounts) { r.Written++ })
		default:
			continue
		}
		b.add(func(r *rebuildCounts) { r.Skipped-- })
	}
	return nil
}

// mostRead is the number of entities that are read together.
func (b *rebuild) mostRead() int {
	if pagejob.Heavy(b.r) {
		return pagejob.MostHeavy
	}
	return mostAgreed
}

// copied is a copy that an entity requires.
type copied struct {
	engine.Site
	entity tables.Key
	taken  error // why the entity has no copy there
}

func newCopied(key, entity tables.Key, free bool) *copied {
	return &copied{Site: engine.Site{Key: key, Entity: entity, Free: free}, entity: entity}
}

// written reports whether the copy was missing or wrong, or had an old mark.
func (c *copied) written() bool { return c.Written && c.Entity == c.entity }

// fillSites marks copies of one area that are missing or wrong, reads the entities again with read, and settles the copies of those that still require
// them.
func (b *rebuild) fillSites(ctx context.Context, a *area, all []*copied, read engine.ReadOwnAll) error {
	sites := make([]*engine.Site, len(all))
	for i, c := range all {
		sites[i] = &c.Site
	}
	err := b.r.Agree(ctx, b.op, a.table, b.id, sites)
	if err == nil {
		err = b.r.Settle(ctx, b.op, a.table, false, sites, read)
	}
	for _, c := range all {
		name, _ := a.ownerName(c.Key)
		c.taken = errs.Amend(c.Err, func(e *tables.Error) { e.Pattern = cmp.Or(e.Pattern, name) })
	}
	return err
}

// fillEmpty fills the copies of the patterns in state.Empty that entities require in one area. free says that most of them are missing; read reads the
// entities again.
func (b *rebuild) fillEmpty(ctx context.Context, a *area, lacks []*lack, free bool, read engine.ReadOwnAll) error {
	var all []*copied
	var of []*lack
	for _, l := range lacks {
		for _, p := range a.outside {
			if !slices.Contains(b.state.Empty, p.Name) {
				continue
			}
			copies, err := engine.CopiesOf(l.x.value).Outside(p)
			if err != nil {
				l.err = cmp.Or(l.err, engine.PatternError(p, err, tables.ErrInvalid))
			}
			for _, c := range copies {
				all, of = append(all, newCopied(c.Key, l.x.row.Key, free)), append(of, l)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	err := b.fillSites(ctx, a, all, read)
	for i, c := range all {
		of[i].copied, of[i].taken = of[i].copied || c.written(), cmp.Or(of[i].taken, c.taken)
	}
	return err
}

// fillAllEmpty calls fillEmpty for all areas.
func (b *rebuild) fillAllEmpty(ctx context.Context, lacks []*lack, free bool, read engine.ReadOwnAll) error {
	for i := range b.areas {
		if err := b.fillEmpty(ctx, &b.areas[i], lacks, free, read); err != nil {
			return err
		}
	}
	return nil
}

// again returns a function that reads the entities of a page again by the page's range, which takes 1 request for however many partitions.
func (b *rebuild) again(at rangescan.Range) engine.ReadOwnAll {
	if b.r.Table.Account().IsCosmos() {
		return nil // there the range of a page is unknown
	}
	return func(ctx context.Context, _ string, keys []tables.Key) ([]*tablerow.Row, error) {
		found := map[tables.Key]*tablerow.Row{}
		scan := tablescan.Scan[*rebuildPage]{Table: b.r.Table, Ranges: []rangescan.Range{at}, Span: b.r.Primary.Span, Where: b.r.Primary.Where, Readers: 1,
			New: func() *rebuildPage { return nil },
			Row: func(_ context.Context, _ *rebuildPage, row *tablerow.Row) error {
				if b.r.Owns(row) {
					found[row.Key] = row.Clone()
				}
				return nil
			}}
		for _, err := range scan.Pages(ctx, tablescan.State{}) {
			if err != nil {
				return nil, err
			}
		}
		rows := make([]*tablerow.Row, len(keys))
		for i, key := range keys {
			rows[i] = found[key]
		}
		return rows, nil
	}
}
