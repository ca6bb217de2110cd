package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Reconcile makes everything that the intent names consistent with the current entities. Only the holder of the
// intent's message may call it: an eventual.Queue does for intents whose writer died or left effects to
// workers.
//
// Three rules make the rows converge, however many holders of messages about one entity work at the same
// time, die and are replaced:
//
//   - the holder of a message sends requests for it only while no other process can hold the message: the
//     context carries the lease, and the pipeline of every client of Account checks the lease;
//   - a holder writes only the keys that its message names;
//   - after its writes the holder reads the entity again, and repeats the writes if the entity has changed.
//
// Requests, without concurrent writers: for each entity 1 to read it, 1 to 4 for each key, and 1 to read the
// entity again; fewer if several entities lie close together.
func (r *Engine) Reconcile(ctx context.Context, intent intents.Intent) (err error) {
	ctx, span := r.Table.Account().Telemetry().Begin(ctx, telemetry.Tables, opReconcile, r.Table.Name())
	err = telemetry.ErrPanicked // until the patterns have returned
	defer func() { span.End(err) }()
	targets := make([]*target, len(intent.Members))
	for i, m := range intent.Members {
		for pattern := range m.Outside {
			if !slices.ContainsFunc(r.intents, func(p *driver.Implementation) bool { return p.Name == pattern }) {
				return &entity.Error{Op: opReconcile, Table: r.Table.Name(), Key: m.Key, Pattern: pattern, Kind: driver.ErrUnknownPattern,
					Err: errors.New("the intent names a pattern that this program's repository does not have; run workers of the build that has it")}
			}
		}
		targets[i] = &target{Member: m}
	}
	return r.converge(ctx, intent.ID, targets)
}

// target is a member of an intent whose outside effects are to be reconciled.
type target struct {
	intents.Member
	seen *snapshot // the entity's last snapshot, nil before the first
	now  *snapshot // the snapshot of the last read; equal to the field seen (the same pointer) if the entity is unchanged
	err  error     // a failure; a worker reconciles the target later
}

// apply applies the effects of a set for its writer, except those that are left to workers. named holds the
// members that the intent names; some of them may be companions that the current plan no longer has. If the
// first round succeeds, apply returns the remaining rounds as rest.Close, and the change need not wait for
// them.
func (s *Set) apply(ctx context.Context, intent *intents.Intent, named []*Work) (rest intents.Rest, err error) {
	parts := intent.ByRepository()
	clean := true
	rounds := make([]*convergence, 0, len(parts))
	for i := range parts {
		var r *Engine
		var targets []*target
		for _, m := range parts[i].Members {
			same := func(w *Work) bool { return w.engine.Name() == m.Repository && w.Change.Key == m.Key }
			r = named[slices.IndexFunc(named, same)].engine
			t := &target{Member: m}
			var left bool
			t.Outside, left = r.atOnce(m.Outside)
			rest.Workers = rest.Workers || left
			if at := slices.IndexFunc(s.members, same); at >= 0 {
				t.seen = s.members[at].after
			}
			if len(t.Outside) > 0 {
				targets = append(targets, t)
			}
		}
		c := &convergence{engine: r, change: intent.ID, targets: targets}
		c.apply(ctx)
		rounds = append(rounds, c)
		clean = clean && !slices.ContainsFunc(targets, func(t *target) bool { return t.err != nil })
	}
	closing := func(ctx context.Context) error {
		failures := make([]error, len(rounds))
		for i, c := range rounds {
			failures[i] = c.close(ctx)
		}
		return joined(failures)
	}
	switch {
	case rest.Workers && clean: // workers read the entities again, so this writer need not
		return rest, nil
	case clean:
		rest.Close = closing
		return rest, nil
	}
	return rest, closing(ctx)
}

// atOnce returns the keys of the patterns whose effects the writer applies itself; left reports whether other
// patterns are left to workers.
func (r *Engine) atOnce(outside map[string][]string) (own map[string][]string, left bool) {
	for _, p := range r.Patterns {
		switch keys := outside[p.Name]; {
		case len(keys) == 0:
		case p.Effect.Async:
			left = true
		default:
			if own == nil {
				own = make(map[string][]string, len(outside))
			}
			own[p.Name] = keys
		}
	}
	return own, left
}

// convergence reconciles targets until no entity has changed during a round.
type convergence struct {
	engine  *Engine
	change  string // ID of the message's change
	targets []*target
	open    []*target // not done, and not failed
}

// converge reconciles targets: the first round, and then further rounds until no entity has changed.
func (r *Engine) converge(ctx context.Context, change string, targets []*target) error {
	c := &convergence{engine: r, change: change, targets: targets}
	c.apply(ctx)
	return c.close(ctx)
}

// apply is the first round. It continues after a failure, since the other targets do not depend on the failed
// one; close returns the error.
func (c *convergence) apply(ctx context.Context) {
	c.engine.readTargets(ctx, slices.DeleteFunc(slices.Clone(c.targets), func(t *target) bool { return t.seen != nil }))
	for _, t := range c.targets {
		t.seen = cmp.Or(t.seen, t.now)
	}
	c.open = unfailed(c.targets)
	c.round(ctx)
}

// close reads the entities again and reconciles those that have changed, until none has, up to
// Schema.MaxAttempts times.
func (c *convergence) close(ctx context.Context) error {
	r := c.engine
	for attempt := range r.Schema.MaxAttempts {
		c.open = unfailed(c.open)
		r.readTargets(ctx, c.open)
		if c.open = changed(ctx, unfailed(c.open)); len(c.open) == 0 {
			break
		}
		if attempt == r.Schema.MaxAttempts-1 {
			for _, t := range c.open {
				t.err = &entity.Error{Op: opReconcile, Table: r.Table.Name(), Key: t.Key, Kind: entity.ErrConflict, Err: intents.ErrChanging}
			}
			break
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			for _, t := range c.open {
				t.err = err
			}
			return err
		}
		c.round(ctx)
	}
	var failures []error
	for _, t := range c.targets {
		if t.err != nil {
			failures = append(failures, t.err)
		}
	}
	return joined(failures)
}

// opReconcile is the name of the operation in errors.
const opReconcile = "Reconcile"

// joined joins errors. It returns a single error unchanged, so that the caller can still find the *Error and
// add to it.
func joined(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	return errors.Join(failures...)
}

// unfailed returns the targets that have not failed.
func unfailed(targets []*target) []*target {
	return slices.DeleteFunc(slices.Clone(targets), func(t *target) bool { return t.err != nil })
}

// changed returns the targets to reconcile once more: those whose entity has changed.
func changed(ctx context.Context, targets []*target) (again []*target) {
	for _, t := range targets {
		if t.now != t.seen && lease.Holds(ctx, lease.Reread) {
			t.seen = t.now
			again = append(again, t)
		}
	}
	return again
}

// labelOutside sets the operation of a failed effect's error. It keeps the table that the error names, such as
// an index's, and adds the entities' table if the error names none.
func (r *Engine) labelOutside(err error) error {
	return errs.Amend(err, func(e *entity.Error) { e.Op, e.Table = opReconcile, cmp.Or(e.Table, r.Table.Name()) })
}

// round reconciles the keys that the intent names for the open targets with the snapshots of their entities.
func (c *convergence) round(ctx context.Context) {
	r := c.engine
	for _, p := range r.intents {
		var members []*target
		var all []*driver.Reconciliation
		for _, t := range c.open {
			keys := t.Outside[p.Name]
			if len(keys) == 0 || t.err != nil {
				continue
			}
			rec := driver.NewReconciliation(p.Name, driver.Reconciliation{Key: t.Key, Keys: keys, ChangeID: c.change})
			if t.seen.row != nil {
				rec.Entity, rec.Stored = t.seen.entity, t.seen.row.Properties
			}
			members, all = append(members, t), append(all, rec)
		}
		if len(all) == 0 {
			continue
		}
		err := p.Effect.Reconcile(ctx, all)
		for i, t := range members {
			if err := cmp.Or(all[i].Err, err); err != nil {
				t.err = r.labelOutside(PatternError(p, err, entity.ErrInvalid))
			}
		}
	}
}

// snapshotOf makes a snapshot of an entity's own row, which is nil if the entity does not exist. If the row still has
// the version of seen, the entity's last snapshot, snapshotOf returns seen itself and decodes nothing.
//
// It returns an error for a row of another type: if such a row counted as a deleted entity, its copies in other
// partitions would be removed. An intent names such a row if the build that put the intent has another Rows,
// Mine or Where in its schema.
func (r *Engine) snapshotOf(ctx context.Context, op string, key entity.Key, row *tablerow.Row, seen *snapshot) (*snapshot, error) {
	if seen != nil && seen.shows(row) {
		return seen, nil
	}
	if row != nil && !r.Owns(row) {
		return nil, &entity.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: driver.ErrUnknownPattern,
			Err: errors.New("by Schema.Prefix, Rows, Mine and Where of this program's repository, the row is not one of its entities; run workers of the build that wrote the intent")}
	}
	v, row, err := r.LoadOwn(ctx, op, key, row)
	if err != nil {
		return nil, err
	}
	return &snapshot{v, row, keptCopiesOf(v)}, nil
}

// ReadOwn reads an entity and its own row, with every stored property; both are nil if the entity does not
// exist.
func (r *Engine) ReadOwn(ctx context.Context, op string, key entity.Key) (any, *tablerow.Row, error) {
	row, err := r.fetchOwn(ctx, op, key)
	if err != nil {
		return nil, nil, err
	}
	return r.LoadOwn(ctx, op, key, row)
}

// fetchOwn reads an entity's own row, nil if it does not exist. Requests: 1.
func (r *Engine) fetchOwn(ctx context.Context, op string, key entity.Key) (*tablerow.Row, error) {
	if err := r.Schema.Own.CheckPartition(key.Partition); err != nil {
		return nil, r.Invalid(op, key, err)
	}
	row, err := r.Table.Get(ctx, op, key, nil)
	switch {
	case errors.Is(err, entity.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case row.Own.IsCopy:
		return nil, nil
	}
	return row, nil
}

// LoadOwn makes an entity from its own row. It returns nil if row is nil, is not an entity of the repository,
// or was deleted meanwhile.
func (r *Engine) LoadOwn(ctx context.Context, op string, key entity.Key, row *tablerow.Row) (any, *tablerow.Row, error) {
	if row == nil || !r.Owns(row) {
		return nil, nil, nil
	}
	v, row, err := r.LoadStored(ctx, r.Table, row, nil, nil)
	if err != nil {
		return nil, nil, r.Primary.DecodeError(op, key, err)
	}
	return v, row, nil
}
