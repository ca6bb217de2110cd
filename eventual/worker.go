package eventual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// WorkerOptions are the options of NewWorker; nil is the same as the zero value.
type WorkerOptions struct {
	// Concurrency is the maximum number of handlers that run at a time (default 16).
	Concurrency int
	// MaxDequeues is the number of deliveries after which a message goes to the poison queue (default 5). Postponed deliveries do not count. It is
	// checked before the handler is called, so a message that kills its workers is poisoned, too.
	MaxDequeues int
	// MinPoll and MaxPoll bound the time between polls that find nothing, which doubles (default 100 ms and 1 minute). A Send or Requeue on the
	// same Queue wakes the worker at once.
	MinPoll, MaxPoll time.Duration
	// StopTimeout is how long handlers may continue after Run's context has ended (default 30 s). Then their contexts end, and their messages
	// become visible as soon as they return.
	StopTimeout time.Duration
	// RetryDelay is how long a message stays hidden after its nth delivery has failed, rounded up to whole seconds (default 1 s, 2 s, 4 s and so on
	// up to 1 minute, with jitter).
	RetryDelay func(dequeues int) time.Duration
	// AllowUnfilled makes Message.Decode accept a body that sets no field of the struct. By default such a message fails, and goes to the poison
	// queue.
	AllowUnfilled bool
	// PostponeTimeout bounds how long after Message.Sent a worker postpones a message that cannot succeed yet (default 14 days): it releases the
	// message with growing delays of at most 5 minutes, logs that once, and does not count the delivery toward MaxDequeues. Postponed are the
	// library's own messages while a service is unavailable, a table, queue or container is missing, another writer has the entity, or only a newer
	// build knows what an intent names; and any message whose large body cannot be read for such a reason.
	PostponeTimeout time.Duration
	// QueueMetrics is how often Run sets the gauges tablepatterns.queue.* (default 1 minute, at least 10 s; never if negative). Only a worker with
	// an AccountOptions.MeterProvider and shard 0 does it. Requests, each time: 2 for each shard of the queue, and 1 for the poison queue.
	QueueMetrics time.Duration
	// Shards are the shards, from 0 to QueueOptions.Shards-1, from which the worker gets messages; nil means all. Messages and intents on a shard
	// that no worker takes wait; two workers may take the same one. With SendOptions.Partition, processes with different shards handle different
	// partitions, which reduces conflicts, but handlers must still tolerate duplicates and concurrency.
	Shards []int

	patient bool // RetryDelay is the default: delay messages of unknown types longer
}

const (
	standardConcurrency = 16
	standardMaxDequeues = 5
	standardMinPoll     = 100 * time.Millisecond
	standardMaxPoll     = time.Minute
	standardStopTimeout = 30 * time.Second
	standardPostponing  = 14 * 24 * time.Hour

	longestRetry = time.Minute
)

// Worker gets messages from a queue and calls their handlers. It reports to the logger and providers of the queue's account. A log line has a
// message's ID, type and number of deliveries, never its body.
type Worker struct {
	queue    *queue
	handlers map[string]Handler
	options  WorkerOptions
	signals  *telemetry.Telemetry
	stats    counters
	running  atomic.Bool

	postponed postponed
}

// NewWorker returns a worker for a queue, with one handler for each type of message. Any number of workers may share a queue; all should have
// handlers for all types, since a type without one counts as a failure.
func NewWorker(q *Queue, handlers map[string]Handler, options *WorkerOptions) (*Worker, error) {
	return newWorker(q.core(), handlers, options)
}

func newWorker(q *queue, handlers map[string]Handler, options *WorkerOptions) (*Worker, error) {
	const op = "NewWorker"
	if q == nil {
		return nil, errs.Wiringf(op, "", "the queue is nil or the zero value; make it with NewQueue")
	}
	for messageType, h := range handlers {
		if err := checkType(messageType); err != nil {
			return nil, errs.Wiringf(op, q.name, "%w", err)
		}
		switch {
		case strings.HasPrefix(messageType, ownTypes):
			return nil, errs.Wiringf(op, q.name, "message type %q begins with %q, which is reserved for the library; choose another type", messageType, ownTypes)
		case h == nil:
			return nil, errs.Wiringf(op, q.name, "the handler of message type %q is nil; give a function", messageType)
		}
	}
	var o WorkerOptions
	if options != nil {
		o = *options
	}
	if err := o.setDefaults(len(q.shards)); err != nil {
		return nil, errs.Wiringf(op, q.name, "%w", err)
	}
	return &Worker{queue: q, handlers: maps.Clone(handlers), options: o, signals: q.signals()}, nil
}

func (o *WorkerOptions) setDefaults(shards int) error {
	if min(o.Concurrency, o.MaxDequeues) < 0 || min(o.MinPoll, o.MaxPoll, o.StopTimeout, o.PostponeTimeout) < 0 {
		return errors.New("an option of WorkerOptions is negative; Concurrency, MaxDequeues, MinPoll, MaxPoll, StopTimeout and PostponeTimeout must be 0 (meaning the default) or more")
	}
	o.Concurrency = cmp.Or(o.Concurrency, standardConcurrency)
	o.MaxDequeues = cmp.Or(o.MaxDequeues, standardMaxDequeues)
	o.MaxPoll = cmp.Or(o.MaxPoll, max(standardMaxPoll, o.MinPoll))
	o.MinPoll = cmp.Or(o.MinPoll, min(standardMinPoll, o.MaxPoll))
	if o.MinPoll > o.MaxPoll {
		return fmt.Errorf("WorkerOptions.MinPoll is %v; it must be at most MaxPoll, which is %v", o.MinPoll, o.MaxPoll)
	}
	o.StopTimeout = cmp.Or(o.StopTimeout, standardStopTimeout)
	if o.RetryDelay == nil {
		o.RetryDelay, o.patient = retryDelay, true
	}
	o.PostponeTimeout = cmp.Or(o.PostponeTimeout, standardPostponing)
	o.QueueMetrics = cmp.Or(o.QueueMetrics, standardQueueMetrics)
	return o.setShards(shards)
}

func (o *WorkerOptions) setShards(all int) error {
	if o.Shards == nil {
		for shard := range all {
			o.Shards = append(o.Shards, shard)
		}
		return nil
	}
	if len(o.Shards) == 0 {
		return errors.New("WorkerOptions.Shards is empty, so the worker would never get a message; name at least one shard, or leave Shards nil for all")
	}
	o.Shards = slices.Clone(o.Shards)
	for i, shard := range o.Shards {
		switch {
		case shard < 0 || shard >= all:
			return fmt.Errorf("WorkerOptions.Shards has %d, and the queue has %d shards; they are 0 to QueueOptions.Shards-1", shard, all)
		case slices.Contains(o.Shards[:i], shard):
			return fmt.Errorf("WorkerOptions.Shards has %d twice; name each shard once", shard)
		}
	}
	return nil
}

// retryDelay is the default RetryDelay. Jitter spreads messages that failed together.
func retryDelay(dequeues int) time.Duration {
	d := longestRetry
	if dequeues < 7 {
		d = min(d, time.Second<<max(0, dequeues-1))
	}
	return d - backoff.Jitter(d/4)
}

func (w *Worker) logged(ctx context.Context, line telemetry.Line, attributes ...any) {
	w.signals.Log(ctx, line, w.queue.name, append([]any{slog.String("queue", w.queue.name)}, attributes...)...)
}

// Run gets messages and handles them until ctx ends. Then it lets the running handlers continue for StopTimeout, ends their contexts, makes
// unfinished messages visible, and returns nil when the last handler has returned. It logs failures of the service and tries again later. Only one
// Run or Drain can run at a time.
//
// Requests: 1 for each poll, which gets at most 32 messages, and no more than further handlers may run; for each message 1 to delete it, and 1 for
// every half of the visibility timeout that its handler takes. An idle worker polls each storage queue of its Shards once in MaxPoll.
func (w *Worker) Run(ctx context.Context) error {
	s, err := w.begin(ctx, "Run")
	if err != nil {
		return err
	}
	w.queue.warnUnsigned(ctx)
	defer s.end()
	var pollers sync.WaitGroup
	for _, shard := range w.options.Shards {
		pollers.Go(func() { s.pollAlways(shard) })
	}
	pollers.Go(s.measureAlways)
	pollers.Wait()
	return nil
}

// Drain handles all visible messages of its Shards, including those that become visible meanwhile, for jobs and tests. It first waits until the
// intents of this process's changes are closed, and returns when a poll of each shard finds nothing and no handler runs. handled counts the deleted
// messages; failed ones are delivered again later. If a poll fails, Drain waits for the running handlers and returns the error. If ctx ends, it
// treats them as Run does, and returns the cause of ctx.
func (w *Worker) Drain(ctx context.Context) (handled int, err error) {
	s, err := w.begin(ctx, "Drain")
	if err != nil {
		return 0, err
	}
	defer func() {
		s.end()
		handled = int(s.handled.Load())
	}()
	w.queue.runner.open.drain(ctx, false)
	for {
		found := false
		for _, shard := range w.options.Shards {
			some, err := s.pollWhileVisible(shard)
			if err != nil {
				return 0, err
			}
			found = found || some
		}
		s.handlers.Wait()
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		if !found {
			return 0, nil
		}
	}
}

// WorkerStats counts what a worker has done since it was made.
type WorkerStats struct {
	Handled     int64 // messages handled and deleted
	Failed      int64 // deliveries that failed, including poisoned ones
	Poisoned    int64 // messages put on the poison queue
	Released    int64 // messages made visible again unhandled: the worker stopped, or an intent or move must wait
	LeasesLost  int64 // deliveries cut short: another process may hold the message
	Duplicates  int64 // redeliveries of handled messages, recognized by their missing large body
	Polls       int64
	EmptyPolls  int64 // polls that found no message
	FailedPolls int64
	InFlight    int64 // deliveries under way now
}

type counters struct {
	handled, failed, poisoned, released, leasesLost, duplicates, polls, emptyPolls, failedPolls, inFlight atomic.Int64
}

// Stats returns the worker's counters.
func (w *Worker) Stats() WorkerStats {
	c := &w.stats
	return WorkerStats{Handled: c.handled.Load(), Failed: c.failed.Load(), Poisoned: c.poisoned.Load(), Released: c.released.Load(),
		LeasesLost: c.leasesLost.Load(), Duplicates: c.duplicates.Load(), Polls: c.polls.Load(), EmptyPolls: c.emptyPolls.Load(),
		FailedPolls: c.failedPolls.Load(), InFlight: c.inFlight.Load()}
}
