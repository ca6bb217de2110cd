package harness

import (
	"context"
	"errors"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// patient is a worker that gives nothing up.
var patient = eventual.WorkerOptions{MaxDequeues: 1000, RetryDelay: oneSecond}

// DrainNow has a worker handle what is visible now. A message that cannot be handled is hidden for a second.
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

// emptyRounds bounds DrainToEmpty, a second each.
const emptyRounds = 120

// DrainToEmpty has a worker handle every message of a queue, hidden ones included, and returns when none is left. Rivals
// of one row hide their messages for a second when they have lost too often, so that DrainNow returns before they are done.
func DrainToEmpty(ctx context.Context, s *storagetest.Service, queue *eventual.Queue) error {
	return drainToEmpty(ctx, s, queue, patient)
}

// PoisonAll is DrainToEmpty with a worker that puts on the poison queue what it cannot handle twice.
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

// errNotEmpty: messages are left whose handling fails again and again, or whose holder renews them.
var errNotEmpty = errors.New("the queue does not get empty")

// drainRounds bounds Drain: a message that is handled may leave others, or wait for others.
const drainRounds = 10

// Drain lets every message appear and workers handle them, each one a new process, until none is left.
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
