package eventual

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A writer whose change is committed returns nil even if an effect of the change outside of the entity's partition
// failed: the intent is still on the queue, and a worker carries it out. So the account's log is the one place that
// shows the failure before the intent is on the poison queue. A line names the pattern, the table and what to do.

// logEffect logs that a writer could not apply an effect. committed says whether the change was made.
func (q *Queue) logEffect(ctx context.Context, intent *intents.Intent, committed bool, err error) {
	line := telemetry.LineEffectFailed
	if !committed {
		line = telemetry.LineEffectNotFreed
	}
	about := aboutIntent(q, intent)
	if e, ok := errors.AsType[*tables.Error](err); ok {
		about = append(about, slog.String("pattern", e.Pattern), slog.String("table", tableIn(e)))
	}
	if committed {
		q.signals().EffectFailed(ctx, intent.Repository(), err)
	}
	q.signals().Log(ctx, line, q.name, append(about, q.signals().Error(err), slog.String("action", actionFor(err)))...)
}

// signals emits the queue's lines, metrics and spans.
func (q *Queue) signals() *telemetry.Telemetry { return tables.TelemetryOf(rows.Open, q.account) }

// logMessage logs that a request about the message of an intent failed. line describes the consequence.
func (q *Queue) logMessage(ctx context.Context, intent *intents.Intent, line telemetry.Line, err error) {
	q.signals().Log(ctx, line, q.name, append(aboutIntent(q, intent), q.signals().Error(err))...)
}

func aboutIntent(q *Queue, intent *intents.Intent) []any {
	return []any{slog.String("queue", q.name), slog.String("repository", intent.Repository()), slog.String("intent", intent.ID)}
}

// tableIn returns the table that an error names, or "" if the error names a blob, since the name of a blob
// may contain the program's data.
func tableIn(e *tables.Error) string {
	if rows.CheckTableName(e.Table) != nil {
		return ""
	}
	return e.Table
}

// actionFor returns what an operator can do about a failed effect.
func actionFor(err error) string {
	var e *tables.Error
	table := "the table"
	if errors.As(err, &e) {
		table = cmp.Or(tableIn(e), table)
	}
	switch {
	case errors.Is(err, tables.ErrMissingResource):
		return "create " + table + "; then requeue intents that are on the poison queue"
	case errors.Is(err, tables.ErrDenied):
		return "give the program's credential the right to write to " + table + "; then requeue intents that are on the poison queue"
	case errors.Is(err, tables.ErrUnavailable), errors.Is(err, tables.ErrUnknownOutcome):
		return "none if it is rare; otherwise spread the keys of " + table + " over more partitions, and requeue intents that are on the poison queue"
	case errors.Is(err, tables.ErrDuplicate):
		return "decide which entity gets the key in " + table + ", and change or delete the other one"
	}
	return "see that a worker of the queue runs, and watch the poison queue"
}
