package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
)

const (
	// chaosVisibility is how long a message waits with -chaos whose holder was lost: a minute by default.
	chaosVisibility = 3 * time.Second
	// drainTime is when it is given up to empty a queue.
	drainTime = 2 * time.Minute
)

// drainIntents carries out what changes have left to do outside of their partitions: nothing, unless calls went wrong meanwhile. It
// is an error if an intent is left on the queue after that, or on its poison queue.
func (c *company) drainIntents(ctx context.Context) error {
	worker, err := eventual.NewWorker(c.store.Intents(), nil, nil)
	if err != nil {
		return err
	}
	return c.drain(ctx, worker, c.store.Intents())
}

// drain has a worker empty the queue. A message whose put or get was not answered is hidden for a time, and waited for. None
// may end on the poison queue.
func (c *company) drain(ctx context.Context, worker *eventual.Worker, queue *eventual.Queue) error {
	for waited := time.Duration(0); ; waited += 100 * time.Millisecond {
		if _, err := worker.Drain(ctx); err != nil {
			return err
		}
		left, err := queue.Length(ctx)
		if err != nil {
			return err
		}
		if left == 0 {
			return checkPoison(ctx, queue)
		}
		if waited >= drainTime || ctx.Err() != nil {
			return fmt.Errorf("%s on queue %s", counted(left, "message"), queue.Name())
		}
		c.place.pass(100 * time.Millisecond)
	}
}

// checkPoison is an error if something was given up.
func checkPoison(ctx context.Context, queue *eventual.Queue) error {
	entries, err := queue.Poison().Peek(ctx, 1)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("poison queue %s is not empty: %s", queue.Poison().Name(), entries[0].Reason)
	}
	return err
}
