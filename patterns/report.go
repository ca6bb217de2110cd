package patterns

import (
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// VerifyReport says what a Verify has found.
type VerifyReport struct {
	tables.Run
	Read       int64 // entities read
	Rows       int64 // rows that the scans have read
	Candidates int64 // differences that Verify has rechecked
	Findings   int64 // differences that exist
	Marked     int64 // copies in indexes over partitions that are marked for longer than a change can take: readers follow them, which costs requests, and Repair settles them
	// Unmatched names the repositories, separated by ", ", whose table has rows but no entities: Prefix, Rows, Mine or Where of
	// the schema may be wrong. It is "" if Partitions is set, or if one request cannot read all rows that meet Rows
	// and Where: with Mine, if more than 1,000 do.
	Unmatched      string
	PartitionsDone int // of JobOptions.Partitions; 0 without
}

// String formats the counts that are not 0, without Resume.
func (r VerifyReport) String() string { return tally.Text(r) }

// RepairReport says what a Repair has found and repaired.
type RepairReport struct {
	VerifyReport
	Repaired int64 // findings that Repair has repaired
}

// String formats the counts that are not 0, without Resume.
func (r RepairReport) String() string { return tally.Text(r) }

// RebuildReport says what a Rebuild has filled.
type RebuildReport struct {
	tables.Run
	Read           int64  // entities read
	Written        int64  // entities written, or whose copies in other partitions were written
	Unchanged      int64  // entities that needed no write
	Conflicts      int64  // attempts that ended in a conflict, a lost response or a lost lease, and were made again
	Failed         int64  // entities that could not be filled, and were given to Found
	Unmatched      string // as in VerifyReport
	PartitionsDone int    // of JobOptions.Partitions; 0 without
}

// String formats the counts that are not 0, without Resume.
func (r RebuildReport) String() string { return tally.Text(r) }

// RewriteReport says what a job has rewritten, such as encryption.Reencrypt.
type RewriteReport struct {
	tables.Run
	Read           int64 // entities read: all, or those in the old form (see the job)
	Written        int64 // entities written
	Unchanged      int64 // entities in the current form, if Read counts all
	Conflicts      int64 // attempts that ended in a conflict, a lost response or a lost lease, and were made again
	Failed         int64 // entities that could not be read or written, and were given to Found
	PartitionsDone int   // of JobOptions.Partitions; 0 without
}

// String formats the counts that are not 0, without Resume.
func (r RewriteReport) String() string { return tally.Text(r) }

// RemoveReport says what a RemoveUnattached has removed.
type RemoveReport struct {
	tables.Run
	Rows      int64 // rows examined
	Findings  int64 // rows given to Found: removed or, with DryRun, to be removed, and those that could not be processed
	Deleted   int64 // rows deleted
	Written   int64 // entities written again, without the pattern's name
	Conflicts int64 // attempts that ended in a conflict, and were made again
	Failed    int64 // entities and rows that could not be processed, and were given to Found
}

// String formats the counts that are not 0, without Resume.
func (r RemoveReport) String() string { return tally.Text(r) }
