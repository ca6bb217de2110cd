package readiness

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/ownrows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Unmatched reports whether a table has rows and none is an entity of the repository, as if Rows, Mine or Where of its schema were wrong.
// It returns false if one request did not read the whole table. Requests: 0 if the schema has none of the three, else at most 2.
func Unmatched(ctx context.Context, r *engine.Engine) (bool, error) {
	own := &r.Schema.Own
	if !own.Declared() {
		return false, nil
	}
	src := &tables.Source{Table: r.Table, Codec: r.Codec, Span: own.Span, Where: own.Conditions(), Skips: true, Problems: true, System: append(own.Properties(), rows.Primary, rows.Shared),
		Load: func(_ context.Context, row *tables.RawRow, _ []string) (any, error) {
			if !r.Owns(engine.RowOf(row)) {
				return nil, nil
			}
			return row.Clone(), nil
		}}
	page, err := tables.QueryOf[tables.RawRow](rows.Open, src).AllowTableScan().Select("PartitionKey").PageSize(pageOf(own)).Page(ctx, "")
	if err != nil || len(page.Items)+len(page.Problems) > 0 || page.Next != "" {
		return false, err
	}
	_, err = r.Table.Entities().Query().AllowTableScan().Select("PartitionKey").First(ctx)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// NameUnmatched returns the name of a repository that is Unmatched, for the report of a job. Since the job is already done, it omits the
// name after an error.
func NameUnmatched(ctx context.Context, r *engine.Engine) string {
	if none, err := Unmatched(ctx, r); !none || err != nil {
		return ""
	}
	return r.Name()
}

// pageOf is the number of rows to read: one, or more if Mine must decide about each row.
func pageOf(own *ownrows.Rows) int {
	if own.Mine != nil {
		return tables.MaxPageSize
	}
	return 1
}

// Warn logs the repositories that are Unmatched. It checks each repository once and does not repeat a failed
// check, since the caller asks about resources and this log line is only additional advice.
func (r *Register) Warn(ctx context.Context, all []*engine.Engine) {
	for _, e := range all {
		if r.Has(matchOf(e)) {
			continue
		}
		r.mu.Lock()
		if r.known == nil {
			r.known = map[ID]bool{}
		}
		r.known[matchOf(e)] = true
		r.mu.Unlock()
		if unmatched, err := Unmatched(ctx, e); err == nil && unmatched {
			tables.TelemetryOf(rows.Open, e.Table.Account()).Log(ctx, telemetry.LineUnmatched, e.Table.Name(), slog.String("table", e.Table.Name()), slog.String("repository", e.Name()))
		}
	}
}

// matchOf returns the ID under which Warn records that a repository was checked.
func matchOf(e *engine.Engine) ID {
	return ID{Account: e.Table.Account(), Name: "rows of " + e.Table.Name() + " " + e.Name()}
}
