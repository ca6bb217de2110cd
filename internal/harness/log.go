package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The names of the events that Log's own methods count.
const (
	Applied = "changes applied"
	Refused = "changes refused"
	Unknown = "unknown outcomes"

	Faults = "faults"
	Late   = "late requests"
	Deaths = "deaths"

	Handled = "handled messages"
	Failed  = "failed deliveries"
	Lost    = "lost leases"
)

// Log counts events in all the schedules of a test. The zero Log is empty.
type Log struct {
	mu    sync.Mutex
	count map[string]int64
}

// Add counts an event n times.
func (l *Log) Add(what string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = map[string]int64{}
	}
	l.count[what] += n
}

// Count returns how often an event was counted.
func (l *Log) Count(what string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[what]
}

// Told counts the result of a writer by the kind of its error, and reports whether the change was certainly
// not made.
func (l *Log) Told(err error) (refused bool) {
	switch {
	case err == nil:
		l.Add(Applied, 1)
	case OutcomeUnknown(err):
		l.Add(Unknown, 1)
	default:
		l.Add(Refused, 1)
		return true
	}
	return false
}

// worked counts a worker's result.
func (l *Log) worked(s eventual.WorkerStats) {
	l.Add(Handled, s.Handled)
	l.Add(Failed, s.Failed)
	l.Add(Lost, s.LeasesLost)
}

// MustHave fails the test for each of the events that never happened: the schedules then do not cover the
// event.
func (l *Log) MustHave(t testing.TB, what ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range what {
		if l.count[name] == 0 {
			t.Errorf("no %s: the schedules do not cover them", name)
		}
	}
}

// String lists all counts by name.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(l.count)) {
		texts = append(texts, fmt.Sprintf("%d %s", l.count[name], name))
	}
	return strings.Join(texts, ", ")
}

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
