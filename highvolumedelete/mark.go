package highvolumedelete

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// markRow is the row of the control table for a unit.
type markRow struct {
	tables.Meta
	PartitionKey string
	RowKey       string
	Before       string // the label of the first period that is kept
}

const markPartition = "mark"

// mark is the retention mark: tables of earlier periods are dropped, or will be, and are not created again. It only moves
// forward.
type mark struct {
	before period
	set    bool
	asked  time.Time // when the request for the mark was sent: the mark was read then or later
	row    *markRow
}

func (m mark) closes(p period) bool { return m.set && p.before(m.before) }

func (s *Tables[T]) markKey() tables.Key {
	return tables.Key{Partition: markPartition, Row: layouts[s.schema.Unit][:1]}
}

// readMark reads the mark. Without a control table, no mark is set. Requests: 1.
func (s *Tables[T]) readMark(ctx context.Context) (mark, error) {
	m := mark{asked: time.Now()}
	row, err := s.control.Get(telemetry.ExpectMissing(ctx), s.markKey())
	switch {
	case errors.Is(err, tables.ErrNotFound), errors.Is(err, tables.ErrMissingResource):
		s.learn(m)
		return m, nil
	case err != nil:
		return mark{}, err
	}
	before, ok := s.calendar.parse(row.Before)
	if !ok {
		return mark{}, &tables.Error{Op: "Get", Table: s.Control().Name(), Key: s.markKey(), Kind: tables.ErrGarbled,
			Err: fmt.Errorf("the stored retention mark is not the label of a %v; set Schema.Unit as when the table set was first used, or restore the row", s.schema.Unit)}
	}
	m.before, m.set, m.row = before, true, row
	s.learn(m)
	return m, nil
}

// learn keeps the newest mark, and forgets the repositories of periods below it. It keeps those that Open could not make again: a
// repository with effects outside of the partition is registered with the queue of intents until the process ends.
func (s *Tables[T]) learn(m mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.set && (!m.set || m.before.before(s.known.before)) {
		return // the response is older than the known mark
	}
	s.known = m
	for p, o := range s.open {
		if m.closes(p) && o.refused == nil && !reachesOut(o.repo) {
			delete(s.open, p)
		}
	}
}

// recent returns the mark as it was read at most trust ago by both clocks, since the monotonic clock may stand still
// while a machine sleeps. If recent must read the mark, it calls check first, and returns an error of check.
// Requests: 1, or 0.
func (s *Tables[T]) recent(ctx context.Context, check func() error) (mark, error) {
	s.mu.Lock()
	m := s.known
	s.mu.Unlock()
	if !m.asked.IsZero() && lease.Elapsed(m.asked) < trust {
		return m, nil
	}
	if err := check(); err != nil {
		return mark{}, err
	}
	return s.readMark(ctx)
}

// advance moves the mark forward to a period, unless the mark is there or further. Requests: 2; the very first time, 4.
func (s *Tables[T]) advance(ctx context.Context, to period, requests *int) (m mark, err error) {
	ctx = telemetry.ExpectMissing(ctx) // the first call creates the control table
	err = backoff.Retry(ctx, markAttempts, func() (again bool, err error) {
		*requests++
		m, err = s.readMark(ctx)
		if err != nil || m.set && !m.before.before(to) {
			return false, err
		}
		row := &markRow{PartitionKey: s.markKey().Partition, RowKey: s.markKey().Row}
		write := s.control.Insert
		if m.set {
			row, write = m.row, s.control.Replace
		}
		row.Before = to.label()
		*requests++
		err = write(ctx, row)
		if noTable(err, s.Control().Name()) {
			*requests++
			if err = s.Control().CreateIfMissing(ctx); err == nil {
				*requests++
				err = write(ctx, row)
			}
		}
		if err == nil {
			m = mark{before: to, set: true, asked: m.asked, row: row}
			s.learn(m)
		}
		return errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome), err
	})
	return m, err
}

// markAttempts limits the retries when another process moves the mark at the same time.
const markAttempts = 10

// Mark returns the beginning of the oldest period that is kept: tables of earlier periods are dropped, or will be. It
// is the zero time before the first Drop. Requests: 1.
func (s *Tables[T]) Mark(ctx context.Context) (time.Time, error) {
	m, err := s.readMark(ctx)
	if err != nil || !m.set {
		return time.Time{}, err
	}
	return s.calendar.start(m.before), nil
}
