package main

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/eventual"
)

// worker is who handles the archive's messages.
type worker interface {
	// progress is called from time to time with the number of messages left.
	progress(left int) error
	// stop ends the worker, and says what it did.
	stop() (did string, err error)
}

// hire starts a worker: in this program, or with -chaos in another process, to be killed.
func (a *archiving) hire(ctx context.Context) (worker, error) {
	if a.c.options.chaos && a.c.place.outside {
		a.job.Seed = a.c.options.seed
		return hireProcess(a.c.place.connection, a.job)
	}
	w, err := a.newWorker(eventual.WorkerOptions{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	local := &localWorker{worker: w, cancel: cancel, ended: make(chan error, 1)}
	go func() { local.ended <- w.Run(ctx) }()
	return local, nil
}

// localWorker runs in this program.
type localWorker struct {
	worker *eventual.Worker
	cancel context.CancelFunc
	ended  chan error
}

func (w *localWorker) progress(int) error { return nil }

func (w *localWorker) stop() (string, error) {
	w.cancel()
	if err := <-w.ended; err != nil {
		return "", err
	}
	stats := w.worker.Stats()
	if stats.Poisoned > 0 {
		return "", errors.New("the worker has put messages on the poison queue")
	}
	return counted(int(stats.Handled), "message") + " handled", nil
}
