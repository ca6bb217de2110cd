package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// OutcomeUnknown reports whether, after err, the change may or may not have been made.
func OutcomeUnknown(err error) bool {
	return errors.Is(err, tables.ErrUnknownOutcome) || errors.Is(err, storagetest.ErrDied) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Attempts counts the results that callers got for their changes.
type Attempts struct {
	mu sync.Mutex
	// Least is the number of changes that were certainly applied, Most the number of those that may have been
	// applied, including these.
	Least, Most int
	// Said lists the results in order.
	Said []error
}

// Add records a result.
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

// Fits returns an error unless the state is possible after at least Least and at most Most changes. states[i]
// is the state after i changes; the last one stands for all further changes.
func (a *Attempts) Fits(state string, states []string) error {
	for _, err := range a.Said {
		if err := kinds.Check(err); err != nil {
			return err
		}
	}
	for n := a.Least; n <= a.Most; n++ {
		if state == states[min(n, len(states)-1)] {
			return nil
		}
	}
	return fmt.Errorf("between %d and %d attempts were applied, but the state is %q; the callers got %q", a.Least, a.Most, state, a.Said)
}

// ReadAnd reads an entity, edits it, and calls write with it.
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
