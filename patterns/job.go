package patterns

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// JobOptions are the options of every long job on the entities of a repository: Verify, Repair, Rebuild, RemoveUnattached,
// encryption.Reencrypt and heterogeneous.Type.Upgrade; nil is the same as the zero value. A job returns ErrWiring if a field is
// set that it does not use.
type JobOptions struct {
	// Partitions are the partitions of the entities to process; nil is the whole table. No option to allow a table scan
	// is needed.
	Partitions []string
	// Patterns are the names of the attached patterns to process; nil is all of them. Rebuild fills only those that store
	// copies of entities or facts about them. Reencrypt, Upgrade and RemoveUnattached do not use it.
	Patterns []string
	// Concurrency is the maximum number of candidates that Verify and Repair check, or entities and change sets that the other
	// jobs process, at once (default 8). It is also the number of readers with which the jobs scan a table: they
	// share it by ranges of keys, as Query.AllParallel does. On Azure Cosmos DB there is one reader.
	Concurrency int
	// RowsPerSecond limits how many rows the job reads and writes in tables in a second, on average (default 0: no limit), to leave
	// the throughput of the tables to other programs. The job never waits within a change: a change that exceeds the limit delays
	// the next one.
	RowsPerSecond int
	// Lag is how long a difference outside of the entity's partition must persist before it is reported (default 5 s),
	// so that an intent that waits for a worker is not reported earlier. A reserved key that its entity does not have is
	// ignored until its stored term and a grace period are over, whatever Lag is. Only Verify and Repair use it.
	Lag time.Duration
	// Rows is the total number of rows that the scans read, if known from Report.Rows of an earlier run. Estimate
	// and ETA are computed from it. Only Verify and Repair use it.
	Rows int64
	// DryRun makes Repair find what it would repair, and RemoveUnattached what it would remove, without writing anything. Only these
	// use it.
	DryRun bool
	// The job calls Found with each finding, one call at a time, and waits for it. If Found returns an error,
	// the job ends and returns that error with the report. Report.Resume continues from there; Found may get
	// the last findings once more.
	Found func(Finding) error
	// Verify and Repair call Progress after each request of a scan and after each group of candidates, the
	// other jobs after each page of rows. There is one call at a time, and the job waits for it, but other
	// readers continue as far as memory allows.
	Progress func(tables.Report)
	// Resume continues an earlier run: give Report.Resume of its last report. Found gets the findings after
	// that token again. A job with other Partitions or Patterns, or on another table, returns ErrInvalid for
	// the token.
	Resume string

	runFacts, openFacts int64 // overrides of the constants of the same names, for tests
	pageSize            int   // of scans, 0 for the service's maximum, for tests
}

// FindingKind says how a stored row or fact differs from what the entities require.
type FindingKind uint8

// The kinds of finding.
const (
	// Missing: the entity requires it, and it is absent or belongs to another entity.
	Missing FindingKind = iota
	// Spurious: it is stored, and no entity requires it.
	Spurious
	// Different: it is stored with other content than the entity requires.
	Different
	// Undecodable: an entity, or what a pattern stores, cannot be read, so the correct state is unknown.
	Undecodable
)

// String returns the kind's name.
func (k FindingKind) String() string {
	return [...]string{"missing", "spurious", "different", "undecodable"}[k]
}

// Finding is one difference between what is stored and what the entities require, or one entity that a job could not
// process. Err says why.
type Finding struct {
	Kind     FindingKind
	Pattern  string     // "" for the entity's own rows, and if unknown
	Table    string     // table of the row; "" if only the pattern knows, as for lists and blobs
	Location string     // a row key in the entity's partition; or a partition key, a tab and a row key; or the pattern's own notation; "" for a whole entity
	Entity   tables.Key // the entity that requires it, or that it claims to belong to
	Err      error      // details, or nil

	// Repaired reports that Repair has repaired it, or that RemoveUnattached has removed it.
	Repaired bool
	// NotRepaired is why Repair has not repaired it: ErrDuplicate if two entities require one key, ErrConflict if concurrent
	// writers changed it at every attempt, the decoding error if it cannot be decoded. It is nil in a dry run and in other
	// jobs.
	NotRepaired error
}

// String formats the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", f.Kind)
	if f.Pattern != "" {
		fmt.Fprintf(&b, "%s ", f.Pattern)
	}
	if f.Location != "" {
		fmt.Fprintf(&b, "%q ", f.Location)
	}
	if f.Table != "" {
		fmt.Fprintf(&b, "in %s ", f.Table)
	}
	fmt.Fprintf(&b, "of (%q, %q)", f.Entity.Partition, f.Entity.Row)
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	switch {
	case f.Repaired:
		b.WriteString("; repaired")
	case f.NotRepaired != nil:
		fmt.Fprintf(&b, "; not repaired: %v", f.NotRepaired)
	}
	return b.String()
}

const (
	// The names of the jobs, as errors give them.
	opVerify  = "Verify"
	opRepair  = "Repair"
	opRebuild = "Rebuild"
	opRemove  = "RemoveUnattached"

	defaultConcurrency = 8               // of JobOptions.Concurrency
	defaultLag         = 5 * time.Second // of JobOptions.Lag

	// fewestTogether is the least number of findings that Repair repairs together: to repair fewer alone costs little more.
	fewestTogether = 4
)

// unused refuses the fields that only other jobs use.
func (o *JobOptions) unused(op string) error {
	switch verifies, repairs := op == opVerify || op == opRepair, op == opRepair || op == opRemove; {
	case o == nil:
	case o.Patterns != nil && !verifies && op != opRebuild:
		return fmt.Errorf("JobOptions.Patterns is set, and %s does not use it; leave it nil", op)
	case o.DryRun && !repairs:
		return fmt.Errorf("JobOptions.DryRun is set, and %s does not use it; leave it false", op)
	case o.Lag != 0 && !verifies:
		return fmt.Errorf("JobOptions.Lag is %v, and %s does not use it; leave it 0", o.Lag, op)
	case o.Rows != 0 && !verifies:
		return fmt.Errorf("JobOptions.Rows is %d, and %s does not use it; leave it 0", o.Rows, op)
	}
	return nil
}

// checked returns the options of a job with defaults set, and rejects invalid ones.
func (o *JobOptions) checked(op string, attached []*engine.Pattern) (JobOptions, error) {
	c := JobOptions{}
	if err := o.unused(op); err != nil {
		return c, err
	}
	if o != nil {
		c = *o
	}
	if err := pace.Check("JobOptions", c.RowsPerSecond); err != nil {
		return c, err
	}
	c.Lag = cmp.Or(c.Lag, defaultLag)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Lag < 0 || c.Concurrency < 0 || c.Rows < 0 {
		return c, fmt.Errorf("JobOptions.Lag is %v, Concurrency %d and Rows %d; none may be negative", c.Lag, c.Concurrency, c.Rows)
	}
	c.runFacts, c.openFacts = cmp.Or(c.runFacts, runFacts), cmp.Or(c.openFacts, openFacts)
	var err error
	if c.Partitions, err = pagejob.Partitions(c.Partitions); err != nil {
		return c, err
	}
	c.Patterns, err = pagejob.Patterns(c.Patterns, attached)
	return c, err
}
