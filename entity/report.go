package entity

import (
	"fmt"
	"strings"
	"time"
)

// Report counts what a long job has done. Every job over entities or rows returns one, even together with an error, and passes one to
// its Progress. A count that a job does not have is 0.
type Report struct {
	Read         int64 // entities read
	Rows         int64 // rows that the scans of Verify and Repair have read, or that a bulk write has written, including those of indexes
	Transactions int64 // committed by a bulk write
	Written      int64 // entities written; for BulkDelete, entities deleted
	Deleted      int64 // rows or records deleted by a job other than a bulk write
	Unchanged    int64 // entities that needed no write; for a bulk write with SkipExisting, those that exist already
	Conflicts    int64 // attempts that ended in a conflict, a lost response or a lost lease, and were made again
	Failed       int64 // entities that could not be read or written, and were skipped

	Candidates int64 // differences that Verify or Repair has rechecked
	Findings   int64 // differences passed to the option Found
	Repaired   int64 // findings that Repair has repaired
	Marked     int64 // copies in indexes over partitions that Verify or Repair has found marked for longer than a change can take: readers follow them, which costs requests, and Repair settles them

	// Unmatched names the repositories, separated by ", ", whose table has rows but no entities: Rows, Mine or Where of
	// the schema may be wrong. Verify, Repair and Rebuild of whole tables set it. They leave it "" if one request
	// cannot read all rows that meet Rows and Where: with Mine, if more than 1,000 do.
	Unmatched string

	// PartitionsDone is how many of the partitions in the options are done; 0 without a list of partitions.
	PartitionsDone int
	// Estimate is the number of Rows that the complete job is expected to have, ETA the remaining time; both are 0 if
	// unknown.
	Estimate int64
	ETA      time.Duration
	// Elapsed is the duration of this run, without the earlier runs that it resumes.
	Elapsed time.Duration

	// Resume continues the job after an error or a crash: give it to a later call as Resume of its options. It is "" in
	// the report of a complete job, and until a job that resumes no earlier one has done something.
	Resume string
}

// String formats the counts that are not 0, without Resume, which may be long.
func (r Report) String() string {
	var parts []string
	for _, c := range []struct {
		n    int64
		name string
	}{
		{r.Read, "read"}, {r.Rows, "rows"}, {r.Written, "written"}, {r.Transactions, "transactions"}, {r.Deleted, "deleted"}, {r.Unchanged, "unchanged"},
		{r.Conflicts, "conflicts"}, {r.Failed, "failed"}, {r.Candidates, "candidates"}, {r.Findings, "findings"}, {r.Repaired, "repaired"}, {r.Marked, "marked"},
		{int64(r.PartitionsDone), "partitions done"},
	} {
		if c.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	if r.Unmatched != "" {
		parts = append(parts, "no row of the table is an entity of "+r.Unmatched)
	}
	if r.Resume != "" {
		parts = append(parts, "to be resumed")
	}
	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	return fmt.Sprintf("%s in %v", strings.Join(parts, ", "), r.Elapsed.Round(time.Millisecond))
}
