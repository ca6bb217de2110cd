package highvolumedelete

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// trust is how long a writer goes by a mark that it has read. A request that creates a table is sent within this time, or
	// not at all.
	trust = 10 * time.Second
	// DefaultGrace is how long Drop waits between the mark and the first table: the time for which writers trust an older mark,
	// and the 30 s after which the service has given up what was sent by then.
	DefaultGrace = trust + 30*time.Second
	// creations is how often a write creates its table and still does not find it.
	creations = 3
)

// Insert adds an entity to the table of its period, which is created if it is not there. It is ErrLate or ErrEarly where the
// schema's rules, or the retention mark, refuse the period. Requests: 1, as the repository's Insert; with a late entity, 1 more
// for each 10 s; where the table is not there yet, 3 more.
func (s *Tables[T]) Insert(ctx context.Context, v *T) error {
	// One incarnation for all attempts: an insert that was told of a missing table may still arrive when the table is there,
	// and the next attempt must know it for its own.
	incarnation, again := rand.Text(), false
	return s.write(ctx, "Insert", v, func(r *patterns.Repository[T]) error {
		err := r.Apply(ctx, driver.ChangeInsert, v, &patterns.ApplyOptions{Incarnation: incarnation})
		if again && errors.Is(err, tables.ErrExists) {
			return recognize(ctx, r, v, incarnation, err)
		}
		again = true
		return err
	})
}

// recognize returns nil where the entity that is there is of this incarnation, with its Meta as read, and refusal where not.
func recognize[T any](ctx context.Context, r *patterns.Repository[T], v *T, incarnation string, refusal error) error {
	there, err := r.Get(ctx, r.KeyOf(v))
	if err != nil || r.MetaOf(there).Incarnation() != incarnation {
		return refusal
	}
	*r.MetaOf(v) = *r.MetaOf(there)
	return nil
}

// Upsert is Insert that writes the entity in the place of whatever is there. Requests: 2, as the repository's Upsert; more as
// for Insert.
func (s *Tables[T]) Upsert(ctx context.Context, v *T) error {
	return s.write(ctx, "Upsert", v, func(r *patterns.Repository[T]) error { return r.Upsert(ctx, v) })
}

// Get reads an entity of the period that at is in. It is tables.ErrNotFound, too, where the period's table is not there.
// Requests: 1.
func (s *Tables[T]) Get(ctx context.Context, at time.Time, key tables.Key) (*T, error) {
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return nil, invalidf("Get", "", "%w", err)
	}
	r, err := s.repository(p)
	if err != nil {
		return nil, err
	}
	v, err := r.Get(ctx, key)
	return v, s.gone("Get", p, key, err)
}

// Replace is that of the repository of the entity's period. Where the table was dropped it is tables.ErrNotFound. Requests: 1.
func (s *Tables[T]) Replace(ctx context.Context, v *T) error {
	return s.change("Replace", v, func(r *patterns.Repository[T]) error { return r.Replace(ctx, v) })
}

// Delete is that of the repository of the entity's period, for the odd entity. Where the table was dropped it is
// tables.ErrNotFound. Requests: 1.
func (s *Tables[T]) Delete(ctx context.Context, v *T) error {
	return s.change("Delete", v, func(r *patterns.Repository[T]) error { return r.Delete(ctx, v) })
}

// change runs a verb that needs the table to be there.
func (s *Tables[T]) change(op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	return s.gone(op, p, r.KeyOf(v), verb(r))
}

// gone turns the absence of a period's table into that of the entity.
func (s *Tables[T]) gone(op string, p period, key tables.Key, err error) error {
	if noTable(err, s.tableName(p)) {
		return &tables.Error{Op: op, Table: s.tableName(p), Key: key, Kind: tables.ErrNotFound, Err: err}
	}
	return err
}

// place finds the period of an entity, and its repository.
func (s *Tables[T]) place(op string, v *T) (period, *patterns.Repository[T], error) {
	if v == nil {
		return period{}, nil, invalidf(op, "", "the entity is nil")
	}
	at := s.schema.Time(v)
	if at.IsZero() { // a forgotten time would make a table for the year 1
		return period{}, nil, invalidf(op, "", "its time is the zero time")
	}
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return period{}, nil, invalidf(op, "", "%w", err)
	}
	r, err := s.repository(p)
	return p, r, err
}

// write runs a verb, and creates the table when it is missing: nothing is kept about which tables there are, so that nothing
// is out of date.
func (s *Tables[T]) write(ctx context.Context, op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	if err := s.admit(ctx, op, p, func() error { return named(op, r.Check(ctx, v)) }); err != nil {
		return err
	}
	// The SDK may have sent an attempt twice, and the first of the two may still be on its way: it arrives when the table is there.
	unsure := false
	failed := func(err error, settles ...error) error {
		if !unsure || slices.ContainsFunc(settles, func(kind error) bool { return errors.Is(err, kind) }) {
			return err
		}
		return &tables.Error{Op: op, Table: s.tableName(p), Key: r.KeyOf(v), Kind: tables.ErrUnknownOutcome, Err: err}
	}
	for n := 0; ; n++ {
		err := verb(r)
		switch missing := noTable(err, s.tableName(p)); {
		case err == nil || n == 0 && !missing:
			return err
		case missing && errors.Is(err, tables.ErrTableBeingDeleted):
			return s.closed(op, p, err)
		case n == creations || !missing:
			// What is refused whatever there is would be refused of every attempt; and what was seen to be there keeps it out.
			return failed(err, tables.ErrInvalid, tables.ErrTooLarge, tables.ErrExists, tables.ErrDuplicate, tables.ErrUnknownOutcome)
		}
		unsure = unsure || errors.Is(err, tables.ErrUnknownOutcome)
		if n > 0 {
			if err := backoff.Wait(ctx, n); err != nil {
				return failed(&tables.Error{Op: op, Table: s.tableName(p), Key: r.KeyOf(v), Err: err})
			}
		}
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, tables.ErrUnknownOutcome) { // then the next attempt tells
			return failed(err, ErrLate) // the table was refused, not the entity
		}
	}
}

// admit holds the rules for periods that are not the present one. check is called before a request is made. Requests: 0, and for
// an earlier period 1 in 10 s.
func (s *Tables[T]) admit(ctx context.Context, op string, p period, check func() error) error {
	now := s.schema.Now()
	current, err := s.calendar.periodOf(now)
	if err != nil {
		return invalidf(op, "", "the clock shows %w", err)
	}
	switch {
	case current.before(p):
		if ahead := s.calendar.start(p).Sub(now); ahead > s.schema.Early {
			return invalidf(op, s.tableName(p), "%w: it begins in %v", ErrEarly, ahead.Round(time.Second))
		}
	case p.before(current):
		if behind := now.Sub(s.calendar.end(p)); s.schema.Late != 0 && behind > s.schema.Late {
			return invalidf(op, s.tableName(p), "%w: it ended %v ago", ErrLate, behind.Round(time.Second))
		}
		m, err := s.recent(ctx, check)
		if err != nil {
			return err
		}
		if m.closes(p) {
			return s.belowMark(op, p, m)
		}
	}
	return nil
}

// permissionTerm is the visibility timeout of a lease under which requests are sent for as long as trust, and no longer.
const permissionTerm = trust * 6 / 5

var errCreated = errors.New("the table was created, or not")

// create makes a period's table unless the mark has closed the period. The mark is read again; from that moment on there are
// ten seconds to send the request. They are a lease, which looks at both clocks before each request: a timer fires late in a
// process that was stopped. Requests: 2.
func (s *Tables[T]) create(ctx context.Context, op string, p period) error {
	permission := lease.New(ctx, time.Now(), permissionTerm)
	defer permission.End(errCreated)
	bounded := permission.Context(ctx)
	m, err := s.look(bounded)
	if err == nil {
		if m.closes(p) {
			return s.belowMark(op, p, m)
		}
		err = s.account.Table(s.tableName(p)).CreateIfMissing(bounded)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tables.ErrTableBeingDeleted):
		return s.closed(op, p, err)
	case ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, tables.ErrUnknownOutcome):
		return &tables.Error{Op: op, Table: s.tableName(p), Kind: tables.ErrUnavailable, Err: fmt.Errorf("the table was not created in time: %w", err)}
	}
	return err
}

// belowMark is the refusal of a period that the mark has closed.
func (s *Tables[T]) belowMark(op string, p period, m mark) error {
	return invalidf(op, s.tableName(p), "%w: periods before %s are dropped", ErrLate, m.before.label())
}

// closed is the refusal of a period whose table is being deleted: names never come back. So that an attempt before was not
// answered does not matter, and cause is told without its kinds.
func (s *Tables[T]) closed(op string, p period, cause error) error {
	return invalidf(op, s.tableName(p), "%w: %w: %v", ErrLate, tables.ErrTableBeingDeleted, cause)
}

// maxPrepared bounds the tables that one call creates.
const maxPrepared = 1000

// Prepare creates the tables of the periods from one time to another, both included, which may be ahead: a new table is slow
// at first, and its first writer need not wait. Periods that are closed are passed over. Requests: 2 for each.
func (s *Tables[T]) Prepare(ctx context.Context, from, to time.Time) error {
	const op = "Prepare"
	first, err := s.calendar.periodOf(from)
	if err != nil {
		return invalidf(op, "", "%w", err)
	}
	last, err := s.calendar.periodOf(to)
	if err != nil {
		return invalidf(op, "", "%w", err)
	}
	n := 0
	for p := first; !last.before(p); p = p.next() {
		if n++; n > maxPrepared {
			return invalidf(op, "", "more than %d periods at once", maxPrepared)
		}
	}
	for p := first; !last.before(p); p = p.next() {
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
	}
	return nil
}
