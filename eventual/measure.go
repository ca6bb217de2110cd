package eventual

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

const (
	standardQueueMetrics = time.Minute
	leastQueueMetrics    = 10 * time.Second
)

// measureAlways sets the gauges of the queue until ctx ends, unless the account has no MeterProvider. Then it
// removes their values.
func (s *session) measureAlways() {
	// Only the workers that take shard 0 measure the queue, so that not every worker sends the requests.
	if !s.signals.Measures() || s.options.QueueMetrics < 0 || !slices.Contains(s.options.Shards, 0) {
		return
	}
	defer s.signals.Forget(s) //nolint:errcheck // the values are gone in any case
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

// measure sets the gauges of the queue once. Requests: 2 for each storage queue, and 1.
func (s *session) measure(ctx context.Context) error {
	q := s.queue
	length, err := q.Length(ctx)
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
	poisoned, err := q.Poison().Length(ctx)
	if err != nil {
		return err
	}
	age := time.Duration(0)
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest))
	}
	return errors.Join(s.signals.Observe(s, telemetry.QueueMessages, float64(length), telemetry.AttrQueue, q.name),
		s.signals.Observe(s, telemetry.QueueOldest, age.Seconds(), telemetry.AttrQueue, q.name),
		s.signals.Observe(s, telemetry.QueuePoisoned, float64(poisoned), telemetry.AttrQueue, q.name))
}
