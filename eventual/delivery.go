package eventual

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

type delivery struct {
	*session
	raw     dequeued
	shard   int
	holding *holding
	message *Message // nil until the message was read, or if it cannot be read
	verdict verdict.Verdict
	err     error
	began   time.Time
}

// deliver handles a message. When it returns, this delivery sends no further request.
func (s *session) deliver(shard int, raw dequeued, since time.Time) {
	s.stats.inFlight.Add(1)
	defer s.stats.inFlight.Add(-1)
	d := &delivery{session: s, raw: raw, shard: shard, began: time.Now()}
	e, unreadable := decodeEnvelope(raw.text, raw.id, raw.inserted)
	handling, process := s.signals.Process(s.handling, s.queue.name, raw.dequeues, s.senderOf(e, unreadable))
	d.holding = hold(handling, s.queue.shards[shard], raw.id, raw.receipt, raw.text, since, s.queue.visibility)
	defer d.holding.stop()
	if s.ctx.Err() != nil {
		d.release(0, "")
		process.End(unknownType, verdict.Release.String(), false, time.Time{}, nil)
		return
	}
	d.holding.keep()
	ctx := d.holding.work
	// Deferred, since a handler may call runtime.Goexit.
	defer func() {
		outcome := d.acknowledge()
		failed := d.err
		if outcome == verdict.Release.String() {
			failed = nil // a later delivery handles the message, and this one does not count as a failure
		}
		process.End(d.typeName(), outcome, outcome == verdict.Finish.String(), d.sent(), failed)
	}()
	d.err = errGoexit
	d.verdict, d.err = d.handle(ctx, e, unreadable)
}

// senderOf returns the sender's trace context, or "" if the message is not authentic.
func (s *session) senderOf(e *envelope, unreadable error) string {
	if unreadable != nil || e.Trace == "" || !s.signals.On() || s.queue.authenticate(e, time.Now()) != nil {
		return ""
	}
	return e.Trace
}

func (d *delivery) sent() time.Time {
	if d.message == nil {
		return time.Time{}
	}
	return d.message.Sent
}

func (d *delivery) handle(ctx context.Context, e *envelope, err error) (verdict.Verdict, error) {
	if err != nil {
		return verdict.Verdict{}, errors.Join(d.tooMany(), err)
	}
	m := &Message{ID: e.ID, Type: e.Type, Sent: e.Sent, Dequeues: d.raw.dequeues, queue: d.queue, envelope: e, holding: d.holding, text: d.raw.text, allowUnfilled: d.options.AllowUnfilled}
	d.message = m
	if err := d.tooMany(); err != nil {
		return verdict.Verdict{}, err
	}
	if err := d.queue.authenticate(e, time.Now()); err != nil {
		return verdict.Verdict{}, err
	}
	h := d.handlerOf(e.Type)
	if h == nil {
		var wait time.Duration
		if d.options.patient {
			wait = d.queue.visibility // a newer build with a handler may be being deployed
		}
		return verdict.Verdict{Delay: wait}, fmt.Errorf("no handler for messages of type %q; give one to NewWorker", e.Type)
	}
	m.Body, err = d.queue.open(ctx, e)
	if errors.Is(err, errClaimGone) && d.raw.dequeues > 1 {
		// A missing blob means that an earlier delivery handled the message: see errClaimGone.
		d.stats.duplicates.Add(1)
		d.logged(ctx, telemetry.LineDuplicate, d.about()...)
		return verdict.Verdict{}, nil
	}
	if err != nil {
		return verdict.Verdict{}, unopened{err}
	}
	return call(ctx, h, m)
}

func (d *delivery) tooMany() error {
	if d.attempts() > d.options.MaxDequeues {
		return fmt.Errorf("the message was delivered %d times, and MaxDequeues is %d; requeue it when the cause of its failures is gone", d.attempts(), d.options.MaxDequeues)
	}
	return nil
}

func call(ctx context.Context, h internalHandler, m *Message) (v verdict.Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = verdict.Verdict{}, &panicError{value: r, stack: string(debug.Stack())}
		}
		if err != nil {
			err = &handlerError{text: errorText(err), err: err}
		}
	}()
	return h(ctx, m)
}

// handlerError holds a handler's error and its text, read once under recover: an Error method may panic or change its result.
type handlerError struct {
	text string
	err  error
}

func (e *handlerError) Error() string { return e.text }
func (e *handlerError) Unwrap() error { return e.err }

func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of type %T that cannot say what it is", err)
		}
	}()
	return err.Error()
}

// acknowledge deletes, releases or poisons the message, and returns the outcome's name.
func (d *delivery) acknowledge() string {
	switch {
	case d.holding.lease.Check() != nil:
		// Another process may hold the message by now: ignore the handler's result.
		d.leaseLost(telemetry.LineLeaseLost)
		return "lost"
	case d.err == nil && d.verdict.Action == verdict.Finish:
		return d.finish()
	case d.err == nil && d.verdict.Action == verdict.Release:
		d.release(d.verdict.Delay, "")
		return verdict.Release.String()
	case d.err == nil:
		return verdict.Leave.String() // the message stays hidden until its visibility timeout is over
	case d.handling.Err() != nil && d.attempts() < d.options.MaxDequeues:
		d.release(0, "") // the worker is stopping, which made the handler fail
		return verdict.Release.String()
	}
	if line, ok := d.postponable(); ok {
		d.postpone(line)
		return verdict.Release.String()
	}
	d.stats.failed.Add(1)
	if d.attempts() >= d.options.MaxDequeues || d.verdict.Poisoned != nil {
		return d.poison()
	}
	d.logged(d.holding.own, telemetry.LineMessageFailed, d.about(d.signals.Error(d.err))...)
	d.retry()
	return "failed"
}

// finish removes the body's blob before the message: in the other order, a crash would leave a blob without a message.
func (d *delivery) finish() string {
	err := d.queue.removeClaim(d.holding.own, d.message.envelope)
	if err == nil {
		err = d.holding.finish()
	}
	switch {
	case lease.Lost(d.holding.own, err):
		d.leaseLost(telemetry.LineLeaseLostLate)
		return "lost"
	case err != nil:
		d.stats.failed.Add(1)
		d.logged(d.holding.own, telemetry.LineMessageNotDeleted, d.about(d.signals.Error(err))...)
		return "undeleted"
	}
	d.stats.handled.Add(1)
	d.handled.Add(1)
	d.settled()
	return verdict.Finish.String()
}

// settled forgets a postponement of the message.
func (d *delivery) settled() {
	if oldest, ok := d.postponed.remove(d.raw.id); ok {
		_ = d.observePostponed(oldest) // an error is about the meters of the program
	}
}

// poison moves the message to the poison queue; if that fails, the message is delivered again and poisoned then.
func (d *delivery) poison() string {
	reason, stack := wire.RedactText(d.err.Error()), ""
	if p := (*panicError)(nil); errors.As(d.err, &p) {
		stack = p.stack
	}
	var hidden time.Duration
	if d.holding.lease.Unsure() {
		hidden = d.queue.visibility
	}
	err := d.queue.putPoison(d.holding.own, d.poisonEntry(reason, stack), hidden)
	if err == nil {
		if d.verdict.Poisoned != nil {
			err = d.verdict.Poisoned(d.holding.work) // the handler's clean-up
		}
		if err == nil {
			err = d.holding.finish()
		} else {
			defer d.retry()
		}
		d.stats.poisoned.Add(1)
		d.settled()
		d.logged(d.holding.own, telemetry.LinePoisoned, d.about(slog.String("reason", d.signals.Text(reason)))...)
		if err == nil {
			return "poisoned"
		}
		d.logged(d.holding.own, telemetry.LinePoisonNotDeleted, d.about(d.signals.Error(err))...)
		return "poisoned"
	}
	d.logged(d.holding.own, telemetry.LinePoisonFailed, d.about(slog.String("reason", d.signals.Text(reason)), d.signals.Error(err))...)
	d.retry()
	return "failed"
}

func (d *delivery) retryDelay() (delay time.Duration) {
	defer func() {
		if recover() != nil {
			delay = longestRetry
		}
	}()
	delay, ok := wholeSeconds(d.options.RetryDelay(d.attempts()))
	if !ok {
		return longestRetry
	}
	return delay
}

func (d *delivery) retry() {
	delay := max(d.retryDelay(), d.verdict.Delay)
	if err := d.holding.release(delay, ""); err != nil {
		d.logged(d.holding.own, telemetry.LineMessageHidden, d.about(d.signals.Error(err))...)
	}
}

// release makes the message visible after delay, with another text unless text is empty. It returns false if that may have failed.
func (d *delivery) release(delay time.Duration, text string) bool {
	d.stats.released.Add(1)
	delay, ok := wholeSeconds(delay)
	if !ok {
		delay = 0
	}
	err := d.holding.release(delay, text)
	if err != nil {
		d.logged(d.holding.own, telemetry.LineMessageHidden, d.about(d.signals.Error(err))...)
	}
	return err == nil
}

// typeName returns the message's type only if this program has a handler for it, so that senders cannot add labels to metrics and spans.
func (d *delivery) typeName() string {
	if d.message == nil {
		return "undecodable"
	}
	if d.handlerOf(d.message.Type) == nil {
		return unknownType
	}
	return d.message.Type
}

const unknownType = "unknown"

func (d *delivery) leaseLost(line telemetry.Line) {
	d.stats.leasesLost.Add(1)
	d.signals.Count(d.handling, telemetry.LeasesLost, 1, telemetry.AttrQueue, d.queue.name)
	d.logged(d.handling, line, d.about()...)
}

func (d *delivery) about(more ...any) []any {
	id, messageType := d.raw.id, ""
	if d.message != nil {
		id, messageType = cut(d.message.ID, maxType), cut(d.message.Type, maxType)
	}
	return append([]any{slog.String("id", id), slog.String("type", messageType), slog.Int("dequeues", d.raw.dequeues)}, more...)
}
