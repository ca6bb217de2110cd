package patterns

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/patterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// verifyState is the position of a run, as its token stores it.
type verifyState struct {
	Version int
	Run     string // fingerprint of the options and the table
	Phase   phase
	Part    int // index of the table or auditor
	Scan    tablescan.State
	Near    *partitionRun
	Closing *partitionRun   // the run that is compared once all its partitions are read
	Open    map[string]bool // the partitions that are read in part, and whether they belong to Closing
	Group   int             // next group of the outside sums

	Entities, Rows, Candidates, Repaired int64
	Findings                             int64 `json:"Discrepancies"` // the name in tokens of earlier builds

	NearFacts, ClosingFacts, FarFacts int64 // number of facts in the sums; the token has the sums after the JSON

	far tally.Sums
}

const verifyVersion = 2

// begin sets the state to the start, or to the position of an earlier run.
func (v *verifier) begin() error {
	run := v.fingerprint()
	v.state = verifyState{Version: verifyVersion, Run: run, Near: &partitionRun{}}
	if v.options.Resume == "" {
		return nil
	}
	err := v.state.parse(v.options.Resume, run)
	ranges := 1
	if v.state.Phase == phaseEntities {
		ranges = len(v.ranges())
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
		parts[i], _ = base64.RawURLEncoding.DecodeString(text) // of a damaged part, only the beginning is decoded, and the checks below refuse it
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

// set makes s a deep copy of from, since the run continues to change the sums of from.
func (s *verifyState) set(from *verifyState) {
	near, closing := s.Near, s.Closing
	*s = *from
	s.Near, s.Closing, s.Open = from.Near.into(near), from.Closing.into(closing), maps.Clone(from.Open)
}

// valid reports whether a token can contain the run.
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
