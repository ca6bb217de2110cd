package denormalization

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// refreshKey is where a context says which holder a write of its source is for.
type refreshKey[S, T any] struct{ of *base[S, T] }

// refreshed returns the place of the holder that is being refreshed, if there is one.
func (b *base[S, T]) refreshed(ctx context.Context) []string {
	if place, ok := ctx.Value(refreshKey[S, T]{b}).(string); ok {
		return []string{place}
	}
	return nil
}

const refreshAttempts = 10

// Refresh brings one holder into agreement with the source that Held returns for it. It is for a holder that began to refer
// to another source by a change of its own, such as an employee who was moved to another department: call it when
// that change is written. It writes the source again, unchanged, so that a crash leaves nothing undone, and no change of the
// source can be overtaken. A holder that refers to none is left alone; one whose source is gone is cleared.
//
// Requests: 1 for the holder, 2 for the source with the holder beside it 1 more; elsewhere 2 of the queue, 2 for the holder
// and 1 to read again.
func (b *base[S, T]) Refresh(ctx context.Context, holder patterns.Key) error {
	const op = "Refresh"
	if b.source == nil {
		return &patterns.Error{Op: op, Index: -1, Pattern: b.name, Kind: patterns.ErrInvalid, Err: errors.New("the link was not given to a repository")}
	}
	for attempt := range refreshAttempts {
		found, err := b.link.Target.Get(ctx, holder)
		if err != nil {
			return err
		}
		source, is := b.link.Held(found)
		if !is {
			return nil
		}
		_, err = b.source.Update(context.WithValue(ctx, refreshKey[S, T]{b}, placeOf(holder)), source, func(*S) error { return nil })
		if !patterns.IsAbsent(err) || errors.Is(err, patterns.ErrUnknownOutcome) {
			return err
		}
		if err := b.clear(ctx, holder, source); err != nil {
			return err
		}
		// A source that was inserted meanwhile may have found the holder right before it was cleared.
		if _, err := b.source.Get(ctx, source); patterns.IsAbsent(err) {
			return nil
		} else if err != nil {
			return err
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
	return &patterns.Error{Op: op, Table: b.link.Target.Table().Name(), Key: holder, Index: -1, Pattern: b.name, Kind: patterns.ErrConflict,
		Err: fmt.Errorf("the source came and went %d times", refreshAttempts)}
}

// clear removes the copy of a source that is gone from a holder.
func (b *base[S, T]) clear(ctx context.Context, key, source patterns.Key) error {
	_, err := b.link.Target.Update(ctx, key, func(holder *T) error {
		changed, err := b.settle(holder, source, nil, false)
		if err == nil && !changed {
			return errInStep
		}
		return err
	})
	return passed(err)
}
