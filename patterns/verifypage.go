package patterns

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// aim says which facts a scan collects.
type aim struct {
	first   bool       // the rows are read for the first time
	nearby  bool       // facts of the near area
	outside bool       // facts of the other areas
	to      *collector // takes the facts that belong to its buckets; nil if the scan adds all facts to the sums
}

// page holds the facts that a reader collects from one page of rows. The run's state does not change until
// the page is complete and the run calls take.
type page struct {
	*verifier
	aim
	hash     hasher
	stretch  []stretch
	facts    []noted
	rows     int64
	entities int64
	failures []*finding
}

// stretch marks where the rows of one partition begin on a page.
type stretch struct {
	partition string
	facts     int // number of facts noted before the stretch
}

// noted is a fact that a reader has found on the page, with what is needed to add it to the sums once the page is finished.
type noted struct {
	value  tally.Sum
	fact   *fact // nil if the scan adds facts to the sums
	bucket uint16
	near   bool
	wanted bool
}

// enter records the partition of the next row.
func (pg *page) enter(partition string) {
	pg.rows++
	pg.hash.nextRow()
	if n := len(pg.stretch); n == 0 || pg.stretch[n-1].partition != partition {
		pg.stretch = append(pg.stretch, stretch{partition, len(pg.facts)})
	}
}

// count notes a fact.
func (pg *page) count(f *fact, wanted bool) {
	bucket, value := pg.hash.place(f)
	n := noted{value: value, bucket: bucket, near: f.area == nearArea, wanted: wanted}
	if pg.to != nil {
		if !pg.to.chosen[bucket] {
			return
		}
		kept := *f
		n.fact = &kept
	}
	pg.facts = append(pg.facts, n)
}

// scan returns a scan of a table whose readers collect the facts of its rows with visit.
func (v *verifier) scan(table *tables.Table, ranges []rangescan.Range, a aim, visit func(context.Context, *page, *engine.StoredRow) error) tablescan.Scan[*page] {
	return tablescan.Scan[*page]{Table: table, Ranges: ranges, Readers: v.options.Concurrency, Size: v.options.pageSize,
		New: func() *page { return &page{verifier: v, aim: a} },
		Row: func(ctx context.Context, pg *page, row *tables.RawRow) error {
			return visit(ctx, pg, engine.RowOf(row))
		},
	}
}

// take adds a page to the state; at is the page's range in the entities' table, nil for a page of another table.
func (v *verifier) take(pg *page, at *rangescan.Range) {
	s := &v.state
	s.Rows += pg.rows
	v.rowsHere += pg.rows
	s.Entities += pg.entities
	v.failures = append(v.failures, pg.failures...)
	if !pg.nearby || pg.to != nil || at == nil {
		v.count(pg, pg.facts, s.Near)
		return
	}
	run, from := v.runAt(at.From), at.From
	for i, part := range pg.stretch {
		if next := v.runOf(part.partition); next != run {
			border := rangescan.Point{Partition: part.partition}
			run.Spans = run.Spans.With(rangescan.Range{From: from, To: &border})
			run, from = next, border
		}
		end := len(pg.facts)
		if i+1 < len(pg.stretch) {
			end = pg.stretch[i+1].facts
		}
		v.count(pg, pg.facts[part.facts:end], run)
	}
	run.Spans = run.Spans.With(rangescan.Range{From: from, To: v.border(from, at.To)})
}

// count adds facts to the page's collector, if it has one. Otherwise it adds near facts to the sums of run, and all others to the sums
// of what is outside.
func (v *verifier) count(pg *page, facts []noted, run *partitionRun) {
	for i := range facts {
		n := &facts[i]
		switch {
		case pg.to != nil:
			pg.to.count(n.value, n.fact, n.wanted)
		case n.near:
			run.sums.Count(n.bucket, n.value, n.wanted)
		default:
			v.state.far.Count(n.bucket, n.value, n.wanted)
		}
	}
}
