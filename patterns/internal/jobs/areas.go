package jobs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// area is one table, or one pattern with Effect.List (an auditor), that stores something for entities.
type area struct {
	table   *core.Table              // the table that stores the rows; nil for an auditor
	outside []*driver.Implementation // the patterns that have outside copies in the table
	auditor *driver.Implementation
	lag     time.Duration // how long a difference must persist before it is a finding
}

// name returns the name of the table, "" for an auditor.
func (a *area) name() string {
	if a.table == nil {
		return ""
	}
	return a.table.Name()
}

// nearArea is the index of the area with the further rows and copies in the entities' own partitions.
const nearArea = 0

// addAreas adds all areas of which a pattern is chosen.
func (j *job) addAreas() {
	j.areas = []area{{table: j.r.Table}}
	j.near = j.op != Rebuild && (j.r.Layout != nil && j.chosen(j.r.Layout.Name) ||
		slices.ContainsFunc(j.r.Copies, func(p *driver.Implementation) bool { return j.chosen(p.Name) }))
	for _, p := range j.r.Outside {
		j.addOutside(p)
	}
	for _, p := range j.r.Patterns {
		if p.Effect.List != nil && j.chosen(p.Name) {
			a := area{auditor: p, lag: j.options.Lag}
			if p.Effect.Remove != nil {
				a.lag = 0 // the facts are written in the entity's own transaction
			}
			j.areas = append(j.areas, a)
		}
	}
}

// addOutside adds the table in which a pattern stores its copies. If several patterns use the table, the area
// has all of them, since a row does not name its pattern.
func (j *job) addOutside(p *driver.Implementation) {
	table := engine.OutsideTable(p)
	wanted := slices.ContainsFunc(j.r.Outside, func(q *driver.Implementation) bool {
		return j.chosen(q.Name) && engine.OutsideTable(q).Same(table)
	})
	if !wanted {
		return
	}
	for i := range j.areas {
		if a := &j.areas[i]; len(a.outside) > 0 && a.table.Same(table) {
			a.outside = append(a.outside, p)
			return
		}
	}
	j.areas = append(j.areas, area{table: table, outside: []*driver.Implementation{p}})
}

// chosen reports whether a pattern is verified. For a finding without a pattern it returns true.
func (j *job) chosen(pattern string) bool {
	return pattern == "" || j.options.Patterns == nil || slices.Contains(j.options.Patterns, pattern)
}

// compared reports whether copies of a pattern in other partitions are compared: Rebuild inserts those that are mostly missing without.
func (j *job) compared(pattern string) bool {
	return j.chosen(pattern) && !slices.Contains(j.state.Empty, pattern)
}

// mine reports whether an entity is in the scope and, judging by its key, belongs to the repository.
func (j *job) mine(key entity.Key) bool {
	return (j.scope == nil || j.scope[key.Partition]) && j.r.Schema.Own.Keeps(key)
}

// outsideIn returns the index of the area of outside copies in a table that are compared, or -1.
func (j *job) outsideIn(table *core.Table) int {
	return slices.IndexFunc(j.areas, func(a area) bool { return a.table != nil && a.table.Same(table) && j.comparesOutside(&a) })
}

// comparesOutside reports whether copies in an area are compared.
func (j *job) comparesOutside(a *area) bool {
	return slices.ContainsFunc(a.outside, func(p *driver.Implementation) bool { return j.compared(p.Name) })
}

// far reports whether the run has other areas than the near one.
func (j *job) far() bool { return len(j.areas) > 1 }

// ownerName returns the name of the pattern that owns an outside row, if the row's key shows it. known is false
// if the row can only be one of another repository.
func (a *area) ownerName(key entity.Key) (name string, known bool) {
	open := 0
	for _, p := range a.outside {
		switch owns := p.Outside.Owns; {
		case owns == nil:
			open++
		case owns(key):
			return p.Name, true
		}
	}
	if len(a.outside) == 1 && open == 1 {
		return a.outside[0].Name, true
	}
	return prefixOf(key.Partition, a.outside), open > 0
}

// named reports whether a key has the form of an index's key: the index's name, alone or with "_" and parts behind it.
func named(name, key string) bool { return key == name || strings.HasPrefix(key, name+"_") }

// prefixOf guesses the owner of a key that no entity requires.
func prefixOf(key string, candidates []*driver.Implementation) string {
	for _, p := range candidates {
		if named(p.Name, key) {
			return p.Name
		}
	}
	return ""
}

// aim says which facts a scan collects.
type aim struct {
	first   bool       // the rows are read for the first time
	nearby  bool       // facts of the near area
	outside bool       // facts of the other areas
	to      *collector // takes the facts that belong to its buckets; nil if the scan adds all facts to the sums
}

// factPage holds the facts that a reader collects from one page of rows. The run's state changes only when the page
// is complete and the run calls take.
type factPage struct {
	*job
	aim
	hash     hasher
	stretch  []stretch
	facts    []noted
	rows     int64
	entities int64
	marked   int64
	copies   stocks
	found    []*finding
}

// stretch marks where the rows of one partition begin on a page.
type stretch struct {
	partition string
	facts     int // number of facts noted before the stretch
}

// noted is a fact that a reader has found on the page, with what is needed to add it to the sums once the page is finished.
type noted struct {
	value  sum
	fact   *fact // nil if the scan adds facts to the sums
	bucket uint16
	near   bool
	wanted bool
}

// enter records the partition of the next row.
func (pg *factPage) enter(partition string) {
	pg.rows++
	pg.hash.same = nil // the memory that same points to may be reused for the next row
	if n := len(pg.stretch); n == 0 || pg.stretch[n-1].partition != partition {
		pg.stretch = append(pg.stretch, stretch{partition, len(pg.facts)})
	}
}

// count adds a fact to the page. wanted says whether it is required or stored.
func (pg *factPage) count(f *fact, wanted bool) {
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
func (j *job) scan(table *core.Table, ranges []rangescan.Range, a aim, visit func(context.Context, *factPage, *tablerow.Row) error) tablescan.Scan[*factPage] {
	return tablescan.Scan[*factPage]{Table: table, Ranges: ranges, Readers: j.options.Concurrency, Size: j.options.PageSize,
		New: func() *factPage { return &factPage{job: j, aim: a} },
		Row: func(ctx context.Context, pg *factPage, row *tablerow.Row) error {
			return visit(ctx, pg, row)
		},
	}
}

// take adds a complete page to the state. at is the page's range in the entities' table, nil for a page of
// another table or of a second scan.
func (j *job) take(pg *factPage, at *rangescan.Range) {
	s := &j.state
	if s.Copies = s.Copies.with(pg.copies); j.compares() {
		s.Report.Rows += pg.rows
		s.Report.Read += pg.entities
		s.Report.Marked += pg.marked
		j.rowsHere += pg.rows
	}
	j.found = append(j.found, pg.found...)
	if !pg.nearby || pg.to != nil || at == nil {
		j.countAll(pg, pg.facts, s.Near)
		return
	}
	run, from := j.runAt(at.From), at.From
	for i, part := range pg.stretch {
		if next := j.runOf(part.partition); next != run {
			border := rangescan.Point{Partition: part.partition}
			run.Spans = run.Spans.With(rangescan.Range{From: from, To: &border})
			run, from = next, border
		}
		end := len(pg.facts)
		if i+1 < len(pg.stretch) {
			end = pg.stretch[i+1].facts
		}
		j.countAll(pg, pg.facts[part.facts:end], run)
	}
	run.Spans = run.Spans.With(rangescan.Range{From: from, To: j.border(from, at.To)})
}

// countAll adds facts to the page's collector, if it has one. Otherwise it adds facts of the near area to run's
// sums, and all others to the state's far sums.
func (j *job) countAll(pg *factPage, facts []noted, run *partitionRun) {
	for i := range facts {
		n := &facts[i]
		switch {
		case pg.to != nil:
			pg.to.count(n)
		case n.near:
			run.sums.count(n.bucket, n.value, n.wanted)
		default:
			j.state.far.count(n.bucket, n.value, n.wanted)
		}
	}
}
