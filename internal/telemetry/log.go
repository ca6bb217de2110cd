package telemetry

import (
	"context"
	"log/slog"
	"regexp"
	"slices"

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

// Missing logs and counts a request to a table, queue or container that does not exist, unless ctx is a context of
// ExpectMissing.
func (t *Telemetry) Missing(ctx context.Context, service, resource string) {
	if expectsMissing(ctx) {
		return
	}
	t.Count(ctx, MissingResources, 1, AttrService, service, AttrResource, resource)
	t.Log(ctx, LineMissing, resource, slog.String("service", service), slog.String("resource", resource))
}

// MarksLeft logs and counts copies in other partitions that stay marked, since settling them failed.
func (t *Telemetry) MarksLeft(ctx context.Context, table string, copies int, err error) {
	t.Count(ctx, MarksLeft, copies, AttrTable, table)
	t.Log(ctx, LineMarksLeft, table, slog.String("table", table), slog.Int("copies", copies), t.Error(err))
}

// EffectFailed counts an effect of a committed change that the writer could not apply.
func (t *Telemetry) EffectFailed(ctx context.Context, repository string, err error) {
	if t.Measures() {
		r := t.explain(err)
		t.Count(ctx, EffectsFailed, 1, AttrRepository, repository, AttrPattern, r.Pattern, AttrTable, r.Table, AttrOutcome, r.Outcome)
	}
}

// BlobLeft counts and logs a blob that a change or a sweep could not examine or delete.
func (t *Telemetry) BlobLeft(ctx context.Context, container string, err error) {
	if t.Measures() {
		t.Count(ctx, BlobsLeft, 1, AttrContainer, container, AttrOutcome, t.explain(err).Outcome)
	}
	t.Log(ctx, LineBlobLeft, container, slog.String("container", container), t.Error(err))
}

// PollFailed counts a poll that failed.
func (t *Telemetry) PollFailed(ctx context.Context, queue string, err error) {
	if t.Measures() {
		t.Count(ctx, PollFailures, 1, AttrQueue, queue, AttrOutcome, t.explain(err).Outcome)
	}
}

// Line is one of the lines of the log.
type Line uint8

// The lines of the log.
const (
	LineMissing Line = iota
	LineEffectFailed
	LineIntentNotDeleted
	LineIntentHidden
	LineIntentOld
	LineIntentBusy
	LineMarksLeft
	LinePollFailed
	LinePollGarbled
	LineQueueUnmeasured
	LineLeaseLost
	LineLeaseLostLate
	LineDuplicate
	LineMessageFailed
	LineMessageNotDeleted
	LineMessageHidden
	LinePostponed
	LineMessagePostponed
	LinePoisoned
	LinePoisonNotDeleted
	LinePoisonFailed
	LineUnsigned
	LineUnmatched
	LineBlobKept
	LineBlobLeft
	LineRowLeftOut
)

// lines declares the lines of the log.
var lines = [...]LineInfo{
	LineMissing: {"resource_missing", slog.LevelError, "a table, queue or container does not exist; create it with Store.Create",
		"The table, queue or container that `resource` names does not exist. A frequent cause is a new index: call Store.Create again."},
	LineEffectFailed: {"effect_failed", slog.LevelWarn, "a change is made, and its effect outside of the entity's partition failed; a worker of the queue applies the effect",
		"The writer returned nil, and a copy in another entity, or another effect outside of the partition, is missing until a worker has handled the intent. `error` says why, and `action` says what to do."},
	LineIntentNotDeleted: {"intent_not_deleted", slog.LevelInfo, "an intent is carried out, but its message is not deleted; a worker carries the intent out again, which changes nothing",
		"Harmless. Frequent lines mean that the queue service is slow or refuses deletes."},
	LineIntentHidden: {"intent_hidden", slog.LevelInfo, "an intent stays hidden from workers until its visibility timeout is over",
		"Workers apply the intent's effects after that timeout."},
	LineIntentOld: {"intent_old", slog.LevelWarn, "an intent is old: the change's effects outside of the entity's partition are not applied yet",
		"A worker got an intent that is older than 10 minutes. Look for effect_failed and message_failed lines of this intent."},
	LineIntentBusy: {"intent_busy", slog.LevelWarn, "the entity of an intent has changed during every attempt of a delivery; the intent is delivered again later",
		"The delivery does not count as a failure. Frequent lines mean that an entity changes faster than its effects are applied or its outbox handler returns."},
	LineMarksLeft: {"marks_left", slog.LevelWarn, "a change is over, and copies in other partitions may stay marked, since the request that settles them failed",
		"Reads stay right. A read through such a copy costs 1 request more until a later change, a read 35 seconds later, or Repair settles the copy. `error` says why."},
	LinePollFailed: {"poll_failed", slog.LevelError, "poll failed",
		"A worker could not get messages and tries again. Intents wait until a poll succeeds."},
	LinePollGarbled: {"poll_garbled", slog.LevelError, "a message of the service lacks id, receipt or text",
		"Something between the program and the service changes responses."},
	LineQueueUnmeasured: {"queue_unmeasured", slog.LevelWarn, "the length of the queue could not be read, so the queue's metrics are not current",
		"The gauges of the queue keep their last values."},
	LineLeaseLost: {"lease_lost", slog.LevelWarn, "lease lost",
		"The lease of a message was lost before the handler was done. Another worker may have the message."},
	LineLeaseLostLate: {"lease_lost_late", slog.LevelWarn, "lease lost after the handler was done",
		"The message is delivered again."},
	LineDuplicate: {"message_duplicate", slog.LevelWarn, "message was handled before: the blob of its body is gone",
		"Harmless if only the library deletes blobs of messages. If another program deleted the blob, no handler got this message."},
	LineMessageFailed: {"message_failed", slog.LevelWarn, "message failed",
		"A handler or an intent failed. The message is delivered again."},
	LineMessageNotDeleted: {"message_not_deleted", slog.LevelWarn, "message was handled and not deleted, so the message will come again",
		"A handler must tolerate the duplicate."},
	LineMessageHidden: {"message_hidden", slog.LevelWarn, "message stays hidden until its visibility timeout is over",
		"A worker could not make a message visible again. The message is delivered after the timeout."},
	LinePostponed: {"intent_postponed", slog.LevelWarn, "intent names what only a newer build knows; workers of that build handle the intent",
		"Expected during a deployment. After a deployment, the line means that no worker of the newer build runs."},
	LineMessagePostponed: {"message_postponed", slog.LevelWarn, "message cannot succeed yet; it is delivered again, with growing delays",
		"A service is down or throttles, a table, queue or container is missing, or another writer has the entity. One line for each message and none for its later deliveries; the metric tablepatterns.queue.postponed_age says how long the oldest message waits."},
	LinePoisoned: {"message_poisoned", slog.LevelError, "message poisoned",
		"A message that failed too often or cannot succeed is on the poison queue until somebody requeues or deletes the message. `reason` says why."},
	LinePoisonNotDeleted: {"poison_not_deleted", slog.LevelWarn, "message is on the poison queue and not deleted from its own queue, so a worker puts the message on the poison queue again",
		"The poison queue gets a duplicate."},
	LinePoisonFailed: {"poison_failed", slog.LevelError, "message cannot be put on the poison queue",
		"The message is delivered again. Check that the poison queue exists."},
	LineUnsigned: {"queue_unsigned", slog.LevelWarn, "messages of the queue are not authenticated: whoever can add messages can have the library repeat work on existing entities, and move entities of a known incarnation; set QueueOptions.SigningKeys",
		"One line for each queue."},
	LineUnmatched: {"rows_unmatched", slog.LevelWarn, "none of the table's rows is an entity of the repository; check Prefix, Rows, Mine and Where of the repository's schema",
		"Store.Ready found that every query of the repository is empty. Harmless if the table has entities of other types and no entity of the repository was written yet."},
	LineBlobKept: {"blob_kept", slog.LevelWarn, "a row named a blob whose metadata do not name the entity; the library keeps the blob",
		"Somebody changed the row, or the blob was copied or restored without its metadata. Sweep counts such a blob as Foreign."},
	LineBlobLeft: {"blob_left", slog.LevelWarn, "a change or a sweep could not examine or delete a blob that perhaps no row names; the blob stays until a sweep",
		"`error` says why: for example, the blob has a lease, or an immutability policy protects it. Sweep again when that has ended."},
	LineRowLeftOut: {"row_left_out", slog.LevelWarn, "a copy, backup or restore leaves out a row that cannot be read, or that no table of the service stores; correct the row with the program that wrote it",
		"`error` says why. `Options.Found` gets the key, and `Report.Failed` counts the rows."},
}

// Lines returns all lines of the log.
func Lines() []LineInfo { return slices.Clone(lines[:]) }
