package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/background"
)

// Set is a change set: changes of entities of one partition of a table, of one or several repositories, that one transaction
// writes, under at most one intent. Every change of an entity is made as a member of a set; a single verb is a set of one.
//
// The steps are: rebase and complete the members, and add companions; check all of them before the first write; store the
// intent; mark the copies in other partitions; commit; settle the copies, and reconcile what else is outside of the partition.
type Set struct {
	table   *core.Table
	own     []*Work        // the caller's members, in order
	members []*Work        // own, and then the companions that patterns have added to the present plan
	rows    []tablerow.Row // the caller's rows, beside its entities
	numbers []int          // for each of rows: the number of the caller's change

	companionRows []companionRow          // the rows that patterns have added beside companions, in the present plan
	gone          map[string]azcore.ETag  // row keys of copies that the set could not delete since they do not exist, with the ETag of the entity that listed each
	marking       *marking                // the copies in other partitions that are marked for the present attempt, nil for none
	rest          []func(context.Context) // what transforms have left to do
	committed     bool
	outcome       marks.Outcome // of the present attempt
	bounded       bool          // the present attempt ends at the first deadline of what transforms have stored
	etags         []azcore.ETag // for each of the caller's changes
}

// companionRow is a row that a pattern has added beside companions.
type companionRow struct {
	write tablerow.Row
	of    *Work // the change to which it belongs
}

// NewSet returns a set of changes of r's entities in one partition. If there are several, Error.Change is the
// position of one, from 1.
func (r *Engine) NewSet(changes ...*Work) *Set {
	for i, w := range changes {
		if w.engine = r; len(changes) > 1 {
			w.number = i + 1
		}
	}
	return &Set{table: r.Table, own: changes, members: changes}
}

// Run makes one change, as a set of one.
func (r *Engine) Run(ctx context.Context, w *Work) error { return r.NewSet(w).Run(ctx) }

// Run makes the changes of the set.
func (s *Set) Run(ctx context.Context) error {
	ctx, err := pace.Change(ctx)
	if err != nil {
		return s.located(err)
	}
	for _, w := range s.own {
		w.Begin()
		if err := w.engine.rebase(ctx, w); err != nil {
			return w.Located(err)
		}
	}
	defer func() {
		if len(s.rest) > 0 {
			s.finishSpills(ctx)
		}
	}()
	err = backoff.Retry(ctx, s.own[0].engine.Schema.MaxAttempts, func() (again bool, err error) {
		if err = s.Complete(ctx); err == nil {
			err = s.runOnce(ctx)
		}
		if again = errors.Is(err, errReplanned); again {
			s.startAgain()
		}
		return again, err
	})
	if errors.Is(err, errReplanned) {
		return s.located(&entity.Error{Kind: entity.ErrConflict, Err: err})
	}
	return err
}

// startAgain discards what the set has prepared under an intent that it gives up.
func (s *Set) startAgain() {
	for _, w := range s.own {
		w.State = &driver.ChangeState{Given: w.State.Given}
		if w.merged = nil; !w.asStored {
			w.Change.Stored = nil // commit has called Transform.After
		}
		w.Begin()
	}
}

// errReplanned reports that the set had to be planned again and needs a new intent: the stored one does not
// cover the new plan.
var errReplanned = errors.New("concurrent writers changed the entities that patterns write with this one during each attempt; read again and repeat the change")

// runOnce is one attempt of Run, with at most one intent.
func (s *Set) runOnce(ctx context.Context) error {
	intends, spills := s.reach()
	commit := s.commit
	if spills {
		commit = s.commitBounded
	} else if !intends {
		return commit(ctx, nil)
	}
	if err := s.preflight(ctx); err != nil {
		return err
	}
	intent, err := s.Intent(ctx)
	if err != nil {
		return err
	}
	if len(intent.Members) == 0 {
		return commit(ctx, nil)
	}
	return s.runIntent(ctx, intent, commit)
}

// Complete calls the patterns' Complete for the entities, and adds companions, for the first time.
func (s *Set) Complete(ctx context.Context) error {
	for _, w := range s.own {
		if err := w.complete(ctx); err != nil {
			return w.Located(err)
		}
	}
	return s.accompany(ctx)
}

// completeAgain repeats Complete for a set that is planned again. It does so only for entities with a pattern that also
// adds companions: the companions, which the pattern reads to complete the entity, may have changed.
func (s *Set) completeAgain(ctx context.Context) error {
	for _, w := range s.own {
		if !slices.ContainsFunc(w.engine.completers, func(p *driver.Implementation) bool { return p.Companions != nil }) {
			continue
		}
		w.forget(ctx)
		if err := w.complete(ctx); err != nil {
			return w.Located(err)
		}
	}
	return s.accompany(ctx)
}

// reach reports whether members may have effects outside of the partition for which the set stores an intent, and whether transforms may store
// something there.
func (s *Set) reach() (intends, spills bool) {
	for _, w := range s.members {
		intends, spills = intends || len(w.engine.intents) > 0, spills || w.engine.spills
	}
	return intends, spills
}

// Intent returns an intent that names every key outside of the partition that the set can touch. It omits
// members that touch no such key.
func (s *Set) Intent(ctx context.Context) (intents.Intent, error) {
	intent := intents.Intent{ID: s.own[0].Change.ID}
	for _, w := range s.members {
		m, err := w.engine.memberOf(ctx, w)
		if err != nil {
			return intent, w.Located(err)
		}
		if len(m.Outside) > 0 {
			intent.Members = append(intent.Members, m)
		}
	}
	return intent, nil
}

// covers reports whether an intent names all keys that another intent names.
func covers(intent, other *intents.Intent) bool {
	for _, o := range other.Members {
		i := slices.IndexFunc(intent.Members, func(m intents.Member) bool { return m.Repository == o.Repository && m.Key == o.Key })
		if i < 0 {
			return false
		}
		for pattern, names := range o.Outside {
			known := intent.Members[i].Outside[pattern]
			if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(known, name) }) {
				return false
			}
		}
	}
	return true
}

// runner returns the runner of the set's intents. It returns an error if the members' repositories have
// different ones.
func (s *Set) runner() (intents.Runner, error) {
	var first *Engine
	for _, w := range s.members {
		switch r := w.engine; {
		case len(r.intents) == 0:
		case first == nil:
			first = r
		case r.Schema.Intents != first.Schema.Intents:
			return nil, w.Located(errs.Wiringf("", "", "repositories %s and %s have their intents on different queues, so no transaction holds entities of both; open their table from one Store", first.Name(), r.Name()))
		}
	}
	return first.Schema.Intents, nil
}

// runIntent makes the changes under an intent. After the transaction was applied, it returns no error even if
// effects outside of the partition fail: the intent then remains for a worker.
func (s *Set) runIntent(ctx context.Context, intent intents.Intent, commit func(context.Context, *intents.Intent) error) error {
	runner, err := s.runner()
	if err != nil {
		return err
	}
	named, failed := s.members, false
	err = runner.Run(ctx, intent, func(ctx context.Context) error {
		err := commit(ctx, &intent)
		failed = err != nil
		return err
	}, func(ctx context.Context) (intents.Rest, error) {
		return s.apply(ctx, &intent, named)
	})
	switch {
	case s.committed:
		return nil
	case failed:
		return err // the error already names the change
	case err == nil:
		return s.located(&entity.Error{Kind: entity.ErrUnknownOutcome, Err: errors.New("the queue of intents reported success, but did not run the change, which is a defect of the library; read the entity to see its state")})
	}
	return s.located(err)
}

// commit plans and commits the set. It retries after a conflict on a pattern's row, but not after a conflict on
// one of the caller's entities. intent names the effects that a plan may have; it is nil for a set that can
// have no such effects.
func (s *Set) commit(ctx context.Context, intent *intents.Intent) error {
	s.outcome = marks.Refused
	defer func() { s.settle(ctx, s.outcome, (*background.Tasks).Do) }()
	for attempt := 0; ; {
		d, err := s.Draft(ctx)
		if err != nil {
			return err
		}
		var etags []azcore.ETag
		var writeID string
		marked := s.mark(ctx, d)
		if err = marked; err == nil {
			etags, writeID, err = s.table.CommitWithin(ctx, s.bounds(), s.own[0].Op, d.Writes...)
		}
		if err == nil {
			s.outcome = marks.Committed
			s.Finish(d, etags, writeID)
			return nil
		}
		if errors.Is(err, entity.ErrUnknownOutcome) {
			s.outcome = marks.Unknown
		}
		again, learned := false, false
		if marked != nil { // the error is located; a companion that has changed is read again
			e := AsError(err)
			again = e != nil && e.Pattern != "" && Lost(e)
		} else {
			again, learned = s.startsOver(ctx, d, err)
		}
		if !learned { // a failure that taught the engine something does not count: there is only a limited number of them
			if attempt++; !again || attempt >= s.own[0].engine.Schema.MaxAttempts {
				if marked != nil {
					return err
				}
				return s.locate(d, err)
			}
			if err := backoff.Wait(ctx, attempt-1); err != nil {
				return err
			}
			err = s.completeAgain(ctx)
		} else {
			err = s.accompany(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.stillNamed(ctx, intent); err != nil {
			return err
		}
	}
}

// bounds returns how the transaction may be sent. No ETag guards an insert: if it was applied, and the entity deleted since, a second attempt
// would insert it without its rows in other partitions and its blobs.
func (s *Set) bounds() (b core.Bounds) {
	inserts := slices.ContainsFunc(s.members, func(w *Work) bool { return w.Change.Kind == driver.ChangeInsert })
	if _, spills := s.reach(); spills {
		b.Once = inserts
	}
	if s.marking != nil {
		b.Term = s.marking.term
		b.Once = inserts && !s.marking.rules.Has(marks.InsertOnce)
	}
	return b
}

// stillNamed returns errReplanned if the intent does not cover the present plan: the plan touches a key that the intent does not name, or a
// new companion stores something that has a deadline, and nothing ends at it.
func (s *Set) stillNamed(ctx context.Context, intent *intents.Intent) error {
	switch intends, spills := s.reach(); {
	case spills && !s.bounded:
		return errReplanned
	case !intends:
		return nil
	}
	now, err := s.Intent(ctx)
	if err != nil {
		return err
	}
	if !covers(cmp.Or(intent, &intents.Intent{}), &now) {
		return errReplanned
	}
	return nil
}

// Finish updates the caller's and the patterns' entities after the commit: their Meta and the properties that
// patterns have set.
func (s *Set) Finish(d *draft, etags []azcore.ETag, writeID string) {
	s.committed = true
	s.etags = make([]azcore.ETag, len(s.own)+len(s.rows))
	for i, w := range s.members {
		etag := etags[w.first]
		w.next.WriteID = writeID
		w.handBack(etag)
		w.after = snapshotAfter(w, etag)
		if w.written != nil {
			w.written()
		}
		if i < len(s.own) && w.number > 0 {
			s.etags[w.number-1] = etag
		}
	}
	for i := range s.rows {
		s.etags[s.numbers[i]-1] = etags[d.rowsAt+i]
	}
	if beside := s.own[0].beside; beside != nil {
		for i := range beside.Rows {
			beside.Rows[i].Row.ETag = etags[d.rowsAt+i]
		}
	}
}

// located adds the operation to an error that concerns the whole set.
func (s *Set) located(err error) error {
	if s.own[0].number == 0 {
		return s.own[0].Located(err)
	}
	return errs.Amend(err, func(e *entity.Error) { e.Op, e.Table, e.Change = s.own[0].Op, s.table.Name(), 0 })
}

// locate adds the operation to an error of the transaction, and replaces its Change, the number of a row, by
// the number of the caller's change.
//
// The error is ErrNotFound or ErrExists only because of an entity's own row: for a pattern's row that was
// deleted or added meanwhile, it is ErrConflict.
func (s *Set) locate(d *draft, err error) error {
	err = errs.Amend(err, func(e *entity.Error) {
		if e.Pattern != "" && Lost(e) {
			e.Kind = entity.ErrConflict
		}
	})
	e, ok := err.(*entity.Error)
	if !ok || s.own[0].number == 0 {
		return s.own[0].Located(err)
	}
	row := d.refused(e)
	return errs.Amend(err, func(e *entity.Error) {
		e.Op, e.Table, e.Change = s.own[0].Op, s.table.Name(), 0
		if row >= 0 {
			e.Change = d.number(row)
		}
	})
}

// startsOver reports, as again, whether a new plan can succeed after err, and as learned, whether err has given
// the engine information that the failed plan d lacked.
func (s *Set) startsOver(ctx context.Context, d *draft, err error) (again, learned bool) {
	e, ok := err.(*entity.Error)
	if !ok || errors.Is(err, entity.ErrUnknownOutcome) {
		return false, false
	}
	failed := d.refused(e)
	if failed < 0 {
		return false, false
	}
	moved, w := Lost(err), d.of[failed]
	switch m := &d.Writes[failed]; m.Role {
	case tablerow.RoleShared:
		return moved, false
	case tablerow.RoleClaimed:
		delete(w.claimed, e.Key.Row)
		return moved, false
	case tablerow.RoleStale:
		if !errors.Is(e.Kind, entity.ErrNotFound) {
			return false, false
		}
		if s.gone == nil {
			s.gone = map[string]azcore.ETag{}
		}
		_, known := s.gone[e.Key.Row] // known: the ETag of the row's entity has changed since, so it is a companion
		s.gone[e.Key.Row] = m.Lists
		return true, !known
	case tablerow.RoleUnique:
		if errors.Is(e.Kind, entity.ErrDuplicate) && w.companionOf == "" {
			return w.engine.claimOrphan(ctx, w, e.Key)
		}
	}
	return false, false
}
