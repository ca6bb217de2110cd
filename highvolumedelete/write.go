package highvolumedelete

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// trust is how long a writer relies on a mark that it has read. A request that creates a table is sent within
	// this time, or not at all.
	trust = 10 * time.Second
	// DefaultGrace is how long Drop waits, 40 s, between moving the mark and dropping the first table: for 10 s writers rely on
	// an older mark, and 30 s later the service has given up the requests that they have sent until then.
	DefaultGrace = trust + 30*time.Second
	// creations limits how often a write creates its table and still does not find it.
	creations = 3
)

// Insert adds an entity to the table of its period, which it creates if needed. It returns ErrLate if the period is below
// the retention mark or ended longer ago than Schema.Late, ErrEarly if it begins later than Schema.Early allows, and
// tables.ErrExists if the period has an entity with this key. Requests: 1; for an earlier period at most 1 more in 10 s,
// for the mark; 3 more if the table does not exist.
func (s *Tables[T]) Insert(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	// All attempts use one incarnation, so that each recognizes the row of an earlier one: even after the response "table not
	// found", an attempt that the SDK has sent before may still arrive.
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

// Upsert is Insert, but replaces an existing entity. Requests: 2, as Repository.Upsert; more as for Insert.
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
		return nil, errs.InvalidIn("Get", "", "%w", err)
	}
	r, err := s.repository(p)
	if err != nil {
		return nil, err
	}
	v, err := r.Get(ctx, key)
	return v, s.gone("Get", p, key, err)
}

// Replace calls Repository.Replace. It returns tables.ErrNotFound if the table was dropped. Requests: 1.
func (s *Tables[T]) Replace(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	return s.change("Replace", v, func(r *patterns.Repository[T]) error { return r.Replace(ctx, v) })
}

// Delete calls Repository.Delete. It returns tables.ErrNotFound if the table was dropped. Requests: 1.
func (s *Tables[T]) Delete(ctx context.Context, v *T) error {
	ctx = telemetry.ExpectMissing(ctx)
	return s.change("Delete", v, func(r *patterns.Repository[T]) error { return r.Delete(ctx, v) })
}

// change calls a method of the repository of the entity's period. It does not create the table.
func (s *Tables[T]) change(op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	return s.gone(op, p, r.KeyOf(v), verb(r))
}

// gone turns a missing table into a missing entity, and returns any other error unchanged.
func (s *Tables[T]) gone(op string, p period, key tables.Key, err error) error {
	if noTable(err, s.tableName(p)) {
		return &tables.Error{Op: op, Table: s.tableName(p), Key: key, Kind: tables.ErrNotFound, Err: err}
	}
	return err
}

func (s *Tables[T]) place(op string, v *T) (period, *patterns.Repository[T], error) {
	if v == nil {
		return period{}, nil, errs.InvalidIn(op, "", "the entity is nil; give a pointer to a value")
	}
	at := s.schema.Time(v)
	if at.IsZero() { // a zero time, which the program probably forgot to set, would create a table for the year 1
		return period{}, nil, errs.InvalidIn(op, "", "Schema.Time returned the zero time; set the entity's time")
	}
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return period{}, nil, errs.InvalidIn(op, "", "%w", err)
	}
	r, err := s.repository(p)
	return p, r, err
}

// write creates the table if the service answers that it is missing. It does not remember which tables exist, since other
// programs drop them.
func (s *Tables[T]) write(ctx context.Context, op string, v *T, verb func(*patterns.Repository[T]) error) error {
	p, r, err := s.place(op, v)
	if err != nil {
		return err
	}
	check := func() error {
		return errs.Amend(r.Check(ctx, v), func(e *tables.Error) { e.Op = op })
	}
	if err := s.admit(ctx, op, p, check); err != nil {
		return err
	}
	// unsure says that the SDK may have sent an attempt before the one that was answered: the earlier attempt may
	// still arrive after the table was created.
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
			// These errors exclude that an earlier attempt was or will be applied, or already say that it is unknown: the service
			// refuses every attempt, or an existing row prevents it.
			return failed(err, tables.ErrInvalid, tables.ErrTooLarge, tables.ErrExists, tables.ErrDuplicate, tables.ErrUnknownOutcome)
		}
		unsure = unsure || errors.Is(err, tables.ErrUnknownOutcome)
		if n > 0 {
			if err := backoff.Wait(ctx, n); err != nil {
				return failed(&tables.Error{Op: op, Table: s.tableName(p), Key: r.KeyOf(v), Err: err})
			}
		}
		// After an unknown outcome, the next attempt shows whether the table exists.
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, tables.ErrUnknownOutcome) {
			return failed(err, ErrLate) // in a table that is not created again, no earlier attempt is applied
		}
	}
}

// admit checks whether an entity of the period may be written now. Before it makes a request, it calls check. Requests: 0, and for
// an earlier period 1 in 10 s.
func (s *Tables[T]) admit(ctx context.Context, op string, p period, check func() error) error {
	now := s.schema.Now()
	current, err := s.calendar.periodOf(now)
	if err != nil {
		return errs.InvalidIn(op, "", "Schema.Now: %w", err)
	}
	switch {
	case current.before(p):
		if ahead := s.calendar.start(p).Sub(now); ahead > s.schema.Early {
			return errs.InvalidIn(op, s.tableName(p), "%w: it begins in %v, and Schema.Early allows %v; check the entity's time and the clock", ErrEarly, ahead.Round(time.Second), s.schema.Early)
		}
	case p.before(current):
		if behind := now.Sub(s.calendar.end(p)); s.schema.Late != 0 && behind > s.schema.Late {
			return errs.InvalidIn(op, s.tableName(p), "%w: it ended %v ago, and Schema.Late allows %v; discard the entity, or set a longer Schema.Late", ErrLate, behind.Round(time.Second), s.schema.Late)
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

// permissionTerm is the term of a lease that is usable for the time trust: a lease is usable for five sixths of its term.
const permissionTerm = trust * 6 / 5

var errCreated = errors.New("whether the table was created is unknown; repeat the operation")

// create reads the mark, and creates a period's table within ten seconds if the mark has not closed the period. A lease ensures
// the ten seconds: it checks both clocks before each request, and a timer would fire too late in a process that was stopped.
// Requests: 2.
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

func (s *Tables[T]) belowMark(op string, p period, m mark) error {
	return errs.InvalidIn(op, s.tableName(p), "%w: Drop has closed all periods before %s; discard the entity", ErrLate, m.before.label())
}

// closed returns the error for a period whose table is being deleted. It is never ErrUnknownOutcome: such a table is not created
// again, so an earlier attempt that arrives late is not applied.
func (s *Tables[T]) closed(op string, p period, cause error) error {
	return errs.InvalidIn(op, s.tableName(p), "%w: %v: %v", ErrLate, tables.ErrBeingDeleted, cause)
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
		return errs.InvalidIn(op, "", "%w", err)
	}
	last, err := s.calendar.periodOf(to)
	if err != nil {
		return errs.InvalidIn(op, "", "%w", err)
	}
	n := 0
	for p := first; !last.before(p); p = p.next() {
		if n++; n > maxPrepared {
			return errs.InvalidIn(op, "", "the range has more than %d periods; call Prepare for shorter ranges", maxPrepared)
		}
	}
	for p := first; !last.before(p); p = p.next() {
		if err := s.create(ctx, op, p); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
	}
	return nil
}

// The causes for which this package refuses a write. The error has kind tables.ErrInvalid, and nothing was
// written.
var (
	// ErrLate: the entity's period ended longer ago than Schema.Late allows, or its table was dropped or is
	// being dropped. If an earlier attempt got no response and arrives late, it finds no table, or its row is
	// dropped with the table.
	ErrLate = errors.New("the period is closed")
	// ErrEarly: the entity's period is further ahead than Schema.Early allows.
	ErrEarly = errors.New("the period is too far in the future")
)

// noTable reports whether an error says that this table does not exist: it was not created yet, or was dropped.
func noTable(err error, table string) bool {
	var e *tables.Error
	if !errors.As(err, &e) || e.Table != table {
		return false
	}
	return errors.Is(err, tables.ErrMissingResource) || beingDeleted(err) || e.Code == codeTableNotFound
}

// The service's codes for a table that does not exist. They matter for errors of kind ErrUnknownOutcome: an earlier attempt may
// still arrive, and the last one has found no table.
const (
	codeTableNotFound = "TableNotFound"
	codeBeingDeleted  = "TableBeingDeleted"
)

func beingDeleted(err error) bool {
	var e *tables.Error
	return errors.Is(err, tables.ErrBeingDeleted) || errors.As(err, &e) && e.Code == codeBeingDeleted
}

func listFailure(err error) error {
	e := core.ServiceError("List", "", err)
	if e.Code == "" && strings.Contains(err.Error(), "unmarshalling type") { // this is how the SDK reports a damaged response
		e.Kind = tables.ErrGarbled
	}
	return e
}
