package patterns

// SmallRuns makes a run settle the sums of partitions after so many facts, and join so many at once, so that a small table has
// many of both.
func (o *JobOptions) SmallRuns(facts, open int64) { o.runFacts, o.openFacts = facts, open }

// SmallPages makes the scans of a run read pages of so many rows, so that a small table has many of them.
func (o *JobOptions) SmallPages(rows int) { o.pageSize = rows }
