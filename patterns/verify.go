package patterns

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/sharedlocks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/readiness"
	"github.com/tablepatterns/tablepatterns/patterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// audit implements Repository.Verify and Repository.Repair; op is the name of one of them.
func audit(ctx context.Context, r *engine.Engine, op string, o *JobOptions) (tables.Report, error) {
	v, err := newVerifier(r, op, o)
	if err == nil {
		err = v.begin()
	}
	if err != nil {
		return tables.Report{}, err
	}
	ctx, span := (*core.Account)(r.Table.Account()).Telemetry().Begin(ctx, telemetry.Tables, op, r.Table.Name())
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	if err = v.run(pace.With(ctx, v.options.RowsPerSecond), phaseDone); err == nil {
		err = v.settleMarked(ctx)
	}
	report := v.report()
	if err == nil {
		report.Resume = ""
		if report.Read == 0 && v.scope == nil {
			report.Unmatched = readiness.NameUnmatched(ctx, r)
		}
	}
	return report, err
}

// hand repairs findings if the job is Repair, and passes them to the caller.
func (v *verifier) hand(ctx context.Context, findings []*finding) error {
	var err error
	if v.op == opRepair {
		err = v.repairAll(ctx, findings)
	}
	if told := v.tell(findings, &v.state.Findings); err == nil {
		err = told
	}
	return err
}

// tell passes findings to the caller, and counts them.
func (v *verifier) tell(findings []*finding, given *int64) error {
	for _, f := range findings {
		if *given++; v.options.Found == nil {
			continue
		}
		if err := v.options.Found(f.Finding); err != nil {
			return err
		}
	}
	return nil
}

// progressed makes the run resumable from its current position and calls the caller's Progress. While it reads
// the list of an auditor (a pattern with Effect.List), the run remains resumable only from the position before
// that list.
func (v *verifier) progressed() {
	if !v.listing {
		v.checkpoint.set(&v.state)
	}
	if v.options.Progress != nil {
		v.options.Progress(v.report())
	}
}

// report returns the counts of the run, and the token of its last checkpoint.
func (v *verifier) report() tables.Report {
	s := &v.state
	p := tables.Report{Read: s.Entities, Rows: s.Rows, Candidates: s.Candidates, Findings: s.Findings, Repaired: s.Repaired, Marked: s.Marked,
		Elapsed: time.Since(v.began), Resume: v.options.Resume}
	switch {
	case v.checkpoint.Phase == phaseDone:
		p.Resume = ""
	case v.checkpoint.Version != 0:
		p.Resume = v.checkpoint.text()
	}
	if v.scope != nil {
		p.PartitionsDone = s.Scan.Done()
		if s.Phase > phaseEntities {
			p.PartitionsDone = len(v.options.Partitions)
		}
	}
	p.Estimate = v.estimate(p.PartitionsDone)
	if left := p.Estimate - s.Rows; left > 0 && v.rowsHere > 0 {
		p.ETA = time.Duration(float64(time.Since(v.began)) * float64(left) / float64(v.rowsHere))
	}
	return p
}

// estimate returns the number of rows that the run will read: JobOptions.Rows, or an extrapolation from the
// partitions that are done; 0 if unknown.
func (v *verifier) estimate(done int) int64 {
	switch {
	case v.options.Rows > 0:
		return max(v.options.Rows, v.state.Rows)
	case v.far() || done == 0:
		return 0 // the number of rows in the outside tables is unknown
	}
	return v.state.Rows * int64(len(v.options.Partitions)) / int64(done)
}

// area is one table, or one pattern with Effect.List (an auditor), that stores something for entities.
type area struct {
	table   *core.Table              // the table that stores the rows; nil for an auditor
	outside []*driver.Implementation // the patterns that have outside copies in the table
	auditor *driver.Implementation
	lag     time.Duration // how long a difference must persist before it is a finding
}

// nearArea is the index of the area with the further rows and copies in the entities' own partitions.
const nearArea = 0

// verifier is one run of Verify or Repair.
type verifier struct {
	r       *engine.Engine
	op      string
	options JobOptions
	areas   []area
	scope   map[string]bool                           // the entities' partitions, nil for all
	near    bool                                      // the near area is verified
	locks   sharedlocks.Locks                         // for Repair and Rebuild
	id      string                                    // of the marks that the run writes
	mu      sync.Mutex                                // for marked
	differ  func(context.Context, []*candidate) error // gets the candidates of the second scans

	state    verifyState
	failures []*finding // findings of rows and facts that cannot be read, not yet passed to the caller
	began    time.Time
	rowsHere int64 // rows read by this run

	checkpoint verifyState   // a copy of state at the position from which the run can be resumed; zero before the first
	marked     []*markedSite // what Repair has marked, to be settled at its end
	listing    bool          // an auditor's list is being read, so checkpoint keeps the position before it
}

func newVerifier(r *engine.Engine, op string, o *JobOptions) (*verifier, error) {
	options, err := o.checked(op, r.Patterns)
	if err != nil {
		return nil, errs.Wiringf(op, r.Table.Name(), "%w", err)
	}
	v := &verifier{r: r, op: op, options: options, id: tablerow.NewWriteID(), areas: []area{{table: r.Table}}, began: time.Now()}
	v.differ = v.confirm
	if options.Partitions != nil {
		v.scope = map[string]bool{}
		for _, p := range options.Partitions {
			v.scope[p] = true
		}
	}
	v.near = r.Layout != nil && v.chosen(r.Layout.Name) ||
		slices.ContainsFunc(r.Copies, func(p *driver.Implementation) bool { return v.chosen(p.Name) })
	for _, p := range r.Outside {
		v.addOutside(p)
	}
	for _, p := range r.Patterns {
		if p.Effect.List != nil && v.chosen(p.Name) {
			a := area{auditor: p, lag: v.options.Lag}
			if p.Effect.Remove != nil {
				a.lag = 0 // the facts are written in the entity's own transaction
			}
			v.areas = append(v.areas, a)
		}
	}
	return v, nil
}

// addOutside adds the table in which a pattern stores its copies. If several patterns use the table, the area
// has all of them, since a row does not name its pattern.
func (v *verifier) addOutside(p *driver.Implementation) {
	table := engine.OutsideTable(p)
	wanted := slices.ContainsFunc(v.r.Outside, func(q *driver.Implementation) bool {
		return v.chosen(q.Name) && engine.OutsideTable(q).Same(table)
	})
	if !wanted {
		return
	}
	for i := range v.areas {
		if a := &v.areas[i]; len(a.outside) > 0 && a.table.Same(table) {
			a.outside = append(a.outside, p)
			return
		}
	}
	v.areas = append(v.areas, area{table: table, outside: []*driver.Implementation{p}})
}

// chosen reports whether a pattern is verified. For a finding without a pattern it returns true.
func (v *verifier) chosen(pattern string) bool {
	return pattern == "" || v.options.Patterns == nil || slices.Contains(v.options.Patterns, pattern)
}

// mine reports whether an entity is in the scope and, judging by its key, belongs to the repository.
func (v *verifier) mine(entity tables.Key) bool {
	return (v.scope == nil || v.scope[entity.Partition]) && v.r.Schema.Own.Keeps(entity)
}

// outsideIn returns the index of the area of outside copies in a table, or -1.
func (v *verifier) outsideIn(table *core.Table) int {
	return slices.IndexFunc(v.areas, func(a area) bool { return len(a.outside) > 0 && a.table.Same(table) })
}

// far reports whether the run has other areas than the near one.
func (v *verifier) far() bool { return len(v.areas) > 1 }

// ownerName returns the name of the pattern that owns an outside row, if the row's key shows it. known is false
// if the row can only be one of another repository.
func (a *area) ownerName(key tables.Key) (name string, known bool) {
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

// prefixOf guesses the owner of a key that no entity requires. The keys that the index packages make are the
// index's name, alone or followed by "_" and further parts.
func prefixOf(key string, candidates []*driver.Implementation) string {
	for _, p := range candidates {
		if name := p.Name; key == name || strings.HasPrefix(key, name+"_") {
			return name
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

// page holds the facts that a reader collects from one page of rows. The run's state changes only when the page
// is complete and the run calls take.
type page struct {
	*verifier
	aim
	hash     hasher
	stretch  []stretch
	facts    []noted
	rows     int64
	entities int64
	marked   int64
	copies   stocks
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
	pg.hash.same = nil // the memory that same points to may be reused for the next row
	if n := len(pg.stretch); n == 0 || pg.stretch[n-1].partition != partition {
		pg.stretch = append(pg.stretch, stretch{partition, len(pg.facts)})
	}
}

// count adds a fact to the page. wanted says whether it is required or stored.
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
func (v *verifier) scan(table *core.Table, ranges []rangescan.Range, a aim, visit func(context.Context, *page, *tablerow.Row) error) tablescan.Scan[*page] {
	return tablescan.Scan[*page]{Table: table, Ranges: ranges, Readers: v.options.Concurrency, Size: v.options.pageSize,
		New: func() *page { return &page{verifier: v, aim: a} },
		Row: func(ctx context.Context, pg *page, row *tablerow.Row) error {
			return visit(ctx, pg, row)
		},
	}
}

// take adds a complete page to the state. at is the page's range in the entities' table, nil for a page of
// another table or of a second scan.
func (v *verifier) take(pg *page, at *rangescan.Range) {
	s := &v.state
	s.Rows += pg.rows
	v.rowsHere += pg.rows
	s.Entities += pg.entities
	s.Marked += pg.marked
	s.Copies = s.Copies.with(pg.copies)
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

// count adds facts to the page's collector, if it has one. Otherwise it adds facts of the near area to run's
// sums, and all others to the state's far sums.
func (v *verifier) count(pg *page, facts []noted, run *partitionRun) {
	for i := range facts {
		n := &facts[i]
		switch {
		case pg.to != nil:
			pg.to.count(n)
		case n.near:
			run.sums.Count(n.bucket, n.value, n.wanted)
		default:
			v.state.far.Count(n.bucket, n.value, n.wanted)
		}
	}
}

// verifyState is the position of a run, as its token stores it.
type verifyState struct {
	Version int
	Run     string // fingerprint of the options and the table
	Phase   phase
	Part    int // index of the area that is scanned
	Scan    tablescan.State
	Near    *partitionRun
	Closing *partitionRun   // the run that is compared once all its partitions are read
	Open    map[string]bool // the partitions that are read in part, and whether they belong to Closing
	Group   int             // next group of far's unequal buckets

	Entities, Rows, Candidates, Repaired, Marked int64
	Findings                                     int64 `json:"Discrepancies"` // the name in tokens of earlier builds

	Copies stocks

	NearFacts, ClosingFacts, FarFacts int64 // number of facts in the sums; the token has the sums after the JSON

	far tally.Sums
}

// stock counts the copies of a pattern in other partitions.
type stock struct{ Required, Stored int64 }

// stocks are those of all patterns, by name.
type stocks map[string]stock

// with returns the sums of two stocks. It changes neither.
func (s stocks) with(more stocks) stocks {
	if len(more) == 0 {
		return s
	}
	sum := maps.Clone(s)
	if sum == nil {
		sum = stocks{}
	}
	for pattern, n := range more {
		sum[pattern] = stock{s[pattern].Required + n.Required, s[pattern].Stored + n.Stored}
	}
	return sum
}

// The versions of positions in JobOptions.Resume.
const (
	verifyVersion  = 2
	rebuildVersion = 3
)

// begin sets the state to the beginning of a run, or to the position in JobOptions.Resume.
func (v *verifier) begin() error {
	run := v.fingerprint()
	v.state = verifyState{Version: verifyVersion, Run: run, Near: &partitionRun{}}
	if v.options.Resume == "" {
		return nil
	}
	err := v.state.parse(v.options.Resume, run)
	ranges := tablescan.Partitions(nil)
	if v.state.Phase == phaseEntities {
		ranges = v.ranges()
	}
	if err == nil && !v.state.Scan.Valid(ranges) {
		err = errNowhere
	}
	if err != nil {
		return v.r.Invalid(v.op, tables.Key{}, err)
	}
	return nil
}

var errNowhere = errors.New("it has no position")

// fingerprint identifies a run's table, patterns and options.
func (v *verifier) fingerprint() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %t %q", v.r.Table.Account().Endpoints().Table, v.r.Table.Name(), v.scope == nil, v.options.Partitions)
	for i := range v.areas {
		a := &v.areas[i]
		if a.table != nil {
			fmt.Fprintf(h, " %q %q", a.table.Account().Endpoints().Table, a.table.Name())
		}
		for _, p := range a.outside {
			fmt.Fprintf(h, " %q", p.Name)
		}
		if a.auditor != nil {
			fmt.Fprintf(h, " auditor %q", a.auditor.Name)
		}
	}
	fmt.Fprintf(h, " %t %t %q", v.near, v.options.Patterns == nil, v.options.Patterns)
	return fmt.Sprintf("%016x", h.Sum64())
}

// text returns the token of the state: the state as JSON, then its sums, in base64 and separated by dots.
func (s *verifyState) text() string {
	c, closing := *s, &tally.Sums{}
	if s.Closing != nil {
		closing = &s.Closing.sums
	}
	c.NearFacts, c.ClosingFacts, c.FarFacts = s.Near.sums.Facts, closing.Facts, s.far.Facts
	state, _ := json.Marshal(&c) // a struct of texts and numbers always encodes
	var parts []string
	for _, part := range [][]byte{state, s.Near.sums.Bytes(), closing.Bytes(), s.far.Bytes()} {
		parts = append(parts, base64.RawURLEncoding.EncodeToString(part))
	}
	return strings.Join(parts, ".")
}

// parse is the inverse of text.
func (s *verifyState) parse(token, run string) error {
	var parts [4][]byte
	texts := strings.Split(token, ".")
	for i, text := range texts[:min(len(texts), len(parts))] {
		parts[i], _ = base64.RawURLEncoding.DecodeString(text) // of a damaged part, only the beginning is decoded; the checks below refuse that
	}
	*s = verifyState{}
	if len(texts) != len(parts) || json.Unmarshal(parts[0], s) != nil || s.Near == nil {
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier Verify or Repair", len(token))
	}
	if s.Version != verifyVersion {
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", s.Version, verifyVersion)
	}
	if s.Run != run {
		return errors.New("JobOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	}
	closing := &tally.Sums{}
	if s.Closing != nil {
		closing = &s.Closing.sums
	}
	err := errors.Join(s.Near.sums.Parse(parts[1], s.NearFacts), closing.Parse(parts[2], s.ClosingFacts), s.far.Parse(parts[3], s.FarFacts))
	if err != nil {
		return fmt.Errorf("JobOptions.Resume is damaged: %w", err)
	}
	if s.Part < 0 || s.Group < 0 || s.Group > tally.Buckets || !s.Near.valid() || s.Closing != nil && !s.Closing.valid() {
		return errNowhere
	}
	for _, closing := range s.Open {
		if closing && s.Closing == nil {
			return errNowhere
		}
	}
	return nil
}

// set makes s a deep copy of from: the run continues to change from.
func (s *verifyState) set(from *verifyState) {
	near, closing := s.Near, s.Closing
	*s = *from
	s.Near, s.Closing, s.Open = from.Near.into(near), from.Closing.into(closing), maps.Clone(from.Open)
}

// valid reports whether a token that this library made can contain p.
func (p *partitionRun) valid() bool {
	return p.Group >= 0 && p.Group <= tally.Buckets && p.Spans.Valid()
}

// into copies p to other, or to a new partitionRun if other is nil, and returns the copy.
func (p *partitionRun) into(other *partitionRun) *partitionRun {
	if p == nil {
		return nil
	}
	if other == nil {
		other = &partitionRun{}
	}
	*other = *p
	return other
}
