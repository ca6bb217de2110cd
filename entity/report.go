package entity

import (
	"time"

	"github.com/tablepatterns/tablepatterns/internal/tally"
)

// Run is what the reports of all long jobs have. A job returns its report even together with an error.
type Run struct {
	// Elapsed is the duration of this run, without the earlier runs that it resumes.
	Elapsed time.Duration
	// Resume continues the job after an error or a crash: give it to a later call as Resume of its options. It is "" in
	// the report of a complete job, and until a job that resumes no earlier one has done something.
	Resume string
}

// Progress says how far a long job is, for the option Progress. A number that a job does not know is 0.
type Progress struct {
	Run
	Read   int64 // entities read
	Rows   int64 // rows read
	Failed int64 // entities or rows that could not be read or written, and were skipped
	// PartitionsDone is how many of the partitions in the options are done; 0 without a list of partitions.
	PartitionsDone int
	// Estimate is the number of Rows that the complete job is expected to have, ETA the remaining time.
	Estimate int64
	ETA      time.Duration
}

// String formats the numbers that are not 0, without Resume, which may be long.
func (p Progress) String() string { return tally.Text(p) }

// BulkReport says what a BulkNonAtomic has done in this run, without the runs that it resumes.
type BulkReport struct {
	Run
	Written      int64 // entities written
	Deleted      int64 // entities deleted by BulkDelete
	Unchanged    int64 // with SkipExisting, entities that exist already
	Failed       int64 // entities that could not be written, and were given to Refused
	Conflicts    int64 // transactions that ended in a conflict, a lost response or a lost lease, and were made again
	Rows         int64 // rows written or deleted, including those of indexes
	Transactions int64 // committed
}

// String formats the counts that are not 0, without Resume.
func (r BulkReport) String() string { return tally.Text(r) }
