package eventual

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// moveRounds bounds how often a delivery starts over while others change the entity or its copy.
const moveRounds = 10

// handle is the worker's part. Where something that was sent may still be under way, the message is left: what
// arrives late must arrive before the next worker begins.
func (m *Mover[T]) handle(ctx context.Context, message *Message) (verdict, error) {
	var body moveBody
	if err := message.Decode(&body); err != nil {
		return verdict{}, err
	}
	if body.Incarnation == "" {
		return verdict{}, invalidf("Move", m.queue.name, "the message names no incarnation")
	}
	w := &moving[T]{Mover: m, key: patterns.Key{Partition: body.Partition, Row: body.Row}, incarnation: body.Incarnation}
	err := w.move(ctx)
	switch {
	case errors.Is(err, patterns.ErrUnknownOutcome):
		return verdict{fate: leaveMessage}, nil
	case err != nil:
		return verdict{}, err
	case message.holding.unsure():
		return verdict{fate: leaveMessage}, nil
	}
	return verdict{}, nil
}

// moving is one delivery of a message.
//
// That no content is lost rests on an order. A write to the destination is an insert, or it replaces, under its ETag, what
// the worker has written or seen there, with what it has read of the entity since. So what the destination holds never gets
// older, whoever writes to it and however late that arrives. A worker deletes the entity only in the state that it has
// written to the destination: then there is no newer one, and there never will be.
//
// That no entity is lost rests on ours. An entity that is gone after a worker has copied it was deleted by a rival; or
// another worker, with another message, has moved it, and then the copy is all there is of it. But before it deleted the
// entity, that worker had to write to the destination. So a copy that this worker has inserted, and that nobody has written
// to since, shows that the entity was not moved, and may go.
type moving[T any] struct {
	*Mover[T]
	key         patterns.Key
	incarnation string
	there       occupant[T] // what has the copy's key at the destination as far as known, nil for nothing
	ours        bool        // there is what this delivery has inserted, or has made of that, and nobody else has touched
}

// move goes round until the entity is moved, or is no longer there.
func (w *moving[T]) move(ctx context.Context) error {
	for n := range moveRounds {
		if n > 0 {
			if err := backoff.Wait(ctx, n-1); err != nil {
				return err
			}
		}
		done, err := w.round(ctx)
		if done || err != nil {
			return err
		}
	}
	return w.failure(patterns.ErrConflict, fmt.Errorf("others have changed the entity, or its copy, %d times meanwhile", moveRounds))
}

// round reads the entity, brings its copy up to date and deletes it. It is not done where somebody came between.
func (w *moving[T]) round(ctx context.Context) (done bool, err error) {
	entity, err := w.source.Get(ctx, w.key)
	if err != nil && !patterns.IsAbsent(err) {
		return false, err
	}
	if err != nil || w.source.MetaOf(entity).Incarnation() != w.incarnation {
		return true, w.withdraw(ctx)
	}
	placed, err := w.place(ctx, entity)
	if err != nil || !placed {
		return false, err
	}
	err = w.source.Delete(ctx, entity)
	if patterns.LostRace(err) {
		return false, nil
	}
	return err == nil, err
}

// place brings the copy up to date. Where somebody else has written to the destination, it looks at what is there now, and
// leaves the rest to the next round, which reads the entity again: what was read before may be older than what is there.
func (w *moving[T]) place(ctx context.Context, entity *T) (placed bool, err error) {
	p, err := w.destination.prepare(w.source, entity)
	if err != nil {
		return false, err
	}
	var next occupant[T]
	if w.there == nil {
		next, err = w.destination.insert(ctx, p)
	} else {
		next, err = w.there.replace(ctx, p)
	}
	if err == nil {
		w.ours = next != nil && (w.ours || w.there == nil)
		w.there = next
		return true, nil
	}
	if !patterns.LostRace(err) {
		return false, err
	}
	w.ours = false
	if w.there, err = w.destination.look(ctx, p); err != nil {
		return false, err
	}
	if w.there != nil && w.there.incarnation() != p.incarnation && !w.replaces {
		return false, w.failure(patterns.ErrExists, errors.New("another entity, or another incarnation of it, has the key at the destination"))
	}
	return false, nil
}

// withdraw removes the copy of an entity that is gone, where it is surely this delivery's own.
func (w *moving[T]) withdraw(ctx context.Context) error {
	if !w.ours {
		return nil
	}
	if err := w.there.remove(ctx); !patterns.LostRace(err) {
		return err
	}
	return nil // somebody has changed the copy, so it is theirs now, or has removed it
}

func (w *moving[T]) failure(kind, err error) error {
	return &patterns.Error{Op: "Move", Table: w.source.Table().Name(), Key: w.key, Index: -1, Kind: kind, Err: err}
}
