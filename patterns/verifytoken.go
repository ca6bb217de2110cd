package patterns

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// verifyState is the position of a run, as its token stores it.
type verifyState struct {
	Version int
	Run     string // fingerprint of the options and the table
	Phase   phase
	Part    int     // index of the partition, table or auditor
	Page    string  // continuation of its query, "" for the start
	At      *string // the partition of the last row read
	Near    *partitionRun
	Closing *partitionRun // the run that is being compared
	Group   int           // of the sums outside

	Entities, Rows, Candidates, Repaired int64
	Findings                             int64 `json:"Discrepancies"` // as earlier builds name it

	NearFacts, ClosingFacts, FarFacts int64 // of the sums, whose texts follow the JSON

	far sums
}

const verifyVersion = 1

// begin sets the state to the start, or to the position of an earlier run.
func (v *verifier) begin() error {
	run := v.fingerprint()
	v.state = verifyState{Version: verifyVersion, Run: run, Near: &partitionRun{}}
	if v.options.Resume == "" {
		return nil
	}
	err := v.state.parse(v.options.Resume, run)
	if c := v.state.Closing; err == nil && c != nil && c.ToPart > v.parts() {
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
	c, closing := *s, &sums{}
	if s.Closing != nil {
		closing = &s.Closing.sums
	}
	c.NearFacts, c.ClosingFacts, c.FarFacts = s.Near.sums.facts, closing.facts, s.far.facts
	state, _ := json.Marshal(&c) // texts and numbers always encode
	var parts []string
	for _, part := range [][]byte{state, s.Near.sums.bytes(), closing.bytes(), s.far.bytes()} {
		parts = append(parts, base64.RawURLEncoding.EncodeToString(part))
	}
	return strings.Join(parts, ".")
}

// parse is the inverse of text.
func (s *verifyState) parse(token, run string) error {
	var parts [4][]byte
	texts := strings.Split(token, ".")
	for i, text := range texts[:min(len(texts), len(parts))] {
		parts[i], _ = base64.RawURLEncoding.DecodeString(text) // a damaged part is too short, which is checked below
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
	closing := &sums{}
	if s.Closing != nil {
		closing = &s.Closing.sums
	}
	err := errors.Join(s.Near.sums.parse(parts[1], s.NearFacts), closing.parse(parts[2], s.ClosingFacts), s.far.parse(parts[3], s.FarFacts))
	if err != nil {
		return fmt.Errorf("JobOptions.Resume is damaged: %w", err)
	}
	if s.Part < 0 || s.Group < 0 || s.Near.FromPart < 0 || s.Closing != nil && (s.Closing.Group < 0 || s.Closing.FromPart < 0) {
		return errNowhere
	}
	return nil
}

// set makes s a copy of another state that shares none of its sums, which the run goes on to change.
func (s *verifyState) set(from *verifyState) {
	near, closing := s.Near, s.Closing
	*s = *from
	s.Near, s.Closing = from.Near.into(near), from.Closing.into(closing)
}

// into copies a run of partitions into another one, or a new one if there is none.
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

// countRow counts a row that a scan has read.
func (v *verifier) countRow() {
	v.state.Rows++
	v.rowsHere++
}
