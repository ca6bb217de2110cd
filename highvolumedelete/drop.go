package highvolumedelete

import (
	"context"
	"errors"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// DropOptions are the options of Drop; nil is the same as the zero value.
type DropOptions struct {
	// DryRun reports what would be dropped, and changes nothing.
	DryRun bool
	// Count reads the keys of all that is dropped, before it is, to report the requests that were saved. It costs 1 request for
	// each 1,000 rows, and may be more than the drop itself.
	Count bool
	// UnsafeGrace is how long to wait between the mark and the first table in place of DefaultGrace; below 0 not at all. With less,
	// a writer who has read an older mark may create a table that is below the new one. It is for tests, and for times
	// when nobody writes late.
	UnsafeGrace time.Duration
}

// DropReport is what Drop did.
type DropReport struct {
	Mark     time.Time // the beginning of the oldest period that is kept
	Tables   []string  // that were dropped, with DryRun those that would be, oldest first
	Gone     []string  // that somebody else dropped meanwhile
	Requests int       // that were made, without those of Count and of the SDK's repetitions

	// With Count: the rows that went, copies and the like included, and the requests that it takes to find them and to delete
	// them in transactions of 100.
	Rows    int64
	Instead int64
}

// Saved is how many requests less were made than by finding and deleting the rows, with DropOptions.Count.
func (r DropReport) Saved() int64 { return r.Instead - int64(r.Requests) }

// Drop drops the tables of all periods that are over before the one in which the given time is. That one is kept, and it is
// tables.ErrInvalid where it is later than the present one. First the retention mark is moved, so that nobody makes
// these periods again; then writers get DefaultGrace to notice; then the tables go, oldest first. A Drop that was cut off is
// resumed by any later one: it drops all that is below the mark, also if its own time is earlier. Several may run at once.
//
// With an error, the report tells what was done. Requests: 2, 1 to list, and 1 for each table; the very first one 2 more.
func (s *Tables[T]) Drop(ctx context.Context, before time.Time, options *DropOptions) (DropReport, error) {
	const op = "Drop"
	if options == nil {
		options = &DropOptions{}
	}
	var report DropReport
	to, err := s.calendar.periodOf(before)
	if err != nil {
		return report, invalidf(op, "", "%w", err)
	}
	current, err := s.calendar.periodOf(s.schema.Now())
	if err != nil {
		return report, invalidf(op, "", "the clock shows %w", err)
	}
	if current.before(to) {
		return report, invalidf(op, s.tableName(current), "before %s is the present period, %s", to.label(), current.label())
	}
	m, err := s.close(ctx, to, options, &report)
	if err != nil {
		return report, err
	}
	report.Mark = s.calendar.start(m.before)
	periods, err := s.list(ctx, &m.before, &report.Requests)
	if err != nil {
		return report, err
	}
	for _, p := range periods {
		if err := s.drop(ctx, p, options, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

// close moves the mark, and waits until writers know.
func (s *Tables[T]) close(ctx context.Context, to period, options *DropOptions, report *DropReport) (mark, error) {
	if options.DryRun {
		report.Requests++
		m, err := s.look(ctx)
		if !m.set || m.before.before(to) {
			m.before, m.set = to, true
		}
		return m, err
	}
	m, err := s.advance(ctx, to, &report.Requests)
	if err != nil {
		return m, err
	}
	grace := options.UnsafeGrace
	if grace == 0 {
		grace = DefaultGrace
	}
	timer := time.NewTimer(max(grace, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return m, ctx.Err()
	case <-ctx.Done():
		return m, ctx.Err()
	}
}

// drop drops one table. One that is gone was dropped by a rival, or by an attempt of ours whose answer was lost.
func (s *Tables[T]) drop(ctx context.Context, p period, options *DropOptions, report *DropReport) error {
	name := s.tableName(p)
	table := s.account.Table(name)
	if options.Count {
		if err := count(ctx, table, report); err != nil {
			return err
		}
	}
	if options.DryRun {
		report.Tables = append(report.Tables, name)
		return nil
	}
	report.Requests++
	err := table.Drop(ctx)
	switch {
	case err == nil:
		report.Tables = append(report.Tables, name)
	case errors.Is(err, tables.ErrTableNotFound) && !errors.Is(err, tables.ErrUnknownOutcome), errors.Is(err, tables.ErrTableBeingDeleted):
		report.Gone = append(report.Gone, name)
	default:
		return err
	}
	return nil
}

// count adds what it would take to delete a table's rows one by one.
func count(ctx context.Context, table *tables.Table, report *DropReport) error {
	partition, rows := "", int64(0)
	total, transactions := int64(0), int64(0)
	end := func() {
		transactions += (rows + tables.MaxTransactionOperations - 1) / tables.MaxTransactionOperations
		total, rows = total+rows, 0
	}
	for row, err := range table.Entities().Query().Select("PartitionKey").AllowTableScan().All(ctx) {
		if noTable(err, table.Name()) {
			break
		}
		if err != nil {
			return err
		}
		if row.Key.Partition != partition {
			end()
			partition = row.Key.Partition
		}
		rows++
	}
	end()
	pages := max(1, (total+tables.MaxPageSize-1)/tables.MaxPageSize)
	report.Rows += total
	report.Instead += pages + transactions
	return nil
}
