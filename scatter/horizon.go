package scatter

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// recordKey returns the key of the record.
func (s *Spread[T]) recordKey() tables.Key {
	return tables.Key{Partition: compoundkey.Join("scatter", compoundkey.String(s.name)), Row: "epochs"}
}

// load reads the record and its layout. If there is no record, there is no entity either, and load returns
// nil for both.
func (s *Spread[T]) load(ctx context.Context, op string) (*record, *layout, error) {
	r, err := s.records.Get(ctx, s.recordKey())
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := r.read(s.order)
	switch {
	case errors.Is(err, errOtherOrder):
		return nil, nil, invalid(op, s.Repository().Table(), err)
	case err != nil:
		return nil, nil, failure(op, s.Repository().Table(), tables.ErrGarbled, err)
	}
	s.learn(l)
	return r, l, nil
}

// learn keeps the layout unless a newer one is known.
func (s *Spread[T]) learn(l *layout) {
	for {
		known := s.known.Load()
		if known != nil && known.horizon >= l.horizon || s.known.CompareAndSwap(known, l) {
			return
		}
	}
}

// find returns a layout that covers the position, nil if no entity can exist there. It makes a request only if the
// position is above the known horizon.
func (s *Spread[T]) find(ctx context.Context, op string, position int64) (*layout, error) {
	if l := s.known.Load(); l.covers(position) {
		return l, nil
	}
	if _, l, err := s.load(ctx, op); err != nil || l.covers(position) {
		return l, err
	}
	return nil, nil
}

// reach moves the horizon above the position, unless it is already above it.
func (s *Spread[T]) reach(ctx context.Context, op string, position int64) error {
	if s.known.Load().covers(position) {
		return nil
	}
	// One goroutine makes the request; the others use its result.
	select {
	case s.moving <- struct{}{}:
		defer func() { <-s.moving }()
	case <-ctx.Done():
		return failure(op, s.Repository().Table(), nil, ctx.Err())
	}
	if s.known.Load().covers(position) {
		return nil
	}
	_, err := s.change(ctx, op, func(l *layout) (*layout, error) {
		if l.covers(position) {
			return nil, nil
		}
		if ahead := s.order.ahead(position, s.now()); s.order.isTime() && ahead > s.ahead {
			return nil, fmt.Errorf("the entity's time is %v ahead of the clock, and Options.Ahead allows %v; check the entity's time and the clock", ahead, s.ahead)
		}
		next := &layout{horizon: s.order.behind(position), epochs: []epoch{{0, s.first}}}
		if l != nil {
			next.epochs = l.epochs
		}
		return next, nil
	})
	return err
}

// change writes the layout that edit returns to the record, and retries on conflict. edit gets nil if there
// is no record, and returns nil to leave the record unchanged. It returns an error of edit as
// tables.ErrInvalid. After an unknown outcome, change reads the record again, so that edit finds out whether
// the change was made.
func (s *Spread[T]) change(ctx context.Context, op string, edit func(*layout) (*layout, error)) (*layout, error) {
	var last error
	for attempt := range s.attempts {
		if attempt > 0 {
			if err := backoff.Wait(ctx, attempt-1); err != nil {
				return nil, failure(op, s.Repository().Table(), nil, errors.Join(err, last))
			}
		}
		r, l, err := s.load(ctx, op)
		if err != nil {
			return nil, err
		}
		next, err := edit(l)
		if err != nil {
			return nil, invalid(op, s.Repository().Table(), err)
		}
		if next == nil {
			return l, nil
		}
		if len(next.epochs) > maxEpochs {
			return nil, failure(op, s.Repository().Table(), tables.ErrTooLarge, fmt.Errorf("the record would have %d epochs, and it holds at most %d; change the number of partitions less often", len(next.epochs), maxEpochs))
		}
		switch last = s.write(ctx, r, next); {
		case last == nil:
			s.learn(next)
			return next, nil
		case !isConflict(last):
			return nil, last
		}
	}
	return nil, failure(op, s.Repository().Table(), tables.ErrConflict, fmt.Errorf("concurrent writers changed the record in each of %d attempts; try again: %w", s.attempts, last))
}

// write stores a layout in the record r, under its ETag, or inserts a new record if r is nil.
func (s *Spread[T]) write(ctx context.Context, r *record, next *layout) error {
	if r == nil {
		key := s.recordKey()
		r = &record{PartitionKey: key.Partition, RowKey: key.Row}
		next.store(r, s.order)
		return s.records.Insert(ctx, r)
	}
	next.store(r, s.order)
	return s.records.Replace(ctx, r)
}

// isConflict reports whether a failed write of the record must be retried.
func isConflict(err error) bool {
	for _, kind := range []error{tables.ErrUnknownOutcome, tables.ErrConflict, tables.ErrExists, tables.ErrNotFound} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Resize spreads entities above the horizon over n partitions, and returns the Epoch in which that applies.
// Stored entities stay where they are. Before the horizon moves, another Resize replaces this one. Requests:
// 2, and 2 for each concurrent writer.
func (s *Spread[T]) Resize(ctx context.Context, n int) (Epoch, error) {
	const op = "Resize"
	if err := checkPartitions(n); err != nil {
		return Epoch{}, invalid(op, s.Repository().Table(), err)
	}
	l, err := s.change(ctx, op, func(l *layout) (*layout, error) {
		if l == nil {
			return &layout{epochs: []epoch{{0, n}}}, nil
		}
		return l.resized(n), nil
	})
	if err != nil {
		return Epoch{}, err
	}
	return s.order.public(l.epochs[len(l.epochs)-1]), nil
}

// Epochs returns the epochs of row keys, oldest first; before the first write there are none. The last Epoch has no end. Requests: 1.
func (s *Spread[T]) Epochs(ctx context.Context) ([]Epoch, error) {
	_, l, err := s.load(ctx, "Epochs")
	if l == nil || err != nil {
		return nil, err
	}
	all := make([]Epoch, len(l.epochs))
	for i, e := range l.epochs {
		all[i] = s.order.public(e)
	}
	return all, nil
}

// Partitions returns the keys of all partitions that can hold entities now. Requests: 1.
func (s *Spread[T]) Partitions(ctx context.Context) ([]string, error) {
	_, l, err := s.load(ctx, "Partitions")
	if l == nil || err != nil {
		return nil, err
	}
	return s.partitions(l.most(s.order, compoundkey.All().Under(s.order.prefix))), nil
}

func (s *Spread[T]) partitions(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = s.partition(i)
	}
	return keys
}

// Sync reads the record, so that the Repository accepts every entity that is stored now. Call it before the
// Repository's Repair and Rebuild, which write entities that other programs have inserted. Requests: 1.
func (s *Spread[T]) Sync(ctx context.Context) error {
	_, _, err := s.load(ctx, "Sync")
	return err
}
