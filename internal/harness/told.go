package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// OutcomeUnknown reports whether a caller who got err cannot know whether the change was made.
func OutcomeUnknown(err error) bool {
	return errors.Is(err, tables.ErrUnknownOutcome) || errors.Is(err, storagetest.ErrDied) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Attempts counts what callers were told of their changes.
type Attempts struct {
	mu sync.Mutex
	// Least is how many were surely applied, Most how many may have been.
	Least, Most int
	// Said is what they were told, in order.
	Said []error
}

// Add notes an answer.
func (a *Attempts) Add(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Said = append(a.Said, err)
	switch {
	case err == nil:
		a.Least, a.Most = a.Least+1, a.Most+1
	case OutcomeUnknown(err):
		a.Most++
	}
}

// Fits is an error unless state is one of those that lie between what was surely applied and what may have been. states are
// those before the change, and after it was applied once and more often; the last one stands for all that follow.
func (a *Attempts) Fits(state string, states []string) error {
	for n := a.Least; n <= a.Most; n++ {
		if state == states[min(n, len(states)-1)] {
			return nil
		}
	}
	return fmt.Errorf("between %d and %d attempts were applied, and there is %q; they said %q", a.Least, a.Most, state, a.Said)
}

// ReadAnd reads an entity, edits it, and has it written.
func ReadAnd[T any](ctx context.Context, repo *patterns.Repository[T], key tables.Key, edit func(*T) error, write func(context.Context, *T) error) error {
	e, err := repo.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := edit(e); err != nil {
		return err
	}
	return write(ctx, e)
}
