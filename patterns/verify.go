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
	// Partitions are the partitions of the entities to verify; nil is the whole table. No option to allow a table scan
	// is needed.
	Partitions []string
	// Patterns are the names of the attached patterns to verify; nil is all of them.
	Patterns []string
	// Lag is how long a difference outside of the entity's partition must persist before it is reported (default 5 s),
	// so that an intent that waits for a worker is not reported earlier. A reserved key is ignored until its stored
	// term and a grace period are over, whatever Lag is.
	Lag time.Duration
	// Concurrency is the maximum number of concurrent requests while candidates are checked (default 8).
	Concurrency int
	// Rows is the total number of rows that the scans read, if known from an earlier run's VerifyReport. Estimate
	// and ETA are computed from it.
	Rows int64
	// Progress is called after each request of a scan and each group of candidates, never concurrently.
	Progress func(VerifyReport)
	// Resume continues an earlier run: give the text of its VerifyReport.Resume. Findings after that token are
	// reported again. The token is ErrInvalid with other options or another table.
	Resume string

	runFacts, openFacts int64 // overrides of the constants of the same names, for tests
}

// VerifyReport is the progress of a run. Counts include the earlier runs that it resumes.
type VerifyReport struct {
	Entities       int64 // entities read
	Rows           int64 // rows read by all scans
	Candidates     int64 // candidates checked
	Discrepancies  int64 // confirmed discrepancies
	Repaired       int64 // of these
	PartitionsDone int   // of VerifyOptions.Partitions
	// Estimate is the number of rows to read, ETA the remaining time; both are 0 if unknown.
	Estimate int64
	ETA      time.Duration

	resume func() string
}

// Resume continues the run when given as VerifyOptions.Resume. Call it during the call of Progress. It has up to
// 270,000 characters during a scan.
func (p VerifyReport) Resume() string {
	if p.resume == nil {
		return ""
	}
	return p.resume()
}

// DiscrepancyKind says how a stored row or fact differs from what the entities require.
type DiscrepancyKind uint8

// The kinds of discrepancy.
const (
	// Missing: the entity requires it, and it is absent or belongs to another entity.
	Missing DiscrepancyKind = iota
	// Spurious: it is stored, and no entity requires it.
	Spurious
	// Different: it is stored with other content than the entity requires.
	Different
	// Undecodable: an entity, or what a pattern stores, cannot be read, so the correct state is unknown.
	Undecodable
)

// String returns the kind's name.
func (k DiscrepancyKind) String() string {
	return [...]string{"missing", "spurious", "different", "undecodable"}[k]
}

// Discrepancy is one difference between what is stored and what the entities require.
type Discrepancy struct {
	Kind    DiscrepancyKind
	Pattern string     // "" for the entity's own rows, and if unknown
	Table   string     // table of the row; "" if only the pattern knows, as for lists and blobs
	Place   string     // a row key in the entity's partition; or a partition key, a tab and a row key; or the pattern's own notation
	Entity  tables.Key // the entity that requires it, or that it claims to belong to
	Err     error      // details, or nil
}

// String formats the discrepancy in one line.
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

// defaultConcurrency is the default of VerifyOptions.Concurrency.
const defaultConcurrency = 8

// defaultLag is the default of VerifyOptions.Lag.
const defaultLag = 5 * time.Second

// checked returns the options with defaults set, and rejects invalid ones.
func (o *VerifyOptions) checked(attached []*engine.Pattern) (VerifyOptions, error) {
	c := VerifyOptions{}
	if o != nil {
		c = *o
	}
	c.Lag = cmp.Or(c.Lag, defaultLag)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Lag < 0 || c.Concurrency < 0 || c.Rows < 0 {
		return c, fmt.Errorf("VerifyOptions.Lag is %v, Concurrency %d and Rows %d; none may be negative", c.Lag, c.Concurrency, c.Rows)
	}
	c.runFacts, c.openFacts = cmp.Or(c.runFacts, runFacts), cmp.Or(c.openFacts, openFacts)
	var err error
	if c.Partitions, err = checkedPartitions(c.Partitions); err != nil {
		return c, err
	}
	c.Patterns, err = checkedPatterns(c.Patterns, attached)
	return c, err
}

// checkedPartitions sorts partition keys and removes duplicates; nil stays nil.
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
