package jobs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
)

// phase is one step of a run.
type phase uint8

const (
	phaseEntities phase = iota // scan the entities' table and compare it run by run
	phaseOutside               // scan the tables of outside copies
	phaseHeld                  // list the facts that auditors have stored
	phaseFar                   // compare the far sums, of all areas except the near one
	phasePages                 // process pages
	phaseDone
)

// state is the position of a run with its counts, as its token stores it.
type state struct {
	Version int
	Run     string // fingerprint of the job, its options and its tables
	Phase   phase
	Part    int // index of the area, or of the part, that is scanned
	Scan    tablescan.State
	Near    *partitionRun
	Closing *partitionRun   // the run that is compared once all its partitions are read
	Open    map[string]bool // the partitions that are read in part, and whether they belong to Closing
	Group   int             // next group of far's unequal buckets
	Copies  stocks
	Empty   []string // the patterns most of whose copies in other partitions are missing: Rebuild inserts them without a comparison
	Report  tally.Report

	NearFacts, ClosingFacts, FarFacts int64 // number of facts in the sums; the token has the sums after the JSON

	far sums
}

// partitionRun is a set of whole partitions whose rows are compared together. Readers read several partitions at once,
// so two runs can be open. A partition belongs to the run that was current when its first row was counted.
type partitionRun struct {
	Spans rangescan.Union
	Group int // next group of buckets with unequal sums to compare
	sums  sums
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

// version is that of positions in JobOptions.Resume.
const version = 4

var errNowhere = errors.New("JobOptions.Resume is damaged: it has no position; begin again without it")

// begin sets the state to the beginning of a run, or to the position in Options.Resume.
func (j *job) begin(first phase) error {
	start := state{Version: version, Run: j.fingerprint(), Phase: first, Near: &partitionRun{}}
	j.state = start
	if j.options.Resume == "" {
		return nil
	}
	err := j.state.parse(j.options.Resume, j.tokenOf(), start.Run)
	if err == nil && !j.valid() {
		err = errNowhere
	}
	if err != nil {
		return j.r.Invalid(j.op, entity.Key{}, err)
	}
	if !j.compares() && j.op != Rebuild { // their reports do not include earlier runs
		j.state.Report = tally.Report{}
	}
	return nil
}

// valid reports whether a run can have the position of the state.
func (j *job) valid() bool {
	s := &j.state
	ranges := tablescan.Partitions(nil)
	switch {
	case s.Phase == phaseEntities:
		ranges = j.ranges()
	case s.Phase == phasePages && s.Part >= len(j.parts), s.Phase > phasePages:
		return false
	case s.Phase == phasePages:
		ranges = tablescan.Partitions(j.parts[s.Part].partitions)
	}
	return s.Scan.Valid(ranges)
}

// tokenOf names the jobs that can resume each other's runs.
func (j *job) tokenOf() string {
	if j.compares() {
		return "Verify or Repair"
	}
	return j.op
}

// fingerprint identifies a run's job, tables, patterns and options.
func (j *job) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q %t %q", j.tokenOf(), j.r.Table.Account().Endpoints().Table, j.r.Table.Name(), j.scope == nil, j.options.Partitions)
	for i := range j.areas {
		a := &j.areas[i]
		if a.table != nil {
			fmt.Fprintf(&b, " %q %q", a.table.Account().Endpoints().Table, a.table.Name())
		}
		for _, p := range a.outside {
			fmt.Fprintf(&b, " %q", p.Name)
		}
		if a.auditor != nil {
			fmt.Fprintf(&b, " auditor %q", a.auditor.Name)
		}
	}
	fmt.Fprintf(&b, " %t %t %q %q", j.near, j.options.Patterns == nil, j.options.Patterns, j.unattached)
	return continuation.Hash("%s", b.String())
}

// closing returns the sums of the run that is about to be compared.
func (s *state) closing() *sums {
	if s.Closing == nil {
		return &sums{}
	}
	return &s.Closing.sums
}

// text returns the token of the state: the state as JSON, then its sums, in base64 and separated by dots.
func (s *state) text() string {
	c, closing := *s, s.closing()
	c.NearFacts, c.ClosingFacts, c.FarFacts = s.Near.sums.Facts, closing.Facts, s.far.Facts
	text, _ := json.Marshal(&c) // a struct of texts and numbers always encodes
	var parts []string
	for _, part := range [][]byte{text, s.Near.sums.bytes(), closing.bytes(), s.far.bytes()} {
		parts = append(parts, base64.RawURLEncoding.EncodeToString(part))
	}
	return strings.Join(parts, ".")
}

// parse is the inverse of text.
func (s *state) parse(token, jobs, run string) error {
	var parts [4][]byte
	texts := strings.Split(token, ".")
	for i, text := range texts[:min(len(texts), len(parts))] {
		parts[i], _ = base64.RawURLEncoding.DecodeString(text) // of a damaged part, only the beginning is decoded; the checks below refuse that
	}
	*s = state{}
	switch {
	case len(texts) != len(parts) || json.Unmarshal(parts[0], s) != nil || s.Near == nil:
		return fmt.Errorf("JobOptions.Resume, of %d characters, is not Report.Resume of an earlier %s", len(token), jobs)
	case s.Version != version:
		return fmt.Errorf("JobOptions.Resume has version %d, and this build reads version %d; begin again without it", s.Version, version)
	case s.Run != run:
		return errors.New("JobOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	}
	err := cmp.Or(s.Near.sums.parse(parts[1], s.NearFacts), s.closing().parse(parts[2], s.ClosingFacts), s.far.parse(parts[3], s.FarFacts))
	if err != nil {
		return fmt.Errorf("JobOptions.Resume is damaged: %w", err)
	}
	if s.Part < 0 || s.Group < 0 || s.Group > buckets || !s.Near.valid() || s.Closing != nil && !s.Closing.valid() {
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
func (s *state) set(from *state) {
	near, closing := s.Near, s.Closing
	*s = *from
	s.Near, s.Closing, s.Open = from.Near.into(near), from.Closing.into(closing), maps.Clone(from.Open)
}

// valid reports whether a token that this library made can contain p.
func (p *partitionRun) valid() bool {
	return p.Group >= 0 && p.Group <= buckets && p.Spans.Valid()
}

// into copies p to other, or to a new partitionRun if other is nil, and returns the copy.
func (p *partitionRun) into(other *partitionRun) *partitionRun {
	if p == nil {
		return nil
	}
	other = cmp.Or(other, &partitionRun{})
	*other = *p
	return other
}
