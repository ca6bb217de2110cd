package backup

import (
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counts are those of all jobs. Each job returns the report that has its own.
type counts struct {
	tally.Report
	Outside, Blobs int64
}

// Report says what a Backup has stored.
type Report struct {
	tables.Run
	Read      int64 // rows read
	Written   int64 // rows in new chunks
	Unchanged int64 // rows in chunks that Options.Base already has
	Failed    int64 // rows left out: see LeftOut
}

// String formats the counts that are not 0, without Resume.
func (r Report) String() string { return tally.Text(r) }

// CopyReport says what a Copy has written.
type CopyReport struct {
	tables.Run
	Read      int64 // rows read in the source
	Written   int64 // rows written
	Unchanged int64 // rows that the destination has already, or that Options.Existing leaves
	Conflicts int64 // attempts that ended in a conflict, and were made again
	Failed    int64 // rows left out: see LeftOut
	Findings  int64 // differences given to Found
	// Outside is how many of the rows that this run has read are index copies in other partitions. They are marked in the destination: reads
	// through them are right and cost a request more, until Rebuild, the next change of the entity or a later read settles them.
	Outside      int64
	Transactions int64 // committed
}

// String formats the counts that are not 0, without Resume.
func (r CopyReport) String() string { return tally.Text(r) }

// RestoreReport says what a Restore has written.
type RestoreReport struct {
	CopyReport
	Blobs int64 // blobs that this run has written
}

// String formats the counts that are not 0, without Resume.
func (r RestoreReport) String() string { return tally.Text(r) }

// CompareReport says what a Compare or a Verify has found.
type CompareReport struct {
	tables.Run
	Read     int64 // rows read of the first table or of the backup
	Rows     int64 // rows read of the second table
	Failed   int64 // rows that cannot be compared: see LeftOut
	Findings int64 // differences given to Found
}

// String formats the counts that are not 0, without Resume.
func (r CompareReport) String() string { return tally.Text(r) }
