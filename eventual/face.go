package eventual

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/queueclient"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Queue is a queue of messages, each of which a Worker handles at least once. It is safe for concurrent use.
type Queue handle.Any

func (q *Queue) core() *queue {
	if q == nil {
		return nil
	}
	of, _ := (*handle.Any)(q).Value().(*queue)
	return of
}

// NewQueue returns a handle for a queue; it makes no request. The name has lower-case letters, digits and single hyphens, and 3 to 63 characters
// including what the library appends for shards, the poison queue and the container.
func NewQueue(account *tables.Account, name string, options *QueueOptions) (*Queue, error) {
	q, err := newQueue(account, name, options)
	if err != nil {
		return nil, err
	}
	return q.face, nil
}

// OpenQueue returns a handle for a queue of a store, which Store.Create creates. The name gets the store's Prefix. Requests: 0.
func OpenQueue(s *patterns.Store, name string, options *QueueOptions) (*Queue, error) {
	of := rootOf(s)
	if of == nil {
		return NewQueue(nil, name, options) // the error says what is missing
	}
	q, err := newQueue((*tables.Account)(of.Account()), of.Lower(name), options)
	if err != nil {
		return nil, err
	}
	of.Know(q.Entry())
	return q.face, nil
}

func rootOf(s *patterns.Store) stores.Store {
	if s == nil {
		return nil
	}
	of, _ := (*handle.Any)(s).Value().(stores.Store)
	return of
}

// IntentQueue says how a store opens its queue of intents, and how Store.Start handles them. Give it to StoreOptions.Intents; the author of a
// pattern with effects outside of the partition gives IntentQueue(nil, nil) to Implementation.Intents.
func IntentQueue(options *QueueOptions, worker *WorkerOptions) driver.IntentQueue {
	return driver.IntentQueue(stores.NewOpener(func(account *core.Account, name string, of stores.Options) (stores.Queue, error) {
		q, err := newQueue((*tables.Account)(account), name, options)
		if err != nil {
			return nil, err
		}
		q.repositories.open = of.OpenRepository
		q.runner.open.limit(of.MaxOpen)
		q.runner.worker, err = newWorker(q, nil, worker)
		return q.runner, err
	}))
}

// Intents returns the queue of a store's intents, for its length, its poison queue, and the movers of package archive, whose moves the worker
// of Store.Start also handles. It is nil if the account has no queue endpoint. Store.Create creates the queue if Intents was called before.
func Intents(s *patterns.Store) *Queue {
	of := rootOf(s)
	if of == nil {
		return nil
	}
	opened, err := of.Intents(stores.Opener(IntentQueue(nil, nil))) // Open has refused all names for which this fails
	if err != nil || opened == nil {
		return nil
	}
	of.Know(opened.Entry())
	return opened.(*runner).face
}

// QueueService returns the SDK's client for the queue service of an account, nil without a queue endpoint.
func QueueService(account *tables.Account) *azqueue.ServiceClient {
	return queueclient.Service((*core.Account)(account))
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.core().name }

// Account returns the account to which the queue belongs.
func (q *Queue) Account() *tables.Account {
	if of := q.core(); of != nil {
		return of.account
	}
	return nil
}

// Shard returns the number of the shard, from 0 to QueueOptions.Shards-1, on which Send puts messages of a SendOptions.Partition: the first 8 bytes
// of the partition's SHA-256, modulo the number of shards. For "" it has no meaning, since Send then uses the message's ID.
func (q *Queue) Shard(partition string) int { return q.core().shardOf(partition) }

// Send puts a message on the queue, for the handler of its type, and returns its id. It writes the body as JSON, and into a blob of the claim
// container if the message would exceed 64 KiB. Messages never expire.
//
// tables.ErrUnknownOutcome means that the message may have been enqueued anyway. You can send it again, since every handler must tolerate
// duplicates.
//
// Requests: 1; 2 with a large body.
func (q *Queue) Send(ctx context.Context, messageType string, body any, options *SendOptions) (id string, err error) {
	return q.core().sendUsers(ctx, messageType, body, options)
}

// Poison returns the queue's poison queue.
func (q *Queue) Poison() *PoisonQueue { return q.core().poisonQueue() }

// Create creates the storage queues, the poison queue and, with a blob endpoint, the container of large bodies. Requests: one for each.
//
// It leaves existing resources as they are: if a storage queue exists, it still creates the others and returns tables.ErrExists. Within about 40 s
// of a drop it returns tables.ErrBeingDeleted. After a lost response it cannot find out who created the queue, and counts it as created.
func (q *Queue) Create(ctx context.Context) error { return q.core().create(ctx) }

// CreateIfMissing is Create without the error for a storage queue that exists.
func (q *Queue) CreateIfMissing(ctx context.Context) error { return q.core().createIfMissing(ctx) }

// Drop deletes the storage queues, the poison queue and the container of large bodies, with all messages. It skips missing resources, and returns
// tables.ErrMissingResource if no storage queue exists. Requests: one for each.
func (q *Queue) Drop(ctx context.Context) error { return q.core().drop(ctx) }

// Length returns the service's approximate count of the messages, including hidden ones. Requests: one for each storage queue.
func (q *Queue) Length(ctx context.Context) (int, error) { return q.core().length(ctx) }

// SweepClaims deletes large bodies that no message names: they remain after a Purge, and after a sender died before it put its message. It can run
// beside senders, workers and Requeue:
//
//   - it considers a body 70 minutes after it was stored, by the service's clock. Its sender puts the message within 50 minutes, by its own clock,
//     or not at all;
//   - it deletes the body, under the ETag of the listing, only if the body's queue and then the poison queue are empty. The service's count is
//     never below the number of messages, including hidden ones.
//
// SweepReport.Held counts bodies that stay because a queue is not empty; sweep again when both are.
//
// Requests: 1 for 5,000 bodies; for each 5,000 that include an old enough body, 1 for each storage queue; 1 for each body removed.
func (q *Queue) SweepClaims(ctx context.Context, options *SweepOptions) (SweepReport, error) {
	return q.core().sweepClaims(ctx, options)
}
