package eventual

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Create creates the storage queues, the poison queue and, if the account has a blob endpoint, the container of large bodies.
// Requests: one for each.
//
// Create leaves existing resources as they are. If a storage queue exists already, it still creates the others and returns
// tables.ErrExists. Within about 40 s of a drop it returns tables.ErrBeingDeleted. If a response is lost and the repeated request finds
// the queue, Create counts it as created, since it cannot find out who created it.
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

// createQueue creates a storage queue. It reports existed only if the queue certainly existed before the
// call.
func createQueue(ctx context.Context, op, name string, client *azqueue.QueueClient) (existed bool, err error) {
	var ex wire.Exchange
	_, err = client.Create(wire.With(ctx, &ex), nil)
	switch {
	case wire.HasCode(err, "QueueAlreadyExists"): // with other metadata
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
