package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/verdict"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// moveRounds bounds how often a delivery starts over while others change the entity or its copy.
const moveRounds = 10

// handle handles a delivery. If a request may still be on its way, handle leaves the message hidden, so that the
// request arrives before the next worker begins.
func (m *Mover[T]) handle(ctx context.Context, message *eventual.Message) (verdict.Verdict, error) {
	var body moveBody
	if err := message.Decode(&body); err != nil {
		return verdict.Verdict{}, err
	}
	if body.Incarnation == "" || len(body.To) == 0 {
		return verdict.Verdict{}, tables.InvalidIn("Move", m.queue.Name(), "the message has no incarnation or no location for the copy; call Move again")
	}
	key := tables.Key{Partition: body.Partition, Row: body.Row}
	w := &moving[T]{Mover: m, key: key, incarnation: body.Incarnation, to: body.To,
		id: moveName(m.name, m.source.Table().Name(), key, body.Incarnation, body.To)}
	err := m.destination.move(ctx, w)
	switch {
	case errors.Is(err, tables.ErrUnknownOutcome), (err == nil || w.poisoned != nil) && lease.From(ctx).Unsure():
		return verdict.Verdict{Action: verdict.Leave}, nil
	case err != nil:
		return verdict.Verdict{Poisoned: w.poisoned}, err
	}
	return verdict.Verdict{}, nil
}

// moving is one delivery of a message. It has the fields and methods that both destinations use.
type moving[T any] struct {
	*Mover[T]
	key         tables.Key
	incarnation string
	to          []string // where the copy goes
	id          string   // name of the move, from moveName

	// poisoned is set if users have changed both ends: it deletes the move's rows after the entry was put on the
	// poison queue. So a requeued message starts the move from the beginning.
	poisoned func(context.Context) error
}

// rounds calls round until it returns done.
func (w *moving[T]) rounds(ctx context.Context, round func(context.Context) (done bool, err error)) error {
	return backoff.Retry(ctx, moveRounds, func() (again bool, err error) {
		if done, err := round(ctx); done || err != nil {
			return false, err
		}
		return true, w.failure(tables.ErrConflict, fmt.Errorf("concurrent writers changed the entity or its copy in each of %d attempts; the worker will retry the message", moveRounds))
	})
}

// read reads the entity; nil if it does not exist or another incarnation has its key.
func (w *moving[T]) read(ctx context.Context) (*T, error) {
	entity, err := w.source.Get(ctx, w.key)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case w.source.MetaOf(entity).Incarnation() != w.incarnation:
		return nil, nil
	}
	to, err := w.destination.place(w.source, entity)
	if err == nil && !slices.Equal(to, w.to) {
		err = w.failure(tables.ErrInvalid, fmt.Errorf("the location of the copy was %q when Move was called and is %q now; derive it only from the key and from properties that never change, and call Move again", w.to, to))
	}
	return entity, err
}

// commit deletes the entity and its children as they were read, and writes or deletes one of the move's rows,
// in one transaction. With that transaction the entity has moved. done is false if another writer came first.
func (w *moving[T]) commit(ctx context.Context, entity *T, rest []follower, beside driver.Beside) (done bool, err error) {
	return unlessRefused(w.source.Apply(ctx, driver.ChangeDelete, entity, &driver.ApplyOptions{Beside: beside, Along: deletesOf(rest)}))
}

func (w *moving[T]) failure(kind, err error) error {
	return &tables.Error{Op: "Move", Table: w.source.Table().Name(), Key: w.key, Kind: kind, Err: err}
}

// poison ends the move, because users have changed both ends; both stay. after deletes the move's rows.
func (w *moving[T]) poison(reason string, after func(context.Context) error) (done bool, err error) {
	w.poisoned = after
	return false, w.failure(tables.ErrConflict, errors.New(reason))
}
