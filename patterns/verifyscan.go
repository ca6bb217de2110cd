package patterns

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// phase is one step of a run.
type phase uint8

const (
	phaseEntities phase = iota // scan the entities' table and compare it run by run
	phaseOutside               // scan the tables of outside copies
	phaseHeld                  // list what auditors hold
	phaseFar                   // compare the sums of the previous two phases
	phaseDone
)

// runFacts is the minimum number of facts in a run of partitions before its sums are compared. Shorter runs report
// differences earlier and limit the second scan.
const runFacts = 50_000

// openFacts is the approximate number of facts compared at once, which limits the memory.
const openFacts = 100_000

// partitionRun is a run of consecutive partitions whose rows are compared together.
type partitionRun struct {
	From, To         *string // for a scan of the table: first partition, and the one after the last; nil is unbounded
	FromPart, ToPart int     // for a list of partitions
	Group            int     // buckets with unequal sums; earlier ones are compared already
	sums             sums
}

// run scans, compares and reports, starting at the position in the state.
func (v *verifier) run(ctx context.Context) error {
	steps := [...]func(context.Context) error{v.scanEntities, v.scanOutside, v.scanHeld, v.compareFar}
	if v.scope != nil && len(v.scope) == 0 {
		return nil
	}
	for v.state.Phase < phaseDone {
		if err := steps[v.state.Phase](ctx); err != nil {
			return err
		}
		v.state.Phase++
		v.state.Part, v.state.Page = 0, ""
		v.progressed()
	}
	return nil
}

// parts is the number of scans of the entities' table: one for each partition, or one.
func (v *verifier) parts() int {
	if v.scope == nil {
		return 1
	}
	return len(v.options.Partitions)
}

// scanEntities scans the entities' table for the first time. It compares each run of partitions once the run is long
// enough.
func (v *verifier) scanEntities(ctx context.Context) error {
	if err := v.compareRun(ctx); err != nil {
		return err
	}
	for v.state.Part < v.parts() {
		v.aim(true, v.nearSums(), v.farSums())
		page, err := v.entities(v.state.Part, v.near).Page(ctx, v.state.Page)
		if err != nil {
			return err
		}
		if v.state.Page = page.Next; page.Next == "" {
			v.state.Part++
			v.endPartition()
		}
		if err := v.afterPage(ctx); err != nil {
			return err
		}
		if err := v.compareRun(ctx); err != nil {
			return err
		}
	}
	v.closeRun(nil)
	return v.compareRun(ctx)
}

// aim selects the tallies for the facts of the next rows.
func (v *verifier) aim(first bool, near, far tally) {
	v.first, v.nearTo, v.farTo = first, near, far
}

func (v *verifier) nearSums() tally {
	if !v.near {
		return nil
	}
	return &v.state.Near.sums
}

func (v *verifier) farSums() tally {
	if !v.far() {
		return nil
	}
	return &v.state.far
}

// entities is the query of one part of the entities' table. copies includes the further rows.
func (v *verifier) entities(part int, copies bool) tables.Query[tables.RawRow] {
	q := v.rowsOf(v.r.Table, func(ctx context.Context, row *engine.StoredRow) error {
		if v.first && v.scope == nil {
			v.enter(row.Key.Partition)
		}
		return v.visit(ctx, row)
	})
	if !copies && v.r.Schema.RowPrefix != "" && (v.scope != nil || v.outsideIn(v.r.Table) < 0) {
		q = q.Rows(v.r.Primary.Span)
	}
	if v.scope != nil {
		return q.Partition(v.options.Partitions[part])
	}
	return q.AllowTableScan()
}

// rowsOf returns a query that passes each row to a function while it is read, and stores none.
func (v *verifier) rowsOf(table *tables.Table, visit func(context.Context, *engine.StoredRow) error) tables.Query[tables.RawRow] {
	return engine.Raw(table).Visit(func(ctx context.Context, row *tables.RawRow) error { return visit(ctx, engine.RowOf(row)) })
}

// enter records the partition of the next row of a table scan. A run can end before a new partition; on Cosmos DB,
// where rows are unordered, there is only one run.
func (v *verifier) enter(partition string) {
	s := &v.state
	if s.At != nil && *s.At == partition {
		return
	}
	s.At = &partition
	if s.Near.sums.facts >= v.options.runFacts && s.Closing == nil && !v.r.Table.Account().IsCosmos() {
		v.closeRun(&partition)
		v.nearTo = v.nearSums()
	}
}

// endPartition is enter for a list of partitions.
func (v *verifier) endPartition() {
	if v.scope != nil && v.state.Near.sums.facts >= v.options.runFacts {
		v.closeRun(nil)
	}
}

// closeRun ends the run of partitions, to be compared after the current page; to is the first partition of the next
// run.
func (v *verifier) closeRun(to *string) {
	s := &v.state
	if s.Near.sums.facts == 0 || s.Closing != nil {
		return
	}
	s.Closing = s.Near
	s.Closing.To, s.Closing.ToPart = to, s.Part
	s.Near = &partitionRun{From: to, FromPart: s.Part}
}

// compareRun compares the run of partitions that has ended, if one has.
func (v *verifier) compareRun(ctx context.Context) error {
	run := v.state.Closing
	if run == nil {
		return nil
	}
	err := v.compareSums(ctx, &run.sums, &run.Group, func(c *collector) error {
		v.aim(false, c, nil)
		return v.rescan(ctx, run)
	})
	if err == nil {
		v.state.Closing = nil
	}
	return err
}

// rescan reads the partitions of a run once more.
func (v *verifier) rescan(ctx context.Context, run *partitionRun) error {
	if v.scope != nil {
		for part := run.FromPart; part < run.ToPart; part++ {
			if err := v.drain(ctx, v.entities(part, true)); err != nil {
				return err
			}
		}
		return nil
	}
	q := v.entities(0, true)
	if run.From != nil {
		q = q.Where(tables.Ge("PartitionKey", *run.From))
	}
	if run.To != nil {
		q = q.Where(tables.Lt("PartitionKey", *run.To))
	}
	return v.drain(ctx, q)
}

// drain reads a query to its end.
func (v *verifier) drain(ctx context.Context, q tables.Query[tables.RawRow]) error {
	for token := ""; ; {
		page, err := q.Page(ctx, token)
		if err != nil {
			return err
		}
		v.progressed()
		if token = page.Next; token == "" {
			return nil
		}
	}
}

// compareSums compares the facts behind unequal sums, in groups that fit in memory.
func (v *verifier) compareSums(ctx context.Context, s *sums, group *int, collect func(*collector) error) error {
	unequal := s.unequal()
	size := int(max(1, v.options.openFacts*buckets/max(1, s.facts)))
	for from := *group * size; from < len(unequal); from = *group * size {
		c := newCollector(unequal[from:min(from+size, len(unequal))])
		if err := collect(c); err != nil {
			return err
		}
		if err := v.confirm(ctx, c.candidates()); err != nil {
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
		for more := true; more; more = v.state.Page != "" {
			v.aim(true, nil, v.farSums())
			page, err := v.outsideRows(v.state.Part).Page(ctx, v.state.Page)
			if err != nil {
				return err
			}
			if page.Next == "" {
				break
			}
			v.state.Page = page.Next
			if err := v.afterPage(ctx); err != nil {
				return err
			}
		}
		v.state.Page = ""
	}
	return nil
}

// apart reports whether an area is a table of outside copies with a scan of its own.
func (v *verifier) apart(at int) bool {
	a := &v.areas[at]
	return len(a.outside) > 0 && (v.scope != nil || !a.table.Same(v.r.Table))
}

// fewPartitions is the largest number of partitions that the query of an outside table names in its filter.
const fewPartitions = 10

func (v *verifier) outsideRows(at int) tables.Query[tables.RawRow] {
	q := v.rowsOf(v.areas[at].table, func(_ context.Context, row *engine.StoredRow) error {
		v.countRow()
		v.hash.nextRow()
		v.visitOutside(at, row)
		return nil
	}).AllowTableScan()
	if n := len(v.options.Partitions); n == 0 || n > fewPartitions {
		return q
	}
	var partitions []tables.Condition
	for _, p := range v.options.Partitions {
		partitions = append(partitions, tables.Eq(rows.Partition, p))
	}
	return q.Where(tables.Or(partitions...))
}

// scanHeld lists what all auditors hold.
func (v *verifier) scanHeld(ctx context.Context) error {
	for ; v.state.Part < len(v.areas); v.state.Part++ {
		v.aim(true, nil, v.farSums())
		if err := v.held(ctx, v.state.Part); err != nil {
			return err
		}
	}
	return nil
}

// held lists what one auditor holds. Its facts are added to the sums only when the list is complete, so a token given
// earlier makes a resumed run start this auditor again.
func (v *verifier) held(ctx context.Context, at int) error {
	p := v.areas[at].auditor
	if p == nil {
		return nil
	}
	v.checkpoint.set(&v.state)
	v.listing = true
	defer func() { v.listing = false }()
	for held, err := range p.Audit.List(ctx, driver.Scope{Partitions: v.options.Partitions}) {
		if err != nil {
			return engine.PatternError(p, err, tables.ErrGarbled)
		}
		if v.visitHeld(at, &held); v.rowsHere%tables.MaxPageSize == 0 {
			if err := v.flush(ctx); err != nil {
				return err
			}
			v.progressed()
		}
	}
	return v.flush(ctx)
}

// compareFar compares the sums of everything outside.
func (v *verifier) compareFar(ctx context.Context) error {
	return v.compareSums(ctx, &v.state.far, &v.state.Group, func(c *collector) error {
		v.aim(false, nil, c)
		for part := range v.parts() {
			if err := v.drain(ctx, v.entities(part, false)); err != nil {
				return err
			}
		}
		for at := range v.areas {
			if v.apart(at) {
				if err := v.drain(ctx, v.outsideRows(at)); err != nil {
					return err
				}
			}
			if err := v.held(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// afterPage reports what could not be read, and the progress.
func (v *verifier) afterPage(ctx context.Context) error {
	if err := v.flush(ctx); err != nil {
		return err
	}
	v.progressed()
	return ctx.Err()
}

// flush reports what could not be read.
func (v *verifier) flush(ctx context.Context) error {
	failures := v.failures
	v.failures = nil
	return v.hand(ctx, failures)
}
