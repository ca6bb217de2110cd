package jobs

import (
	"context"
	"maps"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

const (
	// runFacts is the minimum number of facts in a run of partitions before its sums are compared. Shorter runs report
	// differences earlier and limit the second scan.
	runFacts = 50_000
	// openFacts is the approximate number of facts compared at once, which limits the memory.
	openFacts = 100_000
)

// ranges returns the ranges of the entities' table to read.
func (j *job) ranges() []rangescan.Range { return tablescan.Partitions(j.options.Partitions) }

// scanEntities scans the entities' table. Whenever a run of partitions has ended and is read completely, it
// compares the run's sums.
func (j *job) scanEntities(ctx context.Context) error {
	if err := j.compareRun(ctx); err != nil {
		return err
	}
	s := &j.state
	for page, err := range j.entities(j.ranges(), aim{first: true, nearby: j.near, outside: j.far()}).Pages(ctx, s.Scan) {
		if err != nil {
			return err
		}
		j.take(page.Content, &page.At)
		s.Scan = page.Rest
		maps.DeleteFunc(s.Open, func(partition string, _ bool) bool { return !page.Rest.Has(partition) })
		if err := j.afterPage(ctx); err != nil {
			return err
		}
		if err := j.compareRun(ctx); err != nil {
			return err
		}
	}
	j.closeRun()
	return j.compareRun(ctx)
}

// entities scans ranges of the entities' table. It reads only the entities' own rows if the schema has a span
// and the scan needs no other rows of the table.
func (j *job) entities(ranges []rangescan.Range, a aim) tablescan.Scan[*factPage] {
	scan := j.scan(j.r.Table, ranges, a, func(ctx context.Context, pg *factPage, row *tablerow.Row) error { return pg.visit(ctx, row) })
	if !a.nearby && j.r.Schema.Own.Span != (compoundkey.Span{}) && (j.scope != nil || j.outsideIn(j.r.Table) < 0) {
		scan.Span = j.r.Primary.Span
	}
	return scan
}

// runAt returns the run to which the rows after a point belong. A partition of which rows were counted keeps
// its run, even if a reader scans it from the beginning again.
func (j *job) runAt(at rangescan.Point) *partitionRun {
	if _, open := j.state.Open[at.Partition]; at.Side == rangescan.Behind || at.Border() && !open {
		return j.state.Near
	}
	return j.runOf(at.Partition)
}

// runOf returns the run that the rows of a partition belong to, and begins a new run if necessary. A run ends
// only before a partition that no reader has begun; on Cosmos DB, where rows are unordered, a scan of the
// table has only one run.
func (j *job) runOf(partition string) *partitionRun {
	s := &j.state
	if closing, open := s.Open[partition]; open && closing {
		return s.Closing
	} else if open || j.scope == nil && j.r.Table.Account().IsCosmos() {
		return s.Near
	}
	if s.Near.sums.Facts >= j.options.RunFacts {
		j.closeRun()
	}
	if s.Open == nil {
		s.Open = map[string]bool{}
	}
	s.Open[partition] = false
	return s.Near
}

// closeRun ends the current run, unless the previous run still waits to be compared. The ended run is compared once all
// its partitions have been read to their ends.
func (j *job) closeRun() {
	s := &j.state
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
func (j *job) border(from rangescan.Point, end *rangescan.Point) *rangescan.Point {
	if j.scope == nil || end == nil || !end.Border() || *end == from { // on Azure Cosmos DB, only the last page of a partition has a range that is not empty
		return end
	}
	for _, partition := range j.options.Partitions {
		if compoundkey.Compare(partition, end.Partition) > 0 {
			return &rangescan.Point{Partition: partition}
		}
	}
	return nil
}

// compareRun compares the run of partitions that has ended, if there is one and all its partitions were read.
func (j *job) compareRun(ctx context.Context) error {
	run := j.state.Closing
	for _, closing := range j.state.Open {
		if closing {
			return nil
		}
	}
	if run == nil {
		return nil
	}
	err := j.compareSums(ctx, &run.sums, &run.Group, func(c *collector) error {
		return j.drain(ctx, j.entities(j.within(run.Spans), aim{nearby: true, to: c}))
	})
	if err == nil {
		j.state.Closing = nil
	}
	return err
}

// within returns the ranges of the entities' table that a run covers.
func (j *job) within(spans rangescan.Union) []rangescan.Range {
	if j.scope == nil {
		return spans
	}
	return slices.DeleteFunc(j.ranges(), func(r rangescan.Range) bool { return !spans.Covers(r.From) })
}

// drain runs a scan to its end.
func (j *job) drain(ctx context.Context, scan tablescan.Scan[*factPage]) error {
	for page, err := range scan.Pages(ctx, tablescan.State{}) {
		if err != nil {
			return err
		}
		j.take(page.Content, nil)
		j.progressed()
	}
	return nil
}

// compareSums reads the facts of the unequal buckets again with collect, and compares them one by one. It
// processes one group of buckets after another, so that the facts fit in memory, and begins with *group.
func (j *job) compareSums(ctx context.Context, s *sums, group *int, collect func(*collector) error) error {
	unequal := s.unequal()
	size := int(max(1, j.options.OpenFacts*buckets/max(1, s.Facts)))
	for from := *group * size; from < len(unequal); from = *group * size {
		c := &collector{open: map[site]*collected{}}
		for _, bucket := range unequal[from:min(from+size, len(unequal))] {
			c.chosen[bucket] = true
		}
		if err := collect(c); err != nil {
			return err
		}
		if err := j.differ(ctx, c.candidates()); err != nil {
			return err
		}
		*group++
		j.progressed()
	}
	return nil
}

// scanOutside scans the tables of outside copies, except the entities' own table.
func (j *job) scanOutside(ctx context.Context) error {
	for ; j.state.Part < len(j.areas); j.state.Part++ {
		if !j.apart(j.state.Part) {
			continue
		}
		for page, err := range j.outsideRows(j.state.Part, aim{first: true, outside: true}).Pages(ctx, j.state.Scan) {
			if err != nil {
				return err
			}
			j.take(page.Content, nil)
			if page.Rest.Over(1) {
				break
			}
			j.state.Scan = page.Rest
			if err := j.afterPage(ctx); err != nil {
				return err
			}
		}
		j.state.Scan = tablescan.State{}
	}
	return nil
}

// apart reports whether an area is a table of outside copies with a scan of its own.
func (j *job) apart(at int) bool {
	a := &j.areas[at]
	return j.comparesOutside(a) && (j.scope != nil || !a.table.Same(j.r.Table))
}

// fewPartitions is the largest number of the entities' partitions for which the query of an outside table has a
// filter.
const fewPartitions = 10

func (j *job) outsideRows(at int, a aim) tablescan.Scan[*factPage] {
	scan := j.scan(j.areas[at].table, tablescan.Partitions(nil), a, func(_ context.Context, pg *factPage, row *tablerow.Row) error {
		pg.enter(row.Key.Partition)
		if row.Problem != nil {
			pg.unreadable(j.areas[at].table, row)
			return nil
		}
		pg.visitOutside(at, row)
		return nil
	})
	if n := len(j.options.Partitions); n == 0 || n > fewPartitions {
		return scan
	}
	var partitions []entity.Condition
	for _, p := range j.options.Partitions {
		partitions = append(partitions, entity.Eq(rows.Partition, p))
	}
	scan.Where = []entity.Condition{entity.Or(partitions...)}
	return scan
}

// scanHeld lists the facts that all auditors have stored.
func (j *job) scanHeld(ctx context.Context) error {
	for ; j.state.Part < len(j.areas); j.state.Part++ {
		if err := j.held(ctx, j.state.Part, aim{first: true, outside: true}); err != nil {
			return err
		}
	}
	return nil
}

// held lists the facts that one auditor has stored. They are in the token only when the list is complete, so a
// run that was interrupted within the list reads the list again.
func (j *job) held(ctx context.Context, at int, a aim) error {
	p := j.areas[at].auditor
	if p == nil || j.op == Rebuild {
		return nil
	}
	j.checkpoint.set(&j.state)
	j.listing = true
	defer func() { j.listing = false }()
	pg := &factPage{job: j, aim: a}
	for held, err := range p.Effect.List(ctx, driver.Scope{Partitions: j.options.Partitions}) {
		if err != nil {
			return engine.PatternError(p, err, entity.ErrGarbled)
		}
		if pg.visitHeld(at, &held); pg.rows == entity.MaxPageSize {
			j.take(pg, nil)
			pg = &factPage{job: j, aim: a}
			if err := j.flush(ctx); err != nil {
				return err
			}
			j.progressed()
		}
	}
	j.take(pg, nil)
	return j.flush(ctx)
}

// compareFar compares the sums of all areas except the near one.
func (j *job) compareFar(ctx context.Context) error {
	err := j.compareSums(ctx, &j.state.far, &j.state.Group, func(c *collector) error {
		again := aim{outside: true, to: c}
		if err := j.drain(ctx, j.entities(j.ranges(), again)); err != nil {
			return err
		}
		for at := range j.areas {
			if j.apart(at) {
				if err := j.drain(ctx, j.outsideRows(at, again)); err != nil {
					return err
				}
			}
			if err := j.held(ctx, at, again); err != nil {
				return err
			}
		}
		return nil
	})
	j.state.far, j.state.Group = sums{}, 0
	return err
}

// differ processes the places at which a scan has found a difference.
func (j *job) differ(ctx context.Context, all []*candidate) error {
	if j.op == Rebuild {
		return j.fillDiffering(ctx, all)
	}
	return j.confirm(ctx, all)
}

// afterPage passes the rows and facts that could not be read, and then the progress, to the caller.
func (j *job) afterPage(ctx context.Context) error {
	if err := j.flush(ctx); err != nil {
		return err
	}
	j.progressed()
	return ctx.Err()
}

// flush passes the rows and facts that could not be read to the caller.
func (j *job) flush(ctx context.Context) error {
	found := j.found
	j.found = nil
	return j.hand(ctx, found)
}
