package highvolumedelete

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// DropOptions are the options of Drop; nil is the same as the zero value.
type DropOptions struct {
	// DryRun reports what would be dropped, and changes nothing.
	DryRun bool
	// Count reads the keys of all rows before their table is dropped, to report the requests that were saved. It
	// costs 1 request for each 1,000 rows, which may be more than the drop itself.
	Count bool
	// UnsafeGrace is how long to wait between moving the mark and dropping the first table (default
	// DefaultGrace, 40 s; negative: not at all). With a shorter time, a writer that has read an older mark
	// may create a table below the new one. It is for tests, and for times at which no writer is running.
	UnsafeGrace time.Duration
}

// DropReport is what Drop did.
type DropReport struct {
	Mark     time.Time // the beginning of the oldest period that is kept
	Tables   []string  // dropped, or with DryRun to be dropped, oldest first
	Gone     []string  // tables that were missing: another process, or an attempt whose response was lost, had dropped them
	Requests int       // requests made, without those of Count and the SDK's retries

	// Rows is the number of dropped rows, including copies. Instead is the number of requests that it would
	// take to find these rows and delete them in transactions of 100. Both are set with Count.
	Rows    int64
	Instead int64
}

// Saved returns how many requests Drop has saved, compared with finding and deleting the rows. It needs
// Count.
func (r DropReport) Saved() int64 { return r.Instead - int64(r.Requests) }

// Drop drops the tables of all periods before the period that contains before; that period is kept. It returns
// tables.ErrInvalid if before is later than the present period. It first moves the retention mark, waits DefaultGrace
// so that writers notice, then drops the tables, oldest first. Any later Drop continues an interrupted one, even if
// its own time is earlier. Several calls may run at once. The report says what was done even together with an error.
//
// Requests: 2, 1 to list, and 1 for each table; the very first Drop 2 more.
func (s *Tables[T]) Drop(ctx context.Context, before time.Time, options *DropOptions) (DropReport, error) {
	const op = "Drop"
	if options == nil {
		options = &DropOptions{}
	}
	var report DropReport
	to, err := s.calendar.periodOf(before)
	if err != nil {
		return report, errs.InvalidIn(op, "", "%w", err)
	}
	current, err := s.calendar.periodOf(s.schema.Now())
	if err != nil {
		return report, errs.InvalidIn(op, "", "Schema.Now: %w", err)
	}
	if current.before(to) {
		return report, errs.InvalidIn(op, s.tableName(current), "before is in period %s, which is later than the present one, %s; give a time in the first period to keep", to.label(), current.label())
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

// close moves the mark, and waits until no writer relies on an older one. With DryRun it only returns the mark that would apply.
func (s *Tables[T]) close(ctx context.Context, to period, options *DropOptions, report *DropReport) (mark, error) {
	if options.DryRun {
		report.Requests++
		m, err := s.readMark(ctx)
		if !m.set || m.before.before(to) {
			m.before, m.set = to, true
		}
		return m, err
	}
	m, err := s.advance(ctx, to, &report.Requests)
	if err != nil {
		return m, err
	}
	grace := cmp.Or(options.UnsafeGrace, DefaultGrace)
	return m, backoff.Sleep(ctx, grace)
}

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
	case errors.Is(err, tables.ErrMissingResource), beingDeleted(err):
		report.Gone = append(report.Gone, name)
	default:
		return err
	}
	return nil
}

func count(ctx context.Context, table *tables.Table, report *DropReport) error {
	partition, rows := "", int64(0)
	total, transactions := int64(0), int64(0)
	end := func() {
		transactions += (rows + tables.MaxTransactionOperations - 1) / tables.MaxTransactionOperations
		total, rows = total+rows, 0
	}
	for row, err := range table.Entities().Query().Select("PartitionKey").AllowTableScan().AllParallel(ctx, nil) {
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

// List returns the names of the existing tables of periods, oldest first. Requests: 1 for each 1,000 tables.
func (s *Tables[T]) List(ctx context.Context) ([]string, error) {
	periods, err := s.list(ctx, nil, new(int))
	names := make([]string, len(periods))
	for i, p := range periods {
		names[i] = s.tableName(p)
	}
	return names, err
}

// list returns the periods that have a table; if below is not nil, only the periods before it.
func (s *Tables[T]) list(ctx context.Context, below *period, requests *int) ([]period, error) {
	prefix := s.schema.Name + layouts[s.schema.Unit][:1]
	to := prefix + ":" // the character after '9', so that all labels are below it
	if below != nil {
		to = s.tableName(*below)
	}
	filter := "TableName ge '" + prefix + "0' and TableName lt '" + to + "'" // letters and digits only, nothing to escape
	pager := s.account.TableService().NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter})
	var all []period
	for pager.More() {
		*requests++
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, listFailure(err)
		}
		for _, t := range page.Tables {
			if t.Name == nil || len(*t.Name) < len(s.schema.Name) || !strings.EqualFold((*t.Name)[:len(s.schema.Name)], s.schema.Name) {
				continue // the service compares names without case
			}
			if p, ok := s.calendar.parse(strings.ToUpper((*t.Name)[len(s.schema.Name):])); ok && (below == nil || p.before(*below)) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b period) int { return a.at.Compare(b.at) })
	return all, nil
}
