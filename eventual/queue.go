package eventual

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	maxShards      = 1000
	longestHidden  = 7 * 24 * time.Hour // the service's limit
	standardHidden = time.Minute
)

// QueueOptions are the options of NewQueue; nil is the same as the zero value.
type QueueOptions struct {
	// Shards is the number of storage queues over which the messages are spread; 0 means 1. A single storage
	// queue has the queue's name; several have "-0", "-1" and so on appended. All programs that use the queue
	// must set the same number. Different processes can handle different shards: see SendOptions.Partition and
	// WorkerOptions.Shards.
	Shards int
	// VisibilityTimeout is how long a message is hidden from other processes when a process gets it; while the
	// process handles the message, it renews this time whenever half of it has passed. It is in whole seconds
	// from 1 s to 7 days; 0 means 1 minute. After a crash, another worker gets the message when the timeout is
	// over.
	VisibilityTimeout time.Duration
	// ClaimContainer is the blob container for bodies that are too large for a message; "" means the queue's name with "-claims" appended.
	ClaimContainer string
	// SigningKeys authenticate messages. Some messages act on stored data: intents, moves, and messages with a
	// claim or with steps. Workers handle such a message only if a program with one of the keys has signed it;
	// otherwise they move it to the poison queue. If SigningKeys is nil, workers handle every message, whoever
	// sent it, and log that once.
	SigningKeys *SigningKeys
	// AcceptUnsignedUntil is for the introduction of SigningKeys: until that time, workers also handle unsigned messages. Choose a time
	// after which all programs have the keys and all older messages have been handled.
	AcceptUnsignedUntil time.Time
}

// Queue is a queue of messages, each of which a Worker handles at least once. It is safe for concurrent use.
type Queue struct {
	account    *tables.Account
	name       string
	visibility time.Duration
	shards     []*azqueue.QueueClient
	shardNames []string
	poison     *azqueue.QueueClient
	claims     *container.Client // nil without a blob endpoint
	claimsName string
	wake       wake

	signing       *SigningKeys // nil for none
	unsignedUntil time.Time
	warned        sync.Once // see warnUnsigned

	repositories reconcilers

	mu       sync.RWMutex
	internal map[string]internalHandler
	runner   *runner // runs the intents of repositories
}

// NewQueue returns a handle for a queue. It makes no request. The name consists of lower-case letters, digits and single hyphens. It
// has 3 to 63 characters, including those that the library appends for shards, the poison queue and the container.
func NewQueue(account *tables.Account, name string, options *QueueOptions) (*Queue, error) {
	const op = "NewQueue"
	var o QueueOptions
	if options != nil {
		o = *options
	}
	o.Shards = cmp.Or(o.Shards, 1)
	o.VisibilityTimeout = cmp.Or(o.VisibilityTimeout, standardHidden)
	if o.ClaimContainer == "" {
		o.ClaimContainer = name + "-claims"
	}
	switch {
	case account == nil:
		return nil, errs.Wiringf(op, name, "the account is nil; make one with tables.NewAccount")
	case account.QueueService() == nil:
		return nil, errs.Wiringf(op, name, "the account has no queue endpoint; set Endpoints.Queue")
	case o.SigningKeys != nil && len(o.SigningKeys.keys()) == 0:
		return nil, errs.Wiringf(op, name, "the SigningKeys hold no key; make them with NewSigningKeys")
	case o.Shards < 0 || o.Shards > maxShards:
		return nil, errs.Wiringf(op, name, "QueueOptions.Shards is %d; it must be 1 to %d, or 0 for 1", o.Shards, maxShards)
	case o.VisibilityTimeout < time.Second || o.VisibilityTimeout > longestHidden || o.VisibilityTimeout%time.Second != 0:
		return nil, errs.Wiringf(op, name, "QueueOptions.VisibilityTimeout is %v; it must be whole seconds from 1s to %v, or 0 for 1 minute", o.VisibilityTimeout, longestHidden)
	}
	q := &Queue{account: account, name: name, visibility: o.VisibilityTimeout, claimsName: o.ClaimContainer, signing: o.SigningKeys, unsignedUntil: o.AcceptUnsignedUntil,
		poison: account.Queue(name + poisonSuffix), claims: account.Container(o.ClaimContainer), internal: map[string]internalHandler{}}
	q.internal[intentType], q.runner = q.handleIntent, &runner{Queue: q}
	for i := range o.Shards {
		shard := name
		if o.Shards > 1 {
			shard += "-" + strconv.Itoa(i)
		}
		q.shardNames, q.shards = append(q.shardNames, shard), append(q.shards, account.Queue(shard))
	}
	for _, each := range append([]string{name, name + poisonSuffix, o.ClaimContainer}, q.shardNames...) {
		if err := resource.CheckName(each); err != nil {
			return nil, errs.Wiringf(op, name, "%w", err)
		}
	}
	return q, nil
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// Account returns the account to which the queue belongs.
func (q *Queue) Account() *tables.Account { return q.account }

// Shard returns the number of the shard, from 0 to QueueOptions.Shards-1, on which Send puts messages of a
// SendOptions.Partition. The number is made of the first 8 bytes of the partition's SHA-256, modulo the number
// of shards, which spreads partitions evenly. For "" the result has no meaning, since Send spreads messages
// without a Partition by their IDs. It makes no request.
func (q *Queue) Shard(partition string) int {
	sum := sha256.Sum256([]byte(partition))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(len(q.shards)))
}

// nameOf returns the name of one of the storage queues.
func (q *Queue) nameOf(client *azqueue.QueueClient) string {
	if i := slices.Index(q.shards, client); i >= 0 {
		return q.shardNames[i]
	}
	return q.name + poisonSuffix
}

// wake tells idle workers of this process that a message was put.
type wake struct {
	mu sync.Mutex
	ch chan struct{} // nil while nobody watches
}

// watch returns a channel that is closed by the next call of all.
func (w *wake) watch() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *wake) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

// Create creates the storage queues, the poison queue and, if the account has a blob endpoint, the container of large bodies.
// Requests: one for each.
//
// Create leaves existing resources as they are. If a storage queue exists already, it still creates the others
// and returns tables.ErrExists. Within about 40 s of a drop it returns tables.ErrBeingDeleted. If a response is
// lost and the repeated request finds that the queue exists, Create counts the queue as created, since it
// cannot find out who created it.
func (q *Queue) Create(ctx context.Context) error {
	const op = "Create"
	var there error
	for i, shard := range q.shards {
		existed, err := createQueue(ctx, op, q.shardNames[i], shard)
		if err != nil {
			return err
		}
		if existed && there == nil {
			there = &tables.Error{Op: op, Table: q.shardNames[i], Kind: tables.ErrExists}
		}
	}
	if _, err := createQueue(ctx, op, q.name+poisonSuffix, q.poison); err != nil {
		return err
	}
	if q.claims != nil {
		var ex wire.Exchange
		_, err := q.claims.Create(wire.With(ctx, &ex), nil)
		if err != nil && !wire.HasCode(err, "ContainerAlreadyExists") {
			return writeFailure(op, q.claimsName, err, &ex)
		}
	}
	return there
}

// createQueue creates a storage queue. existed is true only if the queue certainly existed before the call.
func createQueue(ctx context.Context, op, name string, client *azqueue.QueueClient) (existed bool, err error) {
	var ex wire.Exchange
	_, err = client.Create(wire.With(ctx, &ex), nil)
	switch {
	case wire.HasCode(err, "QueueAlreadyExists"): // the existing queue has other metadata
		return !ex.EarlierUnknown(), nil
	case err != nil:
		return false, writeFailure(op, name, err, &ex)
	}
	return ex.Status == http.StatusNoContent && !ex.EarlierUnknown(), nil
}

// CreateIfMissing creates those of the queue's resources that do not exist. Requests: as Create.
func (q *Queue) CreateIfMissing(ctx context.Context) error {
	err := q.Create(ctx)
	if errors.Is(err, tables.ErrExists) {
		return nil
	}
	return err
}

// Drop deletes the storage queues, the poison queue and the container of large bodies, with all messages. It skips resources that do
// not exist, and returns tables.ErrMissingResource if none of the storage queues exists. Requests: one for each.
func (q *Queue) Drop(ctx context.Context) error {
	const op = "Drop"
	var missing error
	found := false
	for i, shard := range q.shards {
		err := dropQueue(ctx, op, q.shardNames[i], shard)
		switch {
		case errors.Is(err, tables.ErrMissingResource):
			missing = err
		case err != nil:
			return err
		default:
			found = true
		}
	}
	if err := dropQueue(ctx, op, q.name+poisonSuffix, q.poison); err != nil && !errors.Is(err, tables.ErrMissingResource) {
		return err
	}
	if q.claims != nil {
		var ex wire.Exchange
		_, err := q.claims.Delete(wire.With(ctx, &ex), nil)
		if err != nil && !wire.HasCode(err, "ContainerNotFound", "ContainerBeingDeleted") {
			return writeFailure(op, q.claimsName, err, &ex)
		}
	}
	if !found {
		return missing
	}
	return nil
}

func dropQueue(ctx context.Context, op, name string, client *azqueue.QueueClient) error {
	var ex wire.Exchange
	_, err := client.Delete(wire.With(ctx, &ex), nil)
	switch {
	case err == nil:
		return nil
	case wire.HasCode(err, "QueueNotFound", "QueueBeingDeleted"):
		if ex.EarlierUnknown() {
			return nil // missing or being deleted, which is what Drop asked for
		}
		return failure(op, name, err)
	}
	return writeFailure(op, name, err, &ex)
}

// Length returns the service's approximate count of the messages, including hidden ones. Requests: one for each storage queue.
func (q *Queue) Length(ctx context.Context) (int, error) {
	sum := 0
	for i, shard := range q.shards {
		n, err := queueLength(ctx, q.shardNames[i], shard)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func queueLength(ctx context.Context, name string, client *azqueue.QueueClient) (int, error) {
	properties, err := client.GetProperties(ctx, nil)
	if err != nil {
		return 0, failure("Length", name, err)
	}
	if properties.ApproximateMessagesCount == nil {
		return 0, &tables.Error{Op: "Length", Table: name, Kind: tables.ErrGarbled}
	}
	return int(*properties.ApproximateMessagesCount), nil
}

const opReady = "Ready"

// ResourcesOf is for package patterns. It returns the resources that Queue.Create creates.
func ResourcesOf(_ rows.Pass, q *Queue) []resource.Resource {
	var all []resource.Resource
	for i, shard := range append(q.shards[:len(q.shards):len(q.shards)], q.poison) {
		name := q.name + poisonSuffix
		if i < len(q.shards) {
			name = q.shardNames[i]
		}
		all = append(all, resource.Resource{Kind: resource.Queue, Source: q.account.Source(), Name: name, Check: func(ctx context.Context) error {
			_, err := shard.GetProperties(ctx, nil)
			return failure(opReady, name, err)
		}})
	}
	if q.claims != nil {
		all = append(all, resource.Resource{Kind: resource.Container, Source: q.account.Source(), Name: q.claimsName, Check: func(ctx context.Context) error {
			_, err := q.claims.GetProperties(ctx, nil)
			return failure(opReady, q.claimsName, err)
		}})
	}
	return all
}

// HandleOwn makes all workers of this Queue handle messages of a type that begins with "tablepatterns." with h. It is
// for the packages of this module that send such messages; programs cannot call it, since its first argument is of an
// internal type. Programs give handlers to NewWorker. Errors name the operation op.
func HandleOwn(_ rows.Pass, q *Queue, op, messageType string, h func(context.Context, *Message) (verdict.Verdict, error)) error {
	if err := checkType(messageType); err != nil {
		return errs.Wiringf(op, q.name, "%w", err)
	}
	if !strings.HasPrefix(messageType, ownTypes) {
		return errs.Wiringf(op, q.name, "message type %q does not begin with %q, as the library's own types must", messageType, ownTypes)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.internal[messageType] != nil {
		return errs.Wiringf(op, q.name, "message type %q has a handler already; register a type once for each Queue", messageType)
	}
	q.internal[messageType] = h
	return nil
}

// SendOwn puts a message whose type begins with "tablepatterns." on the queue, for the packages of this
// module. Programs call Queue.Send, which makes the same number of requests.
func SendOwn(ctx context.Context, _ rows.Pass, q *Queue, op, messageType string, body any) error {
	e, err := q.newEnvelope(op, messageType, body)
	if err != nil {
		return err
	}
	if _, err := q.send(ctx, op, e, q.Shard(e.ID), 0); err != nil {
		return err
	}
	q.wake.all()
	return nil
}

// OpenRepositories sets the function that makes a repository, for package patterns. The queue calls it if a
// message names a repository that the program has not made yet. Call it before the queue has workers.
func OpenRepositories(_ rows.Pass, q *Queue, open func(name string) error) {
	q.repositories.open = open
}

// RunnerOf returns the queue as the runner of intents for repositories, for package patterns. mostOpen is the
// maximum number of intents that are still open although their changes have returned; with 0 or less, each
// change closes its intent before it returns.
func RunnerOf(_ rows.Pass, q *Queue, mostOpen int) intents.RunnerCloser {
	q.runner.open.limit(mostOpen)
	return q.runner
}

func tooLargef(op, queue, format string, args ...any) error {
	return &tables.Error{Op: op, Table: queue, Kind: tables.ErrTooLarge, Err: fmt.Errorf(format, args...)}
}

// failure makes a tables.Error of a failed request. Use it for reads, and for writes whose unknown outcome does
// not matter.
func failure(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return core.ServiceError(op, name, err)
}

// writeFailure converts the error of a write as failure does, but with the kind ErrUnknownOutcome if an attempt may have been applied.
func writeFailure(op, name string, err error, ex *wire.Exchange) error {
	if err == nil {
		return nil
	}
	e := failure(op, name, err)
	if ex.Lost() || ex.EarlierUnknown() {
		e.(*tables.Error).Kind = tables.ErrUnknownOutcome
	}
	return e
}
