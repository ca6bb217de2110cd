package patterns

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// phase is one step of a run.
type phase uint8

const (
	phaseEntities phase = iota // scan the entities' table and compare it run by run
	phaseOutside               // scan the tables of outside copies
	phaseHeld                  // list the facts that auditors have stored
	phaseFar                   // compare the far sums, of all areas except the near one
	phaseDone
)

const (
	// runFacts is the minimum number of facts in a run of partitions before its sums are compared. Shorter runs report
	// differences earlier and limit the second scan.
	runFacts = 50_000
	// openFacts is the approximate number of facts compared at once, which limits the memory.
	openFacts = 100_000
)

// partitionRun is a set of whole partitions whose rows are compared together. Readers read several partitions at once,
// so two runs can be open. A partition belongs to the run that was current when its first row was counted.
type partitionRun struct {
	Spans rangescan.Union
	Group int // next group of buckets with unequal sums to compare
	sums  tally.Sums
}

// run scans, compares and reports, from the position in the state up to a phase.
func (v *verifier) run(ctx context.Context, until phase) error {
	steps := [...]func(context.Context) error{v.scanEntities, v.scanOutside, v.scanHeld, v.compareFar}
	if v.scope != nil && len(v.scope) == 0 {
		return nil
	}
	for v.state.Phase < until {
		if err := steps[v.state.Phase](ctx); err != nil {
			return err
		}
		v.state.Phase++
		v.state.Part, v.state.Scan, v.state.Open = 0, tablescan.State{}, nil
		v.progressed()
	}
	return nil
}

// ranges returns the ranges of the entities' table to read.
func (v *verifier) ranges() []rangescan.Range { return tablescan.Partitions(v.options.Partitions) }

// scanEntities scans the entities' table. Whenever a run of partitions has ended and is read completely, it
// compares the run's sums.
func (v *verifier) scanEntities(ctx context.Context) error {
	if err := v.compareRun(ctx); err != nil {
		return err
	}
	s := &v.state
	for page, err := range v.entities(v.ranges(), aim{first: true, nearby: v.near, outside: v.far()}).Pages(ctx, s.Scan) {
		if err != nil {
			return err
		}
		v.take(page.Content, &page.At)
		s.Scan = page.Rest
		maps.DeleteFunc(s.Open, func(partition string, _ bool) bool { return !page.Rest.Has(partition) })
		if err := v.afterPage(ctx); err != nil {
			return err
		}
		if err := v.compareRun(ctx); err != nil {
			return err
		}
	}
	v.closeRun()
	return v.compareRun(ctx)
}

// entities scans ranges of the entities' table. It reads only the entities' own rows if the schema has a span
// and the scan needs no other rows of the table.
func (v *verifier) entities(ranges []rangescan.Range, a aim) tablescan.Scan[*page] {
	scan := v.scan(v.r.Table, ranges, a, func(ctx context.Context, pg *page, row *tablerow.Row) error { return pg.visit(ctx, row) })
	if !a.nearby && v.r.Schema.Own.Span != (compoundkey.Span{}) && (v.scope != nil || v.outsideIn(v.r.Table) < 0) {
		scan.Span = v.r.Primary.Span
	}
	return scan
}

// runAt returns the run to which the rows after a point belong. A partition of which rows were counted keeps
// its run, even if a reader scans it from the beginning again.
func (v *verifier) runAt(at rangescan.Point) *partitionRun {
	if _, open := v.state.Open[at.Partition]; at.Side == rangescan.Behind || at.Border() && !open {
		return v.state.Near
	}
	return v.runOf(at.Partition)
}

// runOf returns the run that the rows of a partition belong to, and begins a new run if necessary. A run ends
// only before a partition that no reader has begun; on Cosmos DB, where rows are unordered, a scan of the
// table has only one run.
func (v *verifier) runOf(partition string) *partitionRun {
	s := &v.state
	if closing, open := s.Open[partition]; open && closing {
		return s.Closing
	} else if open || v.scope == nil && v.r.Table.Account().IsCosmos() {
		return s.Near
	}
	if s.Near.sums.Facts >= v.options.runFacts {
		v.closeRun()
	}
	if s.Open == nil {
		s.Open = map[string]bool{}
	}
	s.Open[partition] = false
	return s.Near
}

// closeRun ends the current run, unless the previous run still waits to be compared. The ended run is compared once all
// its partitions have been read to their ends.
func (v *verifier) closeRun() {
	s := &v.state
	if s.Near.sums.Facts == 0 || s.Closing != nil {
		return
	}
	s.Closing, s.Near = s.Near, &partitionRun{}
	for partition := range s.Open {
		s.Open[partition] = true
	}
}

// border returns the end of a page. If that is the end of a partition, and the run has a list of partitions,
// it returns the beginning of the next listed partition, so that the pages of consecutive partitions have no
// gap between them.
func (v *verifier) border(from rangescan.Point, end *rangescan.Point) *rangescan.Point {
	if v.scope == nil || end == nil || !end.Border() || *end == from { // on Azure Cosmos DB, only the last page of a partition has a range that is not empty
		return end
	}
	for _, partition := range v.options.Partitions {
		if compoundkey.Compare(partition, end.Partition) > 0 {
			return &rangescan.Point{Partition: partition}
		}
	}
	return nil
}

// compareRun compares the run of partitions that has ended, if there is one and all its partitions were read.
func (v *verifier) compareRun(ctx context.Context) error {
	run := v.state.Closing
	for _, closing := range v.state.Open {
		if closing {
			return nil
		}
	}
	if run == nil {
		return nil
	}
	err := v.compareSums(ctx, &run.sums, &run.Group, func(c *collector) error {
		return v.drain(ctx, v.entities(v.within(run.Spans), aim{nearby: true, to: c}))
	})
	if err == nil {
		v.state.Closing = nil
	}
	return err
}

// within returns the ranges of the entities' table that a run covers.
func (v *verifier) within(spans rangescan.Union) []rangescan.Range {
	if v.scope == nil {
		return spans
	}
	return slices.DeleteFunc(v.ranges(), func(r rangescan.Range) bool { return !spans.Covers(r.From) })
}

// drain runs a scan to its end.
func (v *verifier) drain(ctx context.Context, scan tablescan.Scan[*page]) error {
	for page, err := range scan.Pages(ctx, tablescan.State{}) {
		if err != nil {
			return err
		}
		v.take(page.Content, nil)
		v.progressed()
	}
	return nil
}

// compareSums reads the facts of the unequal buckets again with collect, and compares them one by one. It
// processes one group of buckets after another, so that the facts fit in memory, and begins with *group.
func (v *verifier) compareSums(ctx context.Context, s *tally.Sums, group *int, collect func(*collector) error) error {
	unequal := s.Unequal()
	size := int(max(1, v.options.openFacts*tally.Buckets/max(1, s.Facts)))
	for from := *group * size; from < len(unequal); from = *group * size {
		c := &collector{open: map[site]*collected{}}
		for _, bucket := range unequal[from:min(from+size, len(unequal))] {
			c.chosen[bucket] = true
		}
		if err := collect(c); err != nil {
			return err
		}
		if err := v.differ(ctx, c.candidates()); err != nil {
			return err
		}
		*group++
		v.progressed()
	}
	return nil
}

// scanOutside scans the tables of outside copies, except the entities' own table.
func (v *verifier) scanOutside(ctx context.Context) error {
	for ; v.state.Part < len(v.areas); v.state.Part++ {
		if !v.apart(v.state.Part) {
			continue
		}
		for page, err := range v.outsideRows(v.state.Part, aim{first: true, outside: true}).Pages(ctx, v.state.Scan) {
			if err != nil {
				return err
			}
			v.take(page.Content, nil)
			if page.Rest.Over(1) {
				break
			}
			v.state.Scan = page.Rest
			if err := v.afterPage(ctx); err != nil {
				return err
			}
		}
		v.state.Scan = tablescan.State{}
	}
	return nil
}

// apart reports whether an area is a table of outside copies with a scan of its own.
func (v *verifier) apart(at int) bool {
	a := &v.areas[at]
	return len(a.outside) > 0 && (v.scope != nil || !a.table.Same(v.r.Table))
}

// fewPartitions is the largest number of the entities' partitions for which the query of an outside table has a
// filter.
const fewPartitions = 10

func (v *verifier) outsideRows(at int, a aim) tablescan.Scan[*page] {
	scan := v.scan(v.areas[at].table, tablescan.Partitions(nil), a, func(_ context.Context, pg *page, row *tablerow.Row) error {
		pg.enter(row.Key.Partition)
		if row.Problem != nil {
			pg.unreadable(v.areas[at].table, row)
			return nil
		}
		pg.visitOutside(at, row)
		return nil
	})
	if n := len(v.options.Partitions); n == 0 || n > fewPartitions {
		return scan
	}
	var partitions []tables.Condition
	for _, p := range v.options.Partitions {
		partitions = append(partitions, tables.Eq(rows.Partition, p))
	}
	scan.Where = []tables.Condition{tables.Or(partitions...)}
	return scan
}

// scanHeld lists the facts that all auditors have stored.
func (v *verifier) scanHeld(ctx context.Context) error {
	for ; v.state.Part < len(v.areas); v.state.Part++ {
		if err := v.held(ctx, v.state.Part, aim{first: true, outside: true}); err != nil {
			return err
		}
	}
	return nil
}

// held lists the facts that one auditor has stored. They are in the token only when the list is complete, so a
// run that was interrupted within the list reads the list again.
func (v *verifier) held(ctx context.Context, at int, a aim) error {
	p := v.areas[at].auditor
	if p == nil {
		return nil
	}
	v.checkpoint.set(&v.state)
	v.listing = true
	defer func() { v.listing = false }()
	pg := &page{verifier: v, aim: a}
	for held, err := range p.Effect.List(ctx, driver.Scope{Partitions: v.options.Partitions}) {
		if err != nil {
			return engine.PatternError(p, err, tables.ErrGarbled)
		}
		if pg.visitHeld(at, &held); pg.rows == tables.MaxPageSize {
			v.take(pg, nil)
			pg = &page{verifier: v, aim: a}
			if err := v.flush(ctx); err != nil {
				return err
			}
			v.progressed()
		}
	}
	v.take(pg, nil)
	return v.flush(ctx)
}

// compareFar compares the sums of all areas except the near one.
func (v *verifier) compareFar(ctx context.Context) error {
	return v.compareSums(ctx, &v.state.far, &v.state.Group, func(c *collector) error {
		again := aim{outside: true, to: c}
		if err := v.drain(ctx, v.entities(v.ranges(), again)); err != nil {
			return err
		}
		for at := range v.areas {
			if v.apart(at) {
				if err := v.drain(ctx, v.outsideRows(at, again)); err != nil {
					return err
				}
			}
			if err := v.held(ctx, at, again); err != nil {
				return err
			}
		}
		return nil
	})
}

// afterPage passes the rows and facts that could not be read, and then the progress, to the caller.
func (v *verifier) afterPage(ctx context.Context) error {
	if err := v.flush(ctx); err != nil {
		return err
	}
	v.progressed()
	return ctx.Err()
}

// flush passes the rows and facts that could not be read to the caller.
func (v *verifier) flush(ctx context.Context) error {
	failures := v.failures
	v.failures = nil
	return v.hand(ctx, failures)
}

// site is where something is stored for an entity. Required and stored facts are matched by site.
type site struct {
	area   int    // index of the verifier's area
	place  string // the key of the row or fact, in the notation of the area
	entity tables.Key
}

// fact is one thing that is stored, or required, at a site.
type fact struct {
	site
	digest [16]byte
	mark   mark
}

// mark says whether a stored copy is marked.
type mark uint8

const (
	markNone  mark = iota
	markYoung      // a change that has marked the copy may be under way; in any case, readers follow it
	markOld        // no such change can commit any more
)

// collector collects the sites of some buckets at which required and stored facts differ. It drops a site as
// soon as its required and stored facts match.
type collector struct {
	chosen [tally.Buckets]bool
	open   map[site]*collected
}

// collected is what was seen of a site.
type collected struct {
	sum    tally.Sum
	wanted bool
	mark   mark
}

func (c *collector) count(n *noted) {
	s := c.open[n.fact.site]
	if s == nil {
		s = &collected{}
		c.open[n.fact.site] = s
	}
	s.sum.Count(n.value, n.wanted)
	s.wanted, s.mark = s.wanted || n.wanted, max(s.mark, n.fact.mark)
	if s.sum == (tally.Sum{}) {
		delete(c.open, n.fact.site)
	}
}

// candidates returns the sites that still differ, sorted. It leaves out copies with a young mark, which are right.
func (c *collector) candidates() []*candidate {
	list := make([]*candidate, 0, len(c.open))
	for at, s := range c.open {
		if s.mark != markYoung {
			list = append(list, &candidate{site: at, wanted: s.wanted, old: s.mark == markOld})
		}
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.area, b.area), cmp.Compare(a.entity.Partition, b.entity.Partition),
			cmp.Compare(a.entity.Row, b.entity.Row), cmp.Compare(a.place, b.place))
	})
	return list
}

// hasher makes digests. It is not safe for concurrent use.
type hasher struct {
	scratch []byte
	sorted  tables.Properties
	same    *tables.Property // first property of the properties that were digested last; length is their number, last their digest
	length  int
	last    [16]byte
}

// text appends a text with its length, so that different lists of texts give different bytes.
func (h *hasher) text(s string) {
	h.scratch = binary.AppendUvarint(h.scratch, uint64(len(s)))
	h.scratch = append(h.scratch, s...)
}

func (h *hasher) sum() (digest [16]byte) {
	full := sha256.Sum256(h.scratch)
	return [16]byte(full[:16])
}

// place returns a fact's bucket, which depends on its site only, and its value.
func (h *hasher) place(f *fact) (bucket uint16, value tally.Sum) {
	h.scratch = binary.AppendUvarint(h.scratch[:0], uint64(f.area))
	h.text(f.place)
	h.text(f.entity.Partition)
	h.text(f.entity.Row)
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	n := uint64(offset)
	for _, c := range h.scratch {
		n = (n ^ uint64(c)) * prime
	}
	h.scratch = append(h.scratch, f.digest[:]...)
	d := h.sum()
	return uint16((n ^ n>>32) % tally.Buckets), tally.Sum{binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:])}
}

// row digests a row's properties, in whatever order they come, and the mark of the entity's version.
func (h *hasher) row(p tables.Properties, mark string) [16]byte {
	inner := h.properties(p)
	h.scratch = append(h.scratch[:0], inner[:]...)
	h.text(mark)
	return h.sum()
}

// properties digests properties. It returns the last digest if p is the same slice, as for most copies of an
// entity.
func (h *hasher) properties(p tables.Properties) [16]byte {
	if len(p) > 0 && h.same == &p[0] && h.length == len(p) {
		return h.last
	}
	byName := func(a, b tables.Property) int { return cmp.Compare(a.Name, b.Name) }
	sorted := p
	if !slices.IsSortedFunc(p, byName) {
		h.sorted = append(h.sorted[:0], p...)
		slices.SortFunc(h.sorted, byName)
		sorted = h.sorted
	}
	h.scratch = h.scratch[:0]
	for i := range sorted {
		h.scratch = edm.AppendProperty(append(h.scratch, ','), sorted[i].Name, edm.Value(sorted[i].Value))
	}
	d := h.sum()
	if len(p) > 0 {
		h.same, h.length, h.last = &p[0], len(p), d
	}
	return d
}
