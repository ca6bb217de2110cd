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

	"github.com/tablepatterns/tablepatterns/internal/blobclient"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/queueclient"
	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/stores"
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
	// Shards is the number of storage queues for the messages (default 1). One has the queue's name; several have "-0", "-1" and so on appended.
	// All programs that use the queue must set the same number. See SendOptions.Partition and WorkerOptions.Shards.
	Shards int
	// VisibilityTimeout is how long a process that gets a message hides it from others; it renews that after each half. Whole seconds from 1 s to 7
	// days (default 1 minute). After a crash, another worker gets the message when it is over.
	VisibilityTimeout time.Duration
	// ClaimContainer is the blob container for bodies that are too large for a message (default: the queue's name and "-claims").
	ClaimContainer string
	// SigningKeys authenticate the messages that act on stored data: intents, moves, and messages with a claim or with steps. Workers move such a
	// message to the poison queue unless one of the keys has signed it. With nil, workers handle every message, whoever sent it, and log that once.
	SigningKeys *SigningKeys
	// AcceptUnsignedUntil lets workers also handle unsigned messages until that time, to introduce SigningKeys: choose a time after which all
	// programs have the keys and all older messages have been handled.
	AcceptUnsignedUntil time.Time
}

type queue struct {
	face       *Queue
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

func newQueue(account *tables.Account, name string, options *QueueOptions) (*queue, error) {
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
	case queueclient.Service((*core.Account)(account)) == nil:
		return nil, errs.Wiringf(op, name, "the account has no queue endpoint; set Endpoints.Queue")
	case o.SigningKeys != nil && o.SigningKeys.stored == nil && len(o.SigningKeys.keys()) == 0:
		return nil, errs.Wiringf(op, name, "the SigningKeys hold no key; make them with NewSigningKeys or StoredSigningKeys")
	case o.SigningKeys != nil && o.SigningKeys.stored != nil && o.SigningKeys.stored.table == nil:
		return nil, errs.Wiringf(op, name, "the table of StoredSigningKeys is nil; make it with Store.Table or Account.Table")
	case o.Shards < 0 || o.Shards > maxShards:
		return nil, errs.Wiringf(op, name, "QueueOptions.Shards is %d; it must be 1 to %d, or 0 for 1", o.Shards, maxShards)
	case o.VisibilityTimeout < time.Second || o.VisibilityTimeout > longestHidden || o.VisibilityTimeout%time.Second != 0:
		return nil, errs.Wiringf(op, name, "QueueOptions.VisibilityTimeout is %v; it must be whole seconds from 1s to %v, or 0 for 1 minute", o.VisibilityTimeout, longestHidden)
	}
	storage := queueclient.Service((*core.Account)(account))
	q := &queue{account: account, name: name, visibility: o.VisibilityTimeout, claimsName: o.ClaimContainer, signing: o.SigningKeys, unsignedUntil: o.AcceptUnsignedUntil,
		poison: storage.NewQueueClient(name + poisonSuffix), claims: blobclient.Container((*core.Account)(account), o.ClaimContainer), internal: map[string]internalHandler{}}
	face := Queue(handle.New(q))
	q.face, q.internal[intentType], q.runner = &face, q.handleIntent, &runner{queue: q}
	for i := range o.Shards {
		shard := name
		if o.Shards > 1 {
			shard += "-" + strconv.Itoa(i)
		}
		q.shardNames, q.shards = append(q.shardNames, shard), append(q.shards, storage.NewQueueClient(shard))
	}
	for _, each := range append([]string{name, name + poisonSuffix, o.ClaimContainer}, q.shardNames...) {
		if err := resource.CheckName(each); err != nil {
			return nil, errs.Wiringf(op, name, "%w", err)
		}
	}
	return q, nil
}

func (q *queue) shardOf(partition string) int {
	sum := sha256.Sum256([]byte(partition))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(len(q.shards)))
}

func (q *queue) nameOf(client *azqueue.QueueClient) string {
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

func (q *queue) create(ctx context.Context) error {
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
	if err := q.signing.load(ctx, true); err != nil {
		return err
	}
	return there
}

// createQueue creates a storage queue. existed is true only if it certainly existed before the call.
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

func (q *queue) createIfMissing(ctx context.Context) error {
	err := q.create(ctx)
	if errors.Is(err, tables.ErrExists) {
		return nil
	}
	return err
}

func (q *queue) drop(ctx context.Context) error {
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

func (q *queue) length(ctx context.Context) (int, error) {
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

// Entry implements stores.Queue.
func (q *queue) Entry() stores.Entry {
	e := stores.Entry{ID: stores.ID{Account: (*core.Account)(q.account), Name: "queue " + q.name}, Create: q.createIfMissing}
	for i, shard := range append(q.shards[:len(q.shards):len(q.shards)], q.poison) {
		name := q.name + poisonSuffix
		if i < len(q.shards) {
			name = q.shardNames[i]
		}
		e.Parts = append(e.Parts, resource.Resource{Kind: resource.Queue, Name: name, Check: func(ctx context.Context) error {
			_, err := shard.GetProperties(ctx, nil)
			return failure(opReady, name, err)
		}})
	}
	if q.signing != nil && q.signing.stored != nil {
		e.Parts = append(e.Parts, resource.Resource{Kind: resource.Table, Name: q.signing.stored.table.Name(), Check: func(ctx context.Context) error {
			return q.signing.load(ctx, false)
		}})
	}
	if q.claims != nil {
		e.Parts = append(e.Parts, resource.Resource{Kind: resource.Container, Name: q.claimsName, Check: func(ctx context.Context) error {
			_, err := q.claims.GetProperties(ctx, nil)
			return failure(opReady, q.claimsName, err)
		}})
	}
	return e
}

// HandleOwn implements intents.Messages.
func (q *queue) HandleOwn(op, messageType string, h func(context.Context, intents.Message) (verdict.Verdict, error)) error {
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
	q.internal[messageType] = func(ctx context.Context, m *Message) (verdict.Verdict, error) { return h(ctx, m) }
	return nil
}

// SendOwn implements intents.Messages.
func (q *queue) SendOwn(ctx context.Context, op, messageType string, body any) error {
	e, err := q.newEnvelope(op, messageType, body)
	if err != nil {
		return err
	}
	if _, err := q.send(ctx, op, e, q.shardOf(e.ID), 0); err != nil {
		return err
	}
	q.wake.all()
	return nil
}

// Runner implements intents.Messages.
func (q *queue) Runner(mostOpen int) intents.RunnerCloser {
	q.runner.open.limit(mostOpen)
	return q.runner
}

func tooLargef(op, queue, format string, args ...any) error {
	return &tables.Error{Op: op, Table: queue, Kind: tables.ErrTooLarge, Err: fmt.Errorf(format, args...)}
}

// failure makes a tables.Error of a failed read, or of a write whose unknown outcome does not matter.
func failure(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return core.ServiceError(op, name, err)
}

// writeFailure is failure, with the kind ErrUnknownOutcome if an attempt may have been applied.
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
