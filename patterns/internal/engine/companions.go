package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// complete calls the patterns' Complete for an entity. Each call of complete begins with the entity as the
// caller gave it.
func (w *Work) complete(ctx context.Context) error {
	r := w.engine
	if w.Change.Kind == driver.ChangeDelete || len(r.completers) == 0 {
		return nil
	}
	if w.given == nil {
		w.given, w.merges = w.Change.Entity, w.State.Given
	}
	w.State.Given = w.merges
	v := r.Codec.Copy(w.given)
	w.Change.Entity, w.Entity, w.edited = v, v, false
	var before entity.Properties // only a merge needs it; other kinds of change send all properties
	if w.Change.Kind == driver.ChangeMerge {
		var err error
		if before, err = r.Codec.Encode(v); err != nil {
			return err
		}
	}
	for _, p := range r.completers {
		if err := p.Complete(ctx, w.seenBy(p)); err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
	}
	if w.Change.Kind != driver.ChangeMerge {
		return nil
	}
	return r.mergeCompleted(w, v, before)
}

// handBack updates the Meta of the written value after the commit. If patterns have completed or edited a copy
// of the caller's value, handBack assigns that copy to the caller's value.
func (w *Work) handBack(etag azcore.ETag) {
	if w.Entity != nil {
		meta, next := w.engine.Codec.Meta(w.Entity), w.next
		if w.Change.Kind == driver.ChangeDelete {
			next, etag = nil, ""
		}
		meta.ETag = etag
		core.SetState(meta, next)
	}
	if w.given != nil {
		w.engine.Codec.Assign(w.given, w.Entity)
	}
}

// mergeCompleted adds the properties that patterns have changed to the properties that a merge sends.
func (r *Engine) mergeCompleted(w *Work, v any, before entity.Properties) error {
	after, err := r.Codec.Encode(v)
	if err != nil {
		return err
	}
	var changed entity.Properties
	w.completed = nil
	for _, p := range after {
		if before.Get(p.Name) != p.Value {
			changed, w.completed = append(changed, p), append(w.completed, p.Name)
		}
	}
	for _, p := range before {
		if !after.Has(p.Name) {
			return errs.Invalid("", fmt.Errorf("the merge has to remove property %s, and a merge cannot; use Replace", p.Name))
		}
	}
	w.State.Given = overlay(w.State.Given, changed)
	return nil
}

// staged holds the changes of entities that were added to a transaction. Its Commit makes a Set of them and
// runs it.
type staged struct {
	x       *core.Transaction
	changes []stagedChange

	set *Set  // the set to which a pattern adds companions; nil for a transaction of the program
	err error // set if a pattern has tried to commit the transaction
}

// stagedChange is a change that is prepared when the transaction is committed, or when the pattern that staged it has returned.
type stagedChange struct {
	number  int
	engine  *Engine
	prepare func(ctx context.Context) (*Work, error)
	touches bool            // set by StageUnchanged: the transaction only checks the entity's ETag
	edited  any             // the value that a pattern has staged as replacement; GetIn may have returned it
	context context.Context // from the pattern that staged the change, for the change's companions; nil in a transaction of the program
}

// Commit implements tables.RawChangeSet.
func (t *staged) Commit(ctx context.Context) ([]azcore.ETag, error) {
	if t.set != nil {
		t.err = errs.Wiringf("Commit", "", "the transaction was given to a pattern to stage companions, and its repository commits it; return from Companions without Commit")
		return nil, t.err
	}
	s, err := t.newSet(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	return s.etags, nil
}

// newSet prepares the changes that the program has staged, and returns them as a Set.
func (t *staged) newSet(ctx context.Context) (*Set, error) {
	s := &Set{table: t.x.Table()}
	for _, c := range t.changes {
		w, err := c.prepare(ctx)
		if err != nil {
			return nil, errs.Amend(err, func(e *entity.Error) { e.Change = c.number })
		}
		w.engine, w.number = c.engine, c.number
		if err := s.admit(w); err != nil {
			return nil, w.Located(errs.Invalid("", err))
		}
		s.own = append(s.own, w)
	}
	writes, changes, err := t.x.Writes()
	if err != nil {
		return nil, err
	}
	for i := range writes {
		s.rows, s.numbers = append(s.rows, writes[i]), append(s.numbers, changes[i]+1)
	}
	s.members = s.own
	return s, nil
}

// admit rejects a change in another partition than the set's other changes, and a second change of one entity.
func (s *Set) admit(w *Work) error {
	for _, o := range s.own {
		switch {
		case o.Change.Key.Partition != w.Change.Key.Partition:
			return fmt.Errorf("the entity is in partition %q, and change %d in partition %q; all changes of a transaction must be in one partition",
				errs.Loggable(w.Change.Key).Partition, o.number, errs.Loggable(o.Change.Key).Partition)
		case o.Change.Key == w.Change.Key:
			return fmt.Errorf("changes %d and %d are of the same entity; a transaction may change an entity only once", o.number, w.number)
		}
	}
	return nil
}

// Stage adds a change of an entity to a transaction. The transaction's Commit returns an error of the change.
func (r *Engine) Stage(x *core.Transaction, prepare func(ctx context.Context, op string) (*Work, error)) *stagedChange {
	const op = "Commit"
	t, _ := x.ChangeSet().(*staged)
	if t == nil {
		t = &staged{x: x}
		x.SetChangeSet(t)
	}
	t.changes = append(t.changes, stagedChange{number: x.NextChange() + 1, engine: r, prepare: func(ctx context.Context) (*Work, error) {
		if r == nil {
			return nil, ErrNil(op)
		}
		if !x.Table().Same(r.Table) {
			return nil, r.Invalid(op, entity.Key{}, fmt.Errorf("the transaction is on table %s; make it with NewTransaction of the repository's table", x.Table().Name()))
		}
		return prepare(ctx, op)
	}})
	return &t.changes[len(t.changes)-1]
}

// StageKind implements Host.Stage.
func (r *Engine) StageKind(ctx context.Context, kind driver.ChangeKind, x *core.Transaction, v any) {
	c := r.Stage(x, func(_ context.Context, op string) (*Work, error) { return r.changing(ctx, op, kind, v) })
	c.context = ctx
	if kind == driver.ChangeReplace {
		c.edited = v
	}
}

// StageUnchanged implements Host.StageUnchanged.
func (r *Engine) StageUnchanged(ctx context.Context, x *core.Transaction, v any) {
	c := r.Stage(x, func(_ context.Context, op string) (*Work, error) { return r.Replacing(op, v) })
	c.context, c.touches = ctx, true
}

// accompany calls the patterns' Companions for the caller's members and for the companions that these calls
// add. Before that it discards the companions of an earlier plan, and the edits that patterns made to the
// caller's entities for that plan.
func (s *Set) accompany(ctx context.Context) error {
	for _, w := range s.members[len(s.own):] {
		w.forget(ctx)
		s.rest = append(s.rest, w.rest...)
	}
	s.members, s.companionRows = s.own[:len(s.own):len(s.own)], nil
	for _, w := range s.own {
		if w.edited {
			w.edited = false
			w.assume(ctx, w.unedited)
		}
	}
	for _, w := range s.own {
		if err := s.accompanyOne(ctx, w); err != nil {
			return w.Located(err)
		}
	}
	return nil
}

// accompanyOne calls Companions of the patterns of one member. addCompanion calls accompanyOne for each
// companion that they add.
func (s *Set) accompanyOne(ctx context.Context, w *Work) error {
	for _, p := range w.engine.companions {
		x := w.engine.Table.NewTransaction()
		t := &staged{x: x, set: s}
		x.SetChangeSet(t)
		err := p.Companions(ctx, w.seenBy(p), (*tables.Transaction)(x))
		if err = cmp.Or(err, t.err); err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
		for _, c := range t.changes {
			if err := s.addCompanion(ctx, p, w, c); err != nil {
				return PatternError(p, err, entity.ErrInvalid)
			}
		}
		writes, _, err := x.Writes()
		if err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
		for _, write := range writes {
			write.Pattern, write.Role = p.Name, tablerow.RoleShared
			s.companionRows = append(s.companionRows, companionRow{write, w})
		}
	}
	return nil
}

// maxMembers limits the entities of a set: each needs at least one of the transaction's rows. Without the
// limit, two patterns that stage changes of each other's entities would never end.
const maxMembers = entity.MaxTransactionOperations

// addCompanion adds c, a change that pattern p has staged for the change of beside. If c replaces a value that
// GetIn has returned, addCompanion instead edits the change from which GetIn took the value.
func (s *Set) addCompanion(ctx context.Context, p *driver.Implementation, beside *Work, c stagedChange) error {
	for _, m := range s.members {
		if c.edited != nil && m.lent == c.edited {
			return m.edit(ctx)
		}
	}
	w, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	w.engine, w.number, w.companionOf = c.engine, beside.number, p.Name
	if m := s.memberOf(c.engine, w.Change.Key); m != nil {
		if c.touches && m.Etag == w.Etag {
			return nil // the transaction already writes the entity under this ETag
		}
		if c.touches {
			return &entity.Error{Key: w.Change.Key, Kind: entity.ErrConflict}
		}
		return errs.Invalidf("", "the transaction changes the entity (%q, %q) already; a pattern that changes it too has to read it with GetIn", w.Change.Key.Partition, w.Change.Key.Row)
	}
	if len(s.members) >= maxMembers {
		return errs.Invalidf("", "the patterns of the entities stage more than %d companions; a transaction has at most %d rows", maxMembers, entity.MaxTransactionOperations)
	}
	if c.context != nil {
		ctx = c.context
	}
	w.Begin()
	if err := w.engine.rebase(ctx, w); err != nil {
		return err
	}
	if err := w.complete(ctx); err != nil {
		return err
	}
	s.members = append(s.members, w)
	return s.accompanyOne(ctx, w)
}

// memberOf returns the set's member that changes the entity with this key in r's table, or nil.
func (s *Set) memberOf(r *Engine, key entity.Key) *Work {
	for _, w := range s.members {
		if w.Change.Key == key && w.engine.Table.Same(r.Table) {
			return w
		}
	}
	return nil
}

// edit replaces the entity of a member by the copy that a pattern has read with GetIn and changed.
func (w *Work) edit(ctx context.Context) error {
	if w.engine.Schema.Key(w.lent) != w.Change.Key {
		return errKeyChanged
	}
	if !w.edited {
		w.edited, w.unedited = true, w.Change.Entity
		if w.given == nil {
			w.given = w.Entity
		}
	}
	w.assume(ctx, w.lent)
	w.lent = nil
	return nil
}

// assume replaces the entity of a change by v, and discards the stored form of the previous value.
func (w *Work) assume(ctx context.Context, v any) {
	w.forget(ctx)
	w.Change.Entity, w.Entity = v, v
}

// GetIn implements Host.GetIn.
func (r *Engine) GetIn(ctx context.Context, x *core.Transaction, key entity.Key) (any, error) {
	const op = "Get"
	t, _ := x.ChangeSet().(*staged)
	if t == nil || t.set == nil {
		return nil, r.Invalid(op, key, errors.New("the transaction was not given to a pattern's Companions, and GetIn works only there; use Get"))
	}
	w := t.set.memberOf(r, key)
	switch {
	case w == nil:
		return r.Get(ctx, op, key)
	case w.Change.Kind == driver.ChangeDelete || w.engine != r:
		return nil, &entity.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: entity.ErrNotFound}
	case w.Change.Kind == driver.ChangeMerge:
		return nil, r.Invalid(op, key, errors.New("the transaction merges into the entity, and a pattern has to change more of it; use StageReplace"))
	}
	w.lent = r.Codec.Copy(w.Change.Entity)
	return w.lent, nil
}
