package telemetry

import (
	"log/slog"
	"slices"
)

// Line is one of the lines of the log.
type Line uint8

// The lines of the log.
const (
	LineMissing Line = iota
	LineEffectFailed
	LineEffectNotFreed
	LineIntentNotDeleted
	LineIntentHidden
	LineIntentOld
	LineIntentBusy
	LineRefusedTogether
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
	LinePoisoned
	LinePoisonNotDeleted
	LinePoisonFailed
	LineUnsigned
	LineUnmatched
)

// lines declares the lines of the log.
var lines = [...]LineInfo{
	LineMissing: {"resource_missing", slog.LevelError, "a table, queue or container does not exist; create it with Store.Create",
		"A request found no table, queue or container of the name in `resource`. Often an index was attached and Store.Create was not called again."},
	LineEffectFailed: {"effect_failed", slog.LevelWarn, "a change is made, and its effect outside of the entity's partition failed; a worker of the queue applies it",
		"The writer returned nil, and an index, a copy or a list in another partition is stale until a worker has handled the intent. `error` says why, `action` what to do."},
	LineEffectNotFreed: {"reservation_not_freed", slog.LevelWarn, "a change was refused, and what it reserved outside of the entity's partition could not be freed; a worker of the queue frees it",
		"A unique key stays reserved until a worker has handled the intent."},
	LineIntentNotDeleted: {"intent_not_deleted", slog.LevelInfo, "an intent is carried out and its message not deleted; a worker carries it out once more, which changes nothing",
		"Harmless; frequent lines mean that the queue service is slow or refuses deletes."},
	LineIntentHidden: {"intent_hidden", slog.LevelInfo, "an intent stays hidden from workers until its visibility timeout is over",
		"Effects that are left to workers come that much later."},
	LineIntentOld: {"intent_old", slog.LevelWarn, "an intent is old: what its change does outside of the entity's partition is not applied yet",
		"A worker got an intent that is older than 10 minutes. Look for effect_failed and message_failed lines of the same intent."},
	LineIntentBusy: {"intent_busy", slog.LevelWarn, "the entity of an intent has changed during every attempt of a delivery; the intent is delivered again later",
		"The delivery is no failure. Frequent lines mean that an entity changes faster than its effects, or the handler of its outbox, are done."},
	LineRefusedTogether: {"refused_together", slog.LevelDebug, "the service refused copies of several entities together; they are written without the refused one, or one by one",
		"Costs requests and nothing else."},
	LinePollFailed: {"poll_failed", slog.LevelError, "poll failed",
		"A worker could not get messages; it tries again. Intents are not applied meanwhile."},
	LinePollGarbled: {"poll_garbled", slog.LevelError, "a message of the service lacks id, receipt or text",
		"Something between the program and the service changes responses."},
	LineQueueUnmeasured: {"queue_unmeasured", slog.LevelWarn, "the length of the queue could not be read, so its metrics are not current",
		"The gauges of the queue keep their last values."},
	LineLeaseLost: {"lease_lost", slog.LevelWarn, "lease lost",
		"A handler took longer than the lease of its message could be renewed; another worker may have the message."},
	LineLeaseLostLate: {"lease_lost_late", slog.LevelWarn, "lease lost after the handler was done",
		"The message is delivered again."},
	LineDuplicate: {"message_duplicate", slog.LevelWarn, "message was handled before: the blob of its body is gone",
		"Harmless, unless something else deletes the blobs of messages: then no handler got this message."},
	LineMessageFailed: {"message_failed", slog.LevelWarn, "message failed",
		"A handler or an intent failed; the message is delivered again."},
	LineMessageNotDeleted: {"message_not_deleted", slog.LevelWarn, "message was handled and not deleted, so it will come again",
		"Handlers tolerate the duplicate."},
	LineMessageHidden: {"message_hidden", slog.LevelWarn, "message stays hidden until its visibility timeout is over",
		"A message could not be released; it comes later."},
	LinePostponed: {"intent_postponed", slog.LevelWarn, "intent names what only a newer build knows, so it is left to workers of that build",
		"Expected during a deployment; afterwards, a worker of the newer build is missing."},
	LinePoisoned: {"message_poisoned", slog.LevelError, "message poisoned",
		"A message failed too often, or cannot succeed, and is on the poison queue until somebody requeues or deletes it. `reason` says why."},
	LinePoisonNotDeleted: {"poison_not_deleted", slog.LevelWarn, "message is on the poison queue and not deleted, so it will go there again",
		"The poison queue gets a duplicate."},
	LinePoisonFailed: {"poison_failed", slog.LevelError, "message cannot be put on the poison queue",
		"The message is delivered again. Check that the poison queue exists."},
	LineUnsigned: {"queue_unsigned", slog.LevelWarn, "messages of the queue are not authenticated: whoever can add messages can have the library repeat work on existing entities, and move those whose incarnation they know; set QueueOptions.SigningKeys",
		"Once for each queue."},
	LineUnmatched: {"rows_unmatched", slog.LevelWarn, "the table has rows, and none is an entity of the repository; check Rows, Mine and Where of its schema",
		"Store.Ready found that every query of the repository is empty. Harmless before the first entity is written beside those of other types."},
}

// Lines returns all lines of the log.
func Lines() []LineInfo { return slices.Clone(lines[:]) }
