package eventual

import (
	"context"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/tables"
)

// HandleOwn makes all workers of this Queue handle messages of a type that begins with "tablepatterns." with h. It is
// for the packages of this module that send such messages; programs cannot call it, since its first argument is of an
// internal type. Programs give handlers to NewWorker. Errors name the operation op.
func HandleOwn(_ rows.Pass, q *Queue, op, messageType string, h func(context.Context, *Message) (verdict.Verdict, error)) error {
	if err := checkType(messageType); err != nil {
		return tables.Wiringf(op, q.name, "%w", err)
	}
	if !strings.HasPrefix(messageType, ownTypes) {
		return tables.Wiringf(op, q.name, "message type %q does not begin with %q, as the library's own types must", messageType, ownTypes)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.internal[messageType] != nil {
		return tables.Wiringf(op, q.name, "message type %q has a handler already; register a type once for each Queue", messageType)
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

// RunnerOf returns the queue as the runner of intents for repositories, for package patterns. mostOpen limits
// how many changes may have returned before their intents are closed; with 0, each change closes its intent
// before it returns.
func RunnerOf(_ rows.Pass, q *Queue, mostOpen int) intents.RunnerCloser {
	q.runner.open.limit(mostOpen)
	return q.runner
}
