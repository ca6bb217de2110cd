package backup

import (
	"context"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Copy copies the rows of a table into another table, of any account, with all properties unchanged,
// including the library's own. The destination must exist. In the destination, the rows get new ETags and
// Timestamps: if Result.Outside is not 0, run Repair afterwards. Existing rows are treated as
// Options.Existing says. A copy that runs concurrently with writers is not a snapshot: see the package
// comment.
//
// Copy can be repeated, with or without Resume: rows that are in the destination already count as Unchanged, or are written again with
// ReplaceExisting.
//
// Requests: 1 for each 1,000 rows that are read, and 1 for each 100 rows of a partition that are written. If rows exist or a response is
// lost, usually up to 2 more for that transaction; more if the destination has over 1,000 rows between the transaction's keys: up to 5,
// and 1 for each row that is not found by these.
func Copy(ctx context.Context, from, to *tables.Table, options *Options) (_ Result, err error) {
	o, err := options.checked(opCopy)
	if err == nil {
		err = usable(opCopy, false, from, to)
	}
	if err != nil {
		return Result{}, err
	}
	if from.Same(to) {
		return Result{}, tables.Wiringf(opCopy, to.Name(), "source and destination are the same table; give another destination")
	}
	ctx, span := tables.TelemetryOf(rows.Open, from.Account()).Begin(ctx, telemetry.Tables, opCopy, from.Name())
	defer func() { span.End(err) }()
	r := newRun(opCopy, o, "%s %s %d %t", nameOf(from), nameOf(to), o.Existing, o.DryRun)
	ranges := o.ranges()
	at, err := parseToken(r, func(s tablescan.State) bool { return s.Valid(len(ranges)) })
	if err != nil {
		return Result{}, err
	}
	w := &writer{r, to}
	scan := tablescan.Scan[*copied]{
		Table: from, Ranges: ranges, Readers: o.Concurrency, Plain: true,
		New: func() *copied { return &copied{} },
		Row: func(_ context.Context, p *copied, row *tables.RawRow) error {
			if why := unreadable(row); why != nil {
				p.left = append(p.left, Difference{Kind: Unreadable, Table: from.Name(), Key: row.Key, Err: why})
				return nil
			}
			if p.writes = append(p.writes, w.row(row.Key, clone(row.Properties))); versioned(row.Properties) {
				p.outside++
			}
			return nil
		},
		Work: func(ctx context.Context, _ rangescan.Range, p *copied) error { return w.all(ctx, p.writes) },
	}
	for p, err := range scan.Pages(pace.With(ctx, o.RowsPerSecond), at) {
		if err != nil {
			return r.end(false), err
		}
		if err := r.leaveOut(p.Content.left); err != nil {
			return r.end(false), err
		}
		r.progress(func(t *Result) {
			t.Read += int64(len(p.Content.writes))
			t.Outside += p.Content.outside
			t.Resume = encodeToken(r, p.Rest)
		})
	}
	return r.end(true), nil
}

// copied is a page of rows to write.
type copied struct {
	writes  []tables.RawWrite
	outside int64
	left    []Difference // the rows that cannot be copied
}

// usable returns an error for a table to which no request can be made and, with ordered, for a table whose
// rows the service returns in no order.
func usable(op string, ordered bool, all ...*tables.Table) error {
	for _, t := range all {
		if t == nil {
			return tables.Wiringf(op, "", "a table is nil; make it with Account.Table")
		}
		if err := tables.RawOf(rows.Open, t).Usable(); err != nil {
			return tables.Wiringf(op, "", "%w", err)
		}
		if ordered && t.Account().IsCosmos() {
			return tables.Wiringf(op, t.Name(), "the table is on Azure Cosmos DB, which returns rows in no order of keys; use Copy")
		}
	}
	return nil
}

// nameOf returns a name of the table that is unique among all accounts.
func nameOf(t *tables.Table) string {
	return t.Account().Endpoints().Table + "/" + strings.ToLower(t.Name())
}
