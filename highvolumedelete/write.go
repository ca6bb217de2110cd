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
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// trust is how long a writer relies on a mark that it has read. A request that creates a table is sent within
	// this time, or not at all.
	trust = 10 * time.Second
	// DefaultGrace is how long Drop waits between moving the mark and dropping the first table: writers rely
	// on an older mark for the time trust, and 30 s later the service has given up the requests that they
	// sent until then.
	DefaultGrace = trust + 30*time.Second
	// creations limits how often a write creates its table and still does not find it.
	creations = 3
)

// Insert adds an entity to the table of its period, which it creates if needed. It returns ErrLate if the period is
// below the retention mark or ended longer ago than Schema.Late, ErrEarly if it begins later than Schema.Early allows,
// and tables.ErrExists if the period has an entity with this key. Requests: 1, as Repository.Insert; for an earlier
// period at most 1 more in 10 s, for the mark; 3 more if the table does not exist.
func (s *Tables[T]) Insert(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	// All attempts use one incarnation: after an insert got the response "table not found", an earlier
	// attempt of it may still be on its way, and the next attempt must recognize the row of that earlier
	// attempt.
	incarnation, again := rand.Text(), false
	return s.write(ctx, "Insert", v, func(r *patterns.Repository[T]) error {
		err := patterns.HostOf(r).Apply(ctx, driver.ChangeInsert, v, &driver.ApplyOptions{Incarnation: incarnation})
		if again && (errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrUnknownOutcome)) {
			return recognize(ctx, r, v, incarnation, err)
		}
		again = true
		return err
	})
}

// recognize returns nil if the stored entity has this incarnation, and sets v's Meta; otherwise it returns refusal.
func recognize[T any](ctx context.Context, r *patterns.Repository[T], v *T, incarnation string, refusal error) error {
	there, err := r.Get(ctx, r.KeyOf(v))
	if err != nil || patterns.HostOf(r).MetaOf(there).Incarnation() != incarnation {
		return refusal
	}
	*patterns.HostOf(r).MetaOf(v) = *patterns.HostOf(r).MetaOf(there)
	return nil
}

// Upsert does what Insert does, but replaces an existing entity. Requests: 2, as Repository.Upsert; more as
// for Insert.
func (s *Tables[T]) Upsert(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	return s.write(ctx, "Upsert", v, func(r *patterns.Repository[T]) error { return r.Upsert(ctx, v) })
}

// Get reads an entity of the period that contains at. It returns tables.ErrNotFound if the entity or the period's
// table does not exist. Requests: 1.
func (s *Tables[T]) Get(ctx context.Context, at time.Time, key tables.Key) (*T, error) {
	ctx = telemetry.ExpectMissing(ctx)
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return nil, tables.InvalidIn("Get", "", "%w", err)
	}
	r, err := s.repository(p)
	if err != nil {
		return nil, err
	}
	v, err := r.Get(ctx, key)
	return v, s.gone("Get", p, key, err)
}

// Replace calls Repository.Replace in the entity's period. It returns tables.ErrNotFound if the table was
// dropped. Requests: 1.
func (s *Tables[T]) Replace(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	return s.change("Replace", v, func(r *patterns.Repository[T]) error { return r.Replace(ctx, v) })
}

// Delete calls Repository.Delete in the entity's period, to delete a single entity. It returns
// tables.ErrNotFound if the table was dropped. Requests: 1.
func (s *Tables[T]) Delete(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	return s.change("Delete", v, func(r *patterns.Repository[T]) error { return r.Delete(ctx, v) })
}

// change calls a method that needs the table to exist.
func (s *Tables[T]) change(op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	return s.gone(op, p, r.KeyOf(v), verb(r))
}

// gone converts the error for a missing table into the error for a missing entity.
func (s *Tables[T]) gone(op string, p period, key tables.Key, err error) error {
	if noTable(err, s.tableName(p)) {
		return &tables.Error{Op: op, Table: s.tableName(p), Key: key, Kind: tables.ErrNotFound, Err: err}
	}
	return err
}

// place finds the period of an entity, and its repository.
func (s *Tables[T]) place(op string, v *T) (period, *patterns.Repository[T], error) {
	if v == nil {
		return period{}, nil, tables.InvalidIn(op, "", "the entity is nil; give a pointer to a value")
	}
	at := s.schema.Time(v)
	if at.IsZero() { // a zero time, which the program probably forgot to set, would create a table for the year 1
		return period{}, nil, tables.InvalidIn(op, "", "Schema.Time returned the zero time; set the entity's time")
	}
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return period{}, nil, tables.InvalidIn(op, "", "%w", err)
	}
	r, err := s.repository(p)
	return p, r, err
}

// write calls a method, and creates the table if it is missing. It does not cache which tables exist, so it
// never relies on outdated information.
func (s *Tables[T]) write(ctx context.Context, op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	check := func() error {
		return tables.Amend(rows.Open, r.Check(ctx, v), func(e *tables.Error) { e.Op = op })
	}
	if err := s.admit(ctx, op, p, check); err != nil {
		return err
	}
	// unsure records that the SDK may have sent an attempt twice: the first of the two may still arrive after
	// the table was created.
	unsure := false
	failed := func(err error, definite ...error) error {
		if !unsure || slices.ContainsFunc(definite, func(kind error) bool { return errors.Is(err, kind) }) {
			return err
		}
		return &tables.Error{Op: op, Table: s.tableName(p), Key: r.KeyOf(v), Kind: tables.ErrUnknownOutcome, Err: err}
	}
	for n := 0; ; n++ {
		err := verb(r)
		switch missing := noTable(err, s.tableName(p)); {
		case err == nil || n == 0 && !missing:
			return err
		case missing && beingDeleted(err):
			return s.closed(op, p, err)
		case n == creations || !missing:
			// These errors show that no earlier attempt was or will be applied: the service refuses every
			// attempt, or an existing row prevents it.
			return failed(err, tables.ErrInvalid, tables.ErrTooLarge, tables.ErrExists, tables.ErrDuplicate, tables.ErrUnknownOutcome)
		}
		unsure = unsure || errors.Is(err, tables.ErrUnknownOutcome)
		if n > 0 {
			if err := backoff.Wait(ctx, n); err != nil {
				return failed(&tables.Error{Op: op, Table: s.tableName(p), Key: r.KeyOf(v), Err: err})
			}
		}
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, tables.ErrUnknownOutcome) { // after an unknown outcome, the next attempt shows whether the table exists
			return failed(err, ErrLate) // ErrLate concerns the table, and not the entity
		}
	}
}

// admit checks the rules for periods other than the present one. It calls check before it makes a request. Requests:
// 0, and for an earlier period 1 in 10 s.
func (s *Tables[T]) admit(ctx context.Context, op string, p period, check func() error) error {
	now := s.schema.Now()
	current, err := s.calendar.periodOf(now)
	if err != nil {
		return tables.InvalidIn(op, "", "Schema.Now: %w", err)
	}
	switch {
	case current.before(p):
		if ahead := s.calendar.start(p).Sub(now); ahead > s.schema.Early {
			return tables.InvalidIn(op, s.tableName(p), "%w: it begins in %v, and Schema.Early allows %v; check the entity's time and the clock", ErrEarly, ahead.Round(time.Second), s.schema.Early)
		}
	case p.before(current):
		if behind := now.Sub(s.calendar.end(p)); s.schema.Late != 0 && behind > s.schema.Late {
			return tables.InvalidIn(op, s.tableName(p), "%w: it ended %v ago, and Schema.Late allows %v; discard the entity, or set a longer Schema.Late", ErrLate, behind.Round(time.Second), s.schema.Late)
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

// permissionTerm is the term of a lease whose usable part, which is five sixths, is exactly trust.
const permissionTerm = trust * 6 / 5

var errCreated = errors.New("whether the table was created is unknown; repeat the operation")

// create creates a period's table unless the mark has closed the period. It reads the mark again, and sends
// the request within ten seconds. A lease enforces that by checking both clocks before each request; a timer
// would fire too late in a process that was stopped. Requests: 2.
func (s *Tables[T]) create(ctx context.Context, op string, p period) error {
	permission := lease.New(ctx, time.Now(), permissionTerm)
	defer permission.End(errCreated)
	bounded := permission.Context(ctx)
	m, err := s.readMark(bounded)
	if err == nil {
		if m.closes(p) {
			return s.belowMark(op, p, m)
		}
		err = s.account.Table(s.tableName(p)).CreateIfMissing(bounded)
	}
	switch {
	case err == nil:
		return nil
	case beingDeleted(err):
		return s.closed(op, p, err)
	case ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, tables.ErrUnknownOutcome):
		return &tables.Error{Op: op, Table: s.tableName(p), Kind: tables.ErrUnavailable, Err: fmt.Errorf("the table was not created within 10 s; repeat the operation: %w", err)}
	}
	return err
}

// belowMark returns the error for a period that the mark has closed.
func (s *Tables[T]) belowMark(op string, p period, m mark) error {
	return tables.InvalidIn(op, s.tableName(p), "%w: Drop has closed all periods before %s; discard the entity", ErrLate, m.before.label())
}

// closed returns the error for a period whose table is being deleted. Since such a table is never created
// again, it does not matter whether an earlier attempt got no response.
func (s *Tables[T]) closed(op string, p period, cause error) error {
	return tables.InvalidIn(op, s.tableName(p), "%w: %v: %v", ErrLate, tables.ErrBeingDeleted, cause)
}

// maxPrepared limits the tables that one call creates.
const maxPrepared = 1000

// Prepare creates the tables of the periods from one time to another, both included, at most 1,000. A new table is slow
// at first: call Prepare for a future period before its first entity. It skips periods below the retention mark.
// Requests: 2 for each period.
func (s *Tables[T]) Prepare(ctx context.Context, from, to time.Time) error {
	ctx = telemetry.ExpectMissing(ctx)
	const op = "Prepare"
	first, err := s.calendar.periodOf(from)
	if err != nil {
		return tables.InvalidIn(op, "", "%w", err)
	}
	last, err := s.calendar.periodOf(to)
	if err != nil {
		return tables.InvalidIn(op, "", "%w", err)
	}
	n := 0
	for p := first; !last.before(p); p = p.next() {
		if n++; n > maxPrepared {
			return tables.InvalidIn(op, "", "the range has more than %d periods; call Prepare for shorter ranges", maxPrepared)
		}
	}
	for p := first; !last.before(p); p = p.next() {
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
	}
	return nil
}
