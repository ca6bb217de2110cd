package eventual

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

const (
	standardQueueMetrics = time.Minute
	leastQueueMetrics    = 10 * time.Second
)

// measureAlways sets the gauges of the queue until ctx ends, if anybody reads them.
func (s *session) measureAlways() {
	if !s.signals.Measures() || s.options.QueueMetrics < 0 {
		return
	}
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
func (w *Worker) measure(ctx context.Context) error {
	q := w.queue
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
	w.signals.Observe(ctx, telemetry.QueueMessages, float64(length), telemetry.AttrQueue, q.name)
	w.signals.Observe(ctx, telemetry.QueueOldest, age.Seconds(), telemetry.AttrQueue, q.name)
	w.signals.Observe(ctx, telemetry.QueuePoisoned, float64(poisoned), telemetry.AttrQueue, q.name)
	return nil
}
