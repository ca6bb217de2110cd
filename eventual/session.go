package eventual

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// batch is the service's limit on messages of one request.
const batch = 32

type session struct {
	*Worker
	ctx      context.Context // no poll begins after it has ended
	handling context.Context // for handlers: ends StopTimeout after ctx
	cancel   context.CancelFunc
	slots    *slots
	handlers sync.WaitGroup // one for each delivery
	handled  atomic.Int64
	over     chan struct{}
	watching sync.WaitGroup
}

func (w *Worker) begin(ctx context.Context, op string) (*session, error) {
	if !w.running.CompareAndSwap(false, true) {
		return nil, errs.Wiringf(op, w.queue.name, "the worker is already running; call Run or Drain once at a time")
	}
	s := &session{Worker: w, ctx: ctx, slots: newSlots(w.options.Concurrency), over: make(chan struct{})}
	s.handling, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.watching.Go(s.watch)
	return s, nil
}

func (s *session) watch() {
	select {
	case <-s.ctx.Done():
	case <-s.over:
		return
	}
	timer := time.NewTimer(s.options.StopTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.cancel()
	case <-s.over:
	}
}

// end waits for all handlers, so that no goroutine outlives a session.
func (s *session) end() {
	s.handlers.Wait()
	close(s.over)
	s.watching.Wait()
	s.cancel()
	_ = s.signals.Forget(s) // an error is about the meters of the program
	s.running.Store(false)
}

func (s *session) pollAlways(shard int) {
	pace := pace{least: s.options.MinPoll, most: s.options.MaxPoll}
	for {
		n := s.slots.take(s.ctx, batch)
		if n == 0 {
			return
		}
		woken := s.queue.wake.watch() // before the poll, to notice a message sent during it
		got, err := s.poll(shard, n)
		switch {
		case err != nil:
			s.logged(s.ctx, telemetry.LinePollFailed, slog.String("storageQueue", s.queue.shardNames[shard]), s.signals.Error(err))
			woken = nil // after a failure, do not poll earlier
		case got > 0:
			pace.reset()
			continue
		}
		if !pace.wait(s.ctx, woken) {
			return
		}
	}
}

func (s *session) pollWhileVisible(shard int) (found bool, err error) {
	for {
		n := s.slots.take(s.ctx, batch)
		if n == 0 {
			return found, nil
		}
		got, err := s.poll(shard, n)
		if err != nil || got == 0 {
			return found, err
		}
		found = true
	}
}

// poll gets up to n messages and handles each in its own goroutine. The caller has taken n slots; poll gives back those that it does not need. The
// end of the session does not cancel its request: the messages would stay hidden unhandled.
func (s *session) poll(shard, n int) (got int, err error) {
	defer func() { s.slots.give(n - got) }()
	since, count, hidden := time.Now(), int32(n), int32(s.queue.visibility/time.Second)
	polling, span := s.signals.Begin(s.handling, telemetry.Queues, telemetry.ReceiveVerb, s.queue.name)
	ended := telemetry.ErrPanicked // until the client's policies have returned
	defer func() { span.End(ended) }()
	if err := s.queue.signing.load(polling, false); err != nil {
		ended = err
		return 0, err
	}
	answer, err := s.queue.shards[shard].DequeueMessages(polling, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &hidden})
	if err != nil {
		err = failure("Poll", s.queue.shardNames[shard], err)
		ended = err
		s.signals.PollFailed(s.handling, s.queue.name, err)
		s.stats.failedPolls.Add(1)
		return 0, err
	}
	ended = nil
	s.stats.polls.Add(1)
	for _, m := range answer.Messages {
		raw, ok := readDequeued(m)
		if !ok {
			s.logged(s.ctx, telemetry.LinePollGarbled, slog.String("storageQueue", s.queue.shardNames[shard]))
			continue
		}
		got++
		s.handlers.Go(func() {
			defer s.slots.give(1)
			s.deliver(shard, raw, since)
		})
	}
	if got == 0 {
		s.stats.emptyPolls.Add(1)
	}
	return got, nil
}

type dequeued struct {
	id, receipt, text string
	inserted          time.Time
	dequeues          int
}

func readDequeued(m *azqueue.DequeuedMessage) (dequeued, bool) {
	if m == nil || m.MessageID == nil || m.PopReceipt == nil {
		return dequeued{}, false
	}
	d := dequeued{id: *m.MessageID, receipt: *m.PopReceipt, dequeues: 1}
	if m.MessageText != nil {
		d.text = *m.MessageText // the service returns nil for an empty text
	}
	if m.InsertionTime != nil {
		d.inserted = *m.InsertionTime
	}
	if m.DequeueCount != nil {
		d.dequeues = int(*m.DequeueCount)
	}
	return d, true
}

// pace computes how long an idle poller waits. It doubles, less a random part of up to a quarter that spreads the polls of several workers.
type pace struct {
	least, most time.Duration
	last        time.Duration
}

func (p *pace) reset() { p.last = 0 }

func (p *pace) next() time.Duration {
	p.last = min(p.most, max(p.least, 2*p.last))
	return p.last - backoff.Jitter(p.last/4+1)
}

// wait pauses before the next poll; false means that ctx has ended. After a wake-up, the next pause is the shortest again.
func (p *pace) wait(ctx context.Context, woken <-chan struct{}) bool {
	timer := time.NewTimer(p.next())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-woken:
		p.reset()
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// slotPatience is how long a poll that could take one slot waits for half of them: one request can get many messages.
const slotPatience = 25 * time.Millisecond

// slots limits concurrent handlers. A poll takes a slot for each message before it asks for it: a message without a slot would only be hidden from
// other workers.
type slots struct {
	lock chan struct{} // one token, held while a poll takes slots; first come, first served, so that no shard starves

	mu      sync.Mutex
	all     int
	free    int
	changed chan struct{} // signals the holder of the lock
}

func newSlots(n int) *slots {
	s := &slots{lock: make(chan struct{}, 1), all: n, free: n, changed: make(chan struct{}, 1)}
	s.lock <- struct{}{}
	return s
}

// take waits for and takes 1 to most slots; 0 means that ctx has ended.
func (s *slots) take(ctx context.Context, most int) int {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return 0
	}
	defer func() { s.lock <- struct{}{} }()
	var timer *time.Timer
	var patience <-chan time.Time
	enough := (s.all + 1) / 2
	for ctx.Err() == nil {
		n, free := s.tryTake(enough, most)
		if n > 0 {
			if timer != nil {
				timer.Stop()
			}
			return n
		}
		if free > 0 && timer == nil {
			timer = time.NewTimer(slotPatience)
			patience = timer.C
		}
		select {
		case <-s.changed:
		case <-patience:
			enough, patience = 1, nil
		case <-ctx.Done():
		}
	}
	if timer != nil {
		timer.Stop()
	}
	return 0
}

func (s *slots) tryTake(enough, most int) (taken, free int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < enough {
		return 0, s.free
	}
	taken = min(s.free, most)
	s.free -= taken
	return taken, s.free
}

func (s *slots) give(n int) {
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

const (
	standardQueueMetrics = time.Minute
	leastQueueMetrics    = 10 * time.Second
)

// measureAlways sets the queue's gauges until the session's context ends, then removes their values.
func (s *session) measureAlways() {
	// One worker of shard 0 is enough to send the requests.
	if !s.signals.Measures() || s.options.QueueMetrics < 0 || !slices.Contains(s.options.Shards, 0) {
		return
	}
	defer s.signals.Forget(s) //nolint:errcheck // even after an error, the values are removed
	ticker := time.NewTicker(max(leastQueueMetrics, s.options.QueueMetrics))
	defer ticker.Stop()
	for {
		if err := s.measure(s.ctx); err != nil && s.ctx.Err() == nil {
			s.logged(s.ctx, telemetry.LineQueueUnmeasured, s.signals.Error(err))
		}
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// measure sets the gauges once. Requests: 2 for each storage queue, and 1.
func (s *session) measure(ctx context.Context) error {
	q := s.queue
	length, err := q.length(ctx)
	if err != nil {
		return err
	}
	var oldest time.Time
	for shard, client := range q.shards {
		answer, err := client.PeekMessage(ctx, nil)
		if err != nil {
			return failure("Peek", q.shardNames[shard], err)
		}
		for _, m := range answer.Messages {
			if m != nil && m.InsertionTime != nil && (oldest.IsZero() || m.InsertionTime.Before(oldest)) {
				oldest = *m.InsertionTime
			}
		}
	}
	poisoned, err := q.poisonQueue().Length(ctx)
	if err != nil {
		return err
	}
	age := time.Duration(0)
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest))
	}
	return errors.Join(s.signals.Observe(s, telemetry.QueueMessages, float64(length), telemetry.AttrQueue, q.name),
		s.signals.Observe(s, telemetry.QueueOldest, age.Seconds(), telemetry.AttrQueue, q.name),
		s.observePostponed(s.postponed.since()),
		s.signals.Observe(s, telemetry.QueuePoisoned, float64(poisoned), telemetry.AttrQueue, q.name))
}
