package harness

import (
	"context"
	"errors"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// patient is a worker that never poisons a message.
var patient = eventual.WorkerOptions{MaxDequeues: 1000, RetryDelay: oneSecond}

// DrainNow makes a worker handle the messages that are visible now. A message whose handling fails is hidden
// for a second.
func DrainNow(ctx context.Context, queue *eventual.Queue) error {
	return drainBy(ctx, queue, patient)
}

func drainBy(ctx context.Context, queue *eventual.Queue, options eventual.WorkerOptions) error {
	worker, err := eventual.NewWorker(queue, nil, &options)
	if err != nil {
		return err
	}
	_, err = worker.Drain(ctx)
	return err
}

// emptyRounds limits DrainToEmpty; each round takes a second.
const emptyRounds = 120

// DrainToEmpty makes a worker handle every message of a queue, including hidden ones, and returns when the
// queue is empty. Concurrent writers of one row hide their messages for a second after too many conflicts, so
// DrainNow would return too early.
func DrainToEmpty(ctx context.Context, s *storagetest.Service, queue *eventual.Queue) error {
	return drainToEmpty(ctx, s, queue, patient)
}

// PoisonAll does what DrainToEmpty does, with a worker that poisons a message after two failures.
func PoisonAll(ctx context.Context, s *storagetest.Service, queue *eventual.Queue) error {
	return drainToEmpty(ctx, s, queue, eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: func(int) time.Duration { return 0 }})
}

func drainToEmpty(ctx context.Context, s *storagetest.Service, queue *eventual.Queue, options eventual.WorkerOptions) error {
	for range emptyRounds {
		if err := drainBy(ctx, queue, options); err != nil {
			return err
		}
		if n, err := queue.Length(ctx); err != nil || n == 0 {
			return err
		}
		s.Wait(time.Second)
	}
	return errNotEmpty
}

// errNotEmpty means that messages are left: their handling fails again and again, or their holder renews
// them.
var errNotEmpty = errors.New("the queue still has messages after all rounds")

// drainRounds limits Drain: handling a message may enqueue others.
const drainRounds = 10

// Drain makes every message visible and makes workers handle them, each in a new process, until no message is
// left.
func Drain(ctx context.Context, s *storagetest.Service, visibility time.Duration, open func(*storagetest.Service) (*eventual.Queue, error)) error {
	for range drainRounds {
		s.Wait(visibility + time.Second)
		queue, err := open(s)
		if err != nil {
			return err
		}
		if err := DrainNow(ctx, queue); err != nil {
			return err
		}
		if n, err := queue.Length(ctx); err != nil || n == 0 {
			return err
		}
	}
	return errNotEmpty
}
