package patterns

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

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

	Entities, Rows, Candidates, Discrepancies, Repaired int64

	NearFacts, ClosingFacts, FarFacts int64 // of the sums, whose texts follow the JSON

	far sums
}

const verifyVersion = 1

// begin sets the state to the start, or to the position of an earlier run.
func (v *verifier) begin() error {
	run := v.fingerprint()
	v.state = verifyState{Version: verifyVersion, Run: run, Near: &partitionRun{}}
	v.token = v.state.text
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
		return fmt.Errorf("VerifyOptions.Resume, of %d characters, is not a token of an earlier VerifyReport", len(token))
	}
	if s.Version != verifyVersion {
		return fmt.Errorf("VerifyOptions.Resume has version %d, and this build reads version %d; begin again without it", s.Version, verifyVersion)
	}
	if s.Run != run {
		return errors.New("VerifyOptions.Resume is the token of a run with other options or of another table; repeat the options of that run")
	}
	closing := &sums{}
	if s.Closing != nil {
		closing = &s.Closing.sums
	}
	err := errors.Join(s.Near.sums.parse(parts[1], s.NearFacts), closing.parse(parts[2], s.ClosingFacts), s.far.parse(parts[3], s.FarFacts))
	if err != nil {
		return fmt.Errorf("VerifyOptions.Resume is damaged: %w", err)
	}
	if s.Part < 0 || s.Group < 0 || s.Near.FromPart < 0 || s.Closing != nil && (s.Closing.Group < 0 || s.Closing.FromPart < 0) {
		return errNowhere
	}
	return nil
}

// countRow counts a row that a scan has read.
func (v *verifier) countRow() {
	v.state.Rows++
	v.rowsHere++
}

// progressed calls the caller's Progress.
func (v *verifier) progressed() {
	if v.options.Progress == nil {
		return
	}
	s := &v.state
	p := VerifyReport{Entities: s.Entities, Rows: s.Rows, Candidates: s.Candidates, Discrepancies: s.Discrepancies, Repaired: s.Repaired, resume: v.token}
	if v.scope != nil {
		p.PartitionsDone = s.Part
		if s.Phase > phaseEntities {
			p.PartitionsDone = len(v.options.Partitions)
		}
	}
	p.Estimate = v.estimate(p.PartitionsDone)
	if left := p.Estimate - s.Rows; left > 0 && v.rowsHere > 0 {
		p.ETA = time.Duration(float64(time.Since(v.began)) * float64(left) / float64(v.rowsHere))
	}
	v.options.Progress(p)
}

// estimate is the number of rows to read, from an earlier run or extrapolated from the partitions done; 0 if unknown.
func (v *verifier) estimate(done int) int64 {
	switch {
	case v.options.Rows > 0:
		return max(v.options.Rows, v.state.Rows)
	case v.far() || done == 0:
		return 0 // the number of rows in the outside tables is unknown
	}
	return v.state.Rows * int64(len(v.options.Partitions)) / int64(done)
}

// report yields findings.
func (v *verifier) report(ctx context.Context, findings []*finding) error {
	if len(findings) == 0 {
		return nil
	}
	v.state.Discrepancies += int64(len(findings))
	return v.found(ctx, findings)
}
