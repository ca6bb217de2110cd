package eventual_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// openQueue opens a queue of this service, which need not be there.
func openQueue(s *storagetest.Service, name string, o *eventual.QueueOptions) (*eventual.Queue, error) {
	return openQueueWith(s, name, tables.AccountOptions{}, o)
}

// openQueueWith opens a queue of an account with options of its own.
func openQueueWith(s *storagetest.Service, name string, options tables.AccountOptions, o *eventual.QueueOptions) (*eventual.Queue, error) {
	options.ClientOptions = s.ClientOptions
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &options)
	if err != nil {
		return nil, err
	}
	return eventual.NewQueue(account, name, o)
}

// newQueue makes a queue for one test.
func newQueue(t testing.TB, s *storagetest.Service, o *eventual.QueueOptions) *eventual.Queue {
	t.Helper()
	name := s.QueueName(t)
	q := assert.Must[*eventual.Queue](t)(openQueue(s, "q"+name[len(name)-16:], o)) // with room for what is added to it
	assert.Check(t, q.Create(t.Context()))
	t.Cleanup(func() {
		if err := q.Drop(context.Background()); err != nil && !errors.Is(err, tables.ErrMissingResource) {
			t.Error(err)
		}
	})
	return q
}

// atOnce repeats failed messages without waiting, so that a Drain goes through all deliveries.
func atOnce(int) time.Duration { return 0 }

func newWorker(t testing.TB, q *eventual.Queue, handlers map[string]eventual.Handler, o *eventual.WorkerOptions) *eventual.Worker {
	t.Helper()
	return assert.Must[*eventual.Worker](t)(eventual.NewWorker(q, handlers, o))
}

// drain drains a queue with a fresh worker that repeats at once, and returns what it did.
func drain(t testing.TB, q *eventual.Queue, handlers map[string]eventual.Handler) eventual.WorkerStats {
	t.Helper()
	w := newWorker(t, q, handlers, &eventual.WorkerOptions{RetryDelay: atOnce})
	assert.Check(t, assert.Err(w.Drain(t.Context())))
	return w.Stats()
}

// storageQueue is the SDK's client, for what other programs do.
func storageQueue(q *eventual.Queue, suffix string) *azqueue.QueueClient {
	return eventual.QueueService(q.Account()).NewQueueClient(q.Name() + suffix)
}

// entries are all entries of the poison queue, of which there are at most 32.
func entries(t testing.TB, q *eventual.Queue) []eventual.PoisonMessage {
	t.Helper()
	return assert.Must[[]eventual.PoisonMessage](t)(q.Poison().Peek(t.Context(), 32))
}

// running is a worker that runs until stop.
type running struct {
	*eventual.Worker
	cancel context.CancelFunc
	ended  chan error
}

func start(t testing.TB, q *eventual.Queue, handlers map[string]eventual.Handler, o *eventual.WorkerOptions) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Worker: newWorker(t, q, handlers, o), cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- r.Run(ctx) }()
	return r
}

// stop ends the worker and waits until it has returned.
func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	assert.Check(t, <-r.ended)
}

// logged collects what a worker logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// queue opens a queue whose account logs to l.
func (l *logged) queue(t testing.TB, s *storagetest.Service, name string, o *eventual.QueueOptions) *eventual.Queue {
	t.Helper()
	return assert.Must[*eventual.Queue](t)(openQueueWith(s, name, tables.AccountOptions{Logger: l.logger()}, o))
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
