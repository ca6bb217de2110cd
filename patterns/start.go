package patterns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/stores"
)

const stopTimeout = 30 * time.Second // of the function that Start returns

// Start begins the work of a program that goes on: it calls Create and, if a pattern of the store's repositories has effects outside of the
// partition or a mover uses the queue of intents, runs a worker in the background until stop is called or ctx ends. The worker finishes changes
// whose writers died, and applies the effects of patterns attached with Async; at least one process must run it. Make the repositories
// before, and call Start once.
//
// Call stop before the program ends. It lets the worker finish what it handles, and waits until the rest of all changes that have returned is
// done, for at most 30 s. Changes made after stop do their rest before they return. If the program ends without stop, nothing is lost:
// copies that stay marked cost their readers one more request, and workers close intents after the queue's visibility timeout, so that the
// effects of patterns attached with Async may be applied that much later.
//
// Requests: those of Create, and those of the worker (see package eventual).
func (s *Store) Start(ctx context.Context) (stop func() error, err error) {
	const op = "Start"
	of := s.root()
	if of == nil {
		return nil, errs.Wiringf(op, "", "the store is nil or the zero value; make it with patterns.Open")
	}
	if !of.started.CompareAndSwap(false, true) {
		return nil, errs.Wiringf(op, "", "the store is started already; call Start once, and pass on the function that it has returned")
	}
	if err := s.prepare(ctx); err != nil {
		of.started.Store(false) // the program may try again
		return nil, err
	}
	working, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	if queue, _ := of.Intents(stores.Opener{}); of.Needed() && !of.noWorker { // opens nothing, so there is no error
		go func() { ended <- queue.Work(working) }()
	} else {
		ended <- nil
	}
	return sync.OnceValue(func() error {
		cancel()
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		return errors.Join(of.Drain(ending), <-ended)
	}), nil
}

// prepare creates what the store needs or, with StoreOptions.Provisioned, checks that it exists.
func (s *Store) prepare(ctx context.Context) error {
	of := s.root()
	if !of.provisioned {
		return s.Create(ctx)
	}
	if err := s.Ready(ctx); err != nil {
		return err
	}
	return of.create(ctx, true)
}

// Drain implements stores.Store.
func (s *root) Drain(ctx context.Context) error {
	err := s.rest.Close(ctx)
	if queue, _ := s.Intents(stores.Opener{}); queue != nil { // opens nothing, so there is no error
		err = errors.Join(err, queue.Close(ctx))
	}
	return err
}
