package division

import (
	"context"
	"log/slog"
)

type observerKey struct{}

// Observe returns a context in which Report also calls count.
func Observe(ctx context.Context, count func(ctx context.Context, table string)) context.Context {
	return context.WithValue(ctx, observerKey{}, count)
}

// Report logs and counts a write of several items that the service refused together. code is that of the service; the text of an error
// names keys, and is not logged.
func Report(ctx context.Context, log *slog.Logger, table string, items int, code string) {
	log.DebugContext(ctx, "the service refused copies of several entities together; they are written without the refused one, or one by one",
		slog.String("table", table), slog.Int("copies", items), slog.String("code", code))
	if count, ok := ctx.Value(observerKey{}).(func(context.Context, string)); ok {
		count(ctx, table)
	}
}
