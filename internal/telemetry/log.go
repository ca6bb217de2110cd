package telemetry

import (
	"context"
	"log/slog"
	"regexp"

	"golang.org/x/time/rate"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Log writes a line of Lines. resource is the table or queue that the line concerns; the rate of a line is limited for each resource.
// attributes are those of slog. The attribute "suppressed" is the number of lines that were omitted since the previous one.
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

// limited identifies the lines that share a rate limit.
type limited struct {
	line     Line
	resource string
}

const (
	lineRate  = 1  // lines a second, on average
	lineBurst = 20 // lines at once
	// mostLimiters limits the memory for an account with very many tables.
	mostLimiters = 1000
)

// admit reports whether a line may be written, and how many lines were suppressed since the previous one.
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

// Error returns the log attribute of an error: its text without secrets and, unless the account's options allow them, without keys.
func (t *Telemetry) Error(err error) slog.Attr {
	return slog.String("error", t.Text(err.Error()))
}

// Text removes secrets from a text and, unless the account's options allow them, keys. The library puts every key in double quotes, so Text
// removes everything in double quotes.
func (t *Telemetry) Text(text string) string {
	text = wire.RedactText(text)
	if t != nil && t.options.Keys {
		return text
	}
	return quoted.ReplaceAllString(wire.HideKeysInText(text), `"..."`)
}

// quoted matches a text in double quotes, as %q writes it, even if its end is cut off.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)`)

// ExpectMissing returns a context for requests to tables whose absence is not an error, such as the tables of
// package highvolumedelete.
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

// Refused logs and counts a write of several items that the service refused together. code is the error code of the service.
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
