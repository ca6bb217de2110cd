package telemetry

import (
	"context"
	"log/slog"
	"regexp"

	"golang.org/x/time/rate"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Log writes a line of Lines. resource is the table or queue that it is about: lines are limited for each of them. attributes are those of
// slog. A line says in "suppressed" how many were left out before it.
func (t *Telemetry) Log(ctx context.Context, line Line, resource string, attributes ...any) {
	if t == nil {
		return
	}
	log := t.options.Logger
	if log == nil {
		log = slog.Default()
	}
	info := lines[line]
	if !log.Enabled(ctx, info.Level) {
		return
	}
	suppressed, ok := t.admit(limited{line, resource})
	if !ok {
		return
	}
	all := append([]any{slog.String("event", info.Event)}, attributes...)
	if suppressed > 0 {
		all = append(all, slog.Int("suppressed", suppressed))
	}
	log.Log(ctx, info.Level, info.Text, all...)
}

// limited is what is limited together.
type limited struct {
	line     Line
	resource string
}

const (
	lineRate  = 1  // lines a second, in the long run
	lineBurst = 20 // lines at once
	// mostLimiters bounds the memory of an account that uses very many tables.
	mostLimiters = 1000
)

// admit reports whether a line may be written, and how many were not since the last.
func (t *Telemetry) admit(of limited) (suppressed int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.limiters[of]
	if l == nil {
		if len(t.limiters) >= mostLimiters {
			clear(t.limiters)
		}
		l = &limiter{Limiter: rate.NewLimiter(lineRate, lineBurst)}
		t.limiters[of] = l
	}
	if !l.Allow() {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}

// Error is the attribute of an error: its text without secrets, and without keys unless the account's options allow them.
func (t *Telemetry) Error(err error) slog.Attr {
	return slog.String("error", t.Text(err.Error()))
}

// Text is a text without secrets, and without keys unless the account's options allow them. The library puts every key in double quotes,
// so all that is in double quotes is left out.
func (t *Telemetry) Text(text string) string {
	text = wire.RedactText(text)
	if t != nil && t.options.Keys {
		return text
	}
	return quoted.ReplaceAllString(wire.HideKeysInText(text), `"..."`)
}

// quoted is a text in double quotes, as %q writes it, or one that begins so and is cut off.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)`)

// ExpectMissing returns a context for requests to tables that may be missing without anything being wrong, such as those of periods.
func ExpectMissing(ctx context.Context) context.Context {
	return context.WithValue(ctx, expectMissing{}, true)
}

type expectMissing struct{}

func expectsMissing(ctx context.Context) bool {
	expected, _ := ctx.Value(expectMissing{}).(bool)
	return expected
}

// Missing logs and counts a request to a table, queue or container that does not exist, unless the caller expects that.
func (t *Telemetry) Missing(ctx context.Context, service, resource string) {
	if expectsMissing(ctx) {
		return
	}
	t.Count(ctx, MissingResources, 1, AttrService, service, AttrResource, resource)
	t.Log(ctx, LineMissing, resource, slog.String("service", service), slog.String("resource", resource))
}

// Refused logs and counts a write of several items that the service refused together. code is that of the service.
func (t *Telemetry) Refused(ctx context.Context, table string, items int, code string) {
	t.Count(ctx, RefusedTogether, 1, AttrTable, table)
	t.Log(ctx, LineRefusedTogether, table, slog.String("table", table), slog.Int("copies", items), slog.String("code", code))
}

// EffectFailed counts an effect of a committed change that the writer could not apply.
func (t *Telemetry) EffectFailed(ctx context.Context, repository string, err error) {
	if t.Measures() {
		r := t.explain(err)
		t.Count(ctx, EffectsFailed, 1, AttrRepository, repository, AttrPattern, r.Pattern, AttrTable, r.Table, AttrOutcome, r.Outcome)
	}
}

// PollFailed counts a poll that failed.
func (t *Telemetry) PollFailed(ctx context.Context, queue string, err error) {
	if t.Measures() {
		t.Count(ctx, PollFailures, 1, AttrQueue, queue, AttrOutcome, t.explain(err).Outcome)
	}
}
