package patterns

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// VerifyOptions are the options of Verify and Repair; nil is the same as the zero value.
type VerifyOptions struct {
	// Partitions are those of the entities to look at; nil is the whole table, which is a table scan by nature and needs no
	// further leave.
	Partitions []string
	// Patterns are the names of the attached patterns to look at; nil is all of them.
	Patterns []string
	// Lag is how long a difference outside of the entity's partition must last to count, 5 s for 0. An intent that waits
	// for a worker is no discrepancy before that. A key that a change has reserved is left alone until the term that is stored
	// with it, and a grace, are over, whatever Lag is.
	Lag time.Duration
	// Concurrency is the number of requests under way at once when candidates are looked at, 8 for 0.
	Concurrency int
	// Rows is the number of rows that the scans go through, where an earlier run's VerifyReport tells it. Estimate and ETA
	// are made of it.
	Rows int64
	// Progress is called after each request of a scan and each group of candidates, one call at a time.
	Progress func(VerifyReport)
	// Resume goes on where an earlier run was when VerifyReport.Resume gave this text. With other options, or another
	// table, it is ErrInvalid. What was reported after that moment is reported again.
	Resume string

	runFacts, openFacts int64 // other bounds than the constants of that name, for tests
}

// VerifyReport is how far a run is. Counts go on from those of the run that it resumes.
type VerifyReport struct {
	Entities       int64 // seen
	Rows           int64 // gone through by all scans
	Candidates     int64 // looked at
	Discrepancies  int64 // confirmed
	Repaired       int64 // of these
	PartitionsDone int   // of VerifyOptions.Partitions
	// Estimate is the number of rows to go through, ETA the time that is left; both are 0 where that is not known.
	Estimate int64
	ETA      time.Duration

	resume func() string
}

// Resume is for VerifyOptions.Resume of a later run. It can be asked for during the call of Progress. It
// has up to 270,000 characters while sums are under way.
func (p VerifyReport) Resume() string {
	if p.resume == nil {
		return ""
	}
	return p.resume()
}

// DiscrepancyKind says how what is stored differs from what the entities ask for.
type DiscrepancyKind uint8

// The kinds of discrepancy.
const (
	// Missing: the entity asks for it, and it is not there, or another's.
	Missing DiscrepancyKind = iota
	// Spurious: it is there, and no entity asks for it.
	Spurious
	// Different: it is there, and not as the entity has it.
	Different
	// Undecodable: an entity, or what a pattern holds, that cannot be read; what should be is not known.
	Undecodable
)

// String returns the kind's name.
func (k DiscrepancyKind) String() string {
	return [...]string{"missing", "spurious", "different", "undecodable"}[k]
}

// Discrepancy is one thing that is not as the entities have it.
type Discrepancy struct {
	Kind    DiscrepancyKind
	Pattern string     // "" of the entity's own rows, and where that is not known
	Table   string     // where it is; "" in what only the pattern knows, such as lists and blobs
	Place   string     // a row key in the entity's partition, a partition and a row key with a tab between, or in the pattern's words
	Entity  tables.Key // the entity that asks for it, or the one that it says it is of
	Err     error      // what is wrong with it, where there is more to say
}

// String tells the discrepancy in one line.
func (d Discrepancy) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", d.Kind)
	if d.Pattern != "" {
		fmt.Fprintf(&b, "%s ", d.Pattern)
	}
	if d.Place != "" {
		fmt.Fprintf(&b, "%q ", d.Place)
	}
	if d.Table != "" {
		fmt.Fprintf(&b, "in %s ", d.Table)
	}
	fmt.Fprintf(&b, "of (%q, %q)", d.Entity.Partition, d.Entity.Row)
	if d.Err != nil {
		fmt.Fprintf(&b, ": %v", d.Err)
	}
	return b.String()
}

// verifyAll is Repository.Verify.
func verifyAll(ctx context.Context, r *engine.Engine, o *VerifyOptions) iter.Seq2[Discrepancy, error] {
	return func(yield func(Discrepancy, error) bool) {
		v, err := newVerifier(r, "Verify", o)
		if err != nil {
			yield(Discrepancy{}, err)
			return
		}
		v.found = func(_ context.Context, findings []*finding) error {
			for _, f := range findings {
				if !yield(f.Discrepancy, nil) {
					return errStopped
				}
			}
			return nil
		}
		if err := v.run(ctx); err != nil && err != errStopped {
			yield(Discrepancy{}, err)
		}
	}
}

// defaultConcurrency is the number of requests under way at once when the caller does not say.
const defaultConcurrency = 8

// defaultLag is how long a difference outside must last to count when the caller does not say.
const defaultLag = 5 * time.Second

// checked returns the options with defaults in place, and refuses what makes no sense.
func (o *VerifyOptions) checked(attached []*engine.Pattern) (VerifyOptions, error) {
	c := VerifyOptions{}
	if o != nil {
		c = *o
	}
	if c.Lag == 0 {
		c.Lag = defaultLag
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Lag < 0 || c.Concurrency < 0 || c.Rows < 0 {
		return c, fmt.Errorf("a Lag of %v, a Concurrency of %d, %d Rows", c.Lag, c.Concurrency, c.Rows)
	}
	c.runFacts, c.openFacts = cmp.Or(c.runFacts, runFacts), cmp.Or(c.openFacts, openFacts)
	var err error
	if c.Partitions, err = checkedPartitions(c.Partitions); err != nil {
		return c, err
	}
	c.Patterns, err = checkedPatterns(c.Patterns, attached)
	return c, err
}

// checkedPartitions sorts partition keys, each once; nil stays nil.
func checkedPartitions(partitions []string) ([]string, error) {
	if partitions == nil {
		return nil, nil
	}
	for _, p := range partitions {
		if err := rows.CheckKey("partition key", p); err != nil {
			return nil, err
		}
	}
	sorted := slices.Sorted(slices.Values(partitions))
	return append([]string{}, slices.Compact(sorted)...), nil
}

// checkedPatterns sorts the names of attached patterns; nil stays nil.
func checkedPatterns(names []string, attached []*engine.Pattern) ([]string, error) {
	if names == nil {
		return nil, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(attached, func(p *engine.Pattern) bool { return p.Name == name }) {
			return nil, fmt.Errorf("no pattern is named %q", name)
		}
	}
	return append([]string{}, slices.Sorted(slices.Values(names))...), nil
}
