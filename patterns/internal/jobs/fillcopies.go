package jobs

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// Rebuild fills the copies in other partitions of patterns that have most of them as Verify does: it compares sums of what the entities
// require and what is stored, and then reads again what differs. Patterns that have less than half of their copies are noted in state.Empty: their
// copies are inserted without a read, page by page of the entities.

// firstOfRebuild returns the phase with which Rebuild begins.
func (j *job) firstOfRebuild() phase {
	if slices.ContainsFunc(j.areas, func(a area) bool { return j.comparesOutside(&a) }) {
		return phaseEntities
	}
	return phasePages
}

// leaveEmpty notes the patterns that lack most of their copies, and begins to compare those of the other patterns again.
func (j *job) leaveEmpty() {
	s := &j.state
	if empty := s.Copies.mostlyMissing(); len(empty) > 0 {
		s.Empty = append(slices.Clone(s.Empty), empty...)
		s.far, s.Phase = sums{}, j.firstOfRebuild()
	}
	s.Copies = nil
}

// fillDiffering makes those candidates agree with their entities that the entities require.
func (j *job) fillDiffering(ctx context.Context, all []*candidate) error {
	all = slices.DeleteFunc(all, func(s *candidate) bool { return !s.wanted })
	most := mostAgreed
	if heavy(j.r) {
		most = mostHeavy
	}
	var groups [][]*candidate // of sites of one area, in the order of their entities
	for _, ofArea := range group(all, func(s *candidate) int { return s.area }) {
		groups = slices.AppendSeq(groups, slices.Chunk(ofArea, most))
	}
	p := j.newPage()
	err := each(ctx, j.options.Concurrency, groups, func(ctx context.Context, some []*candidate) error {
		return p.fillGroup(ctx, &j.areas[some[0].area], some)
	})
	if err != nil {
		return err
	}
	return j.finish(p)
}

// fillGroup does what fillDiffering does for sites of one area. The scan of the entities will count each of the entities as
// unchanged.
func (p *page) fillGroup(ctx context.Context, a *area, some []*candidate) error {
	all := make([]*copied, len(some))
	for i, s := range some {
		key, err := driver.SplitKey(s.place)
		if err != nil {
			return err
		}
		all[i] = newCopied(key, s.entity, false)
	}
	if err := p.fillSites(ctx, a, all, nil); err != nil {
		return err
	}
	for from, to := 0, 0; from < len(all); from = to {
		var taken error
		written := false
		for to = from; to < len(all) && all[to].entity == all[from].entity; to++ {
			written, taken = written || all[to].written(), cmp.Or(taken, all[to].taken)
		}
		switch {
		case taken != nil:
			if err := p.giveUp(ctx, all[from].entity, "", taken); err != nil {
				return err
			}
		case written:
			p.add(func(r *tally.Report) { r.Written++ })
		default:
			continue
		}
		p.add(func(r *tally.Report) { r.Unchanged-- })
	}
	return nil
}

// copied is a copy that an entity requires.
type copied struct {
	engine.Site
	entity entity.Key
	taken  error // why the entity has no copy there
}

func newCopied(key, of entity.Key, free bool) *copied {
	return &copied{Site: engine.Site{Key: key, Entity: of, Free: free}, entity: of}
}

// written reports whether the copy was missing or wrong, or had an old mark.
func (c *copied) written() bool { return c.Written && c.Entity == c.entity }

// fillSites marks copies of one area that are missing or wrong, reads the entities again with read, and settles the copies of those that still require
// them.
func (j *job) fillSites(ctx context.Context, a *area, all []*copied, read engine.ReadOwnAll) error {
	sites := make([]*engine.Site, len(all))
	for i, c := range all {
		sites[i] = &c.Site
	}
	err := j.r.Agree(ctx, j.op, a.table, j.id, sites)
	if err == nil {
		err = j.r.Settle(ctx, j.op, a.table, false, sites, read)
	}
	for _, c := range all {
		name, _ := a.ownerName(c.Key)
		c.taken = errs.Amend(c.Err, func(e *entity.Error) { e.Pattern = cmp.Or(e.Pattern, name) })
	}
	return err
}

// fillEmpty fills the copies that entities require of the patterns in state.Empty. free says that most of them are missing; read reads the
// entities again.
func (j *job) fillEmpty(ctx context.Context, entities []*item, free bool, read engine.ReadOwnAll) error {
	for at := range j.areas {
		a := &j.areas[at]
		var all []*copied
		var of []*item
		for _, x := range entities {
			for _, p := range a.outside {
				if !slices.Contains(j.state.Empty, p.Name) {
					continue
				}
				copies, err := engine.CopiesOf(x.value).Outside(p)
				if err != nil {
					x.err = cmp.Or(x.err, engine.PatternError(p, err, entity.ErrInvalid))
				}
				for _, c := range copies {
					all, of = append(all, newCopied(c.Key, x.key, free)), append(of, x)
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		if err := j.fillSites(ctx, a, all, read); err != nil {
			return err
		}
		for i, c := range all {
			of[i].copied, of[i].taken = of[i].copied || c.written(), cmp.Or(of[i].taken, c.taken)
		}
	}
	return nil
}

// again returns a function that reads the entities of a page again by the page's range, which takes 1 request for however many partitions.
func (j *job) again(at rangescan.Range) engine.ReadOwnAll {
	if j.r.Table.Account().IsCosmos() {
		return nil // there the range of a page is unknown
	}
	return func(ctx context.Context, _ string, keys []entity.Key) ([]*tablerow.Row, error) {
		p := &page{job: j}
		scan := tablescan.Scan[*page]{Table: j.r.Table, Ranges: []rangescan.Range{at}, Span: j.r.Primary.Span, Where: j.r.Primary.Where, Readers: 1,
			New: func() *page { return p },
			Row: func(ctx context.Context, _ *page, row *tablerow.Row) error { return keep(j.r.Owns)(ctx, p, row) }}
		for _, err := range scan.Pages(ctx, tablescan.State{}) {
			if err != nil {
				return nil, err
			}
		}
		found := map[entity.Key]*tablerow.Row{}
		for _, row := range p.rows {
			found[row.Key] = row
		}
		own := make([]*tablerow.Row, len(keys))
		for i, key := range keys {
			own[i] = found[key]
		}
		return own, nil
	}
}
