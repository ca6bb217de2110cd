package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// RewriteNow reads an entity and writes it again unchanged. It trusts no copy that the entity's row lists: it
// reads each copy before the write, since the copy may be orphaned or belong to another entity.
func (r *Engine) RewriteNow(ctx context.Context, op string, key entity.Key) error {
	value, row, err := r.ReadOwn(ctx, op, key)
	if err != nil {
		return err
	}
	if value == nil {
		return &entity.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: entity.ErrNotFound}
	}
	row.Own.Copies = ""
	return r.WriteAgain(ctx, op, value, row, true)
}

// WriteAgain writes an entity again as it was read. It overwrites copies that the entity's row lists. Under the
// key of any other copy, no row of another entity may be stored. If orphans is set, it first reads the copies
// that the row does not list, which saves failed attempts if most of them exist.
func (r *Engine) WriteAgain(ctx context.Context, op string, value any, row *tablerow.Row, orphans bool) error {
	w, err := r.rewriting(op, value, row, orphans)
	if err != nil {
		return err
	}
	return r.Run(ctx, w)
}

// Again is one of several entities that a job writes or reconciles together.
type Again struct {
	Key   entity.Key
	Value any                 // the entity to write again, with Row; nil for RunReconcile
	Row   *tablerow.Row       // as it was read
	Named map[string][]string // keys to reconcile, by pattern, if the entity is not written
	// Forgets names patterns with copies in other partitions that the write removes from the entity's list.
	Forgets []string
	// Orphans makes the write first read the copies that Row does not list; see WriteAgain.
	Orphans bool
	Err     error // why RunReconcile could not reconcile it
}

// WriteAgainTogether writes several entities of one partition again, in one change set. If it fails, none is
// written, and Error.Change is the position, from 1, of the refused entity in the slice all.
func (r *Engine) WriteAgainTogether(ctx context.Context, op string, all []*Again) error {
	changes := make([]*Work, len(all))
	for i, a := range all {
		var err error
		if changes[i], err = r.rewriting(op, a.Value, a.Row, a.Orphans); err != nil {
			return err
		}
		changes[i].forgets = a.Forgets
	}
	if err := r.FetchOrphans(ctx, op, changes); err != nil {
		return err
	}
	return r.NewSet(changes...).Run(ctx)
}

// rewriting prepares the change that writes an entity again.
func (r *Engine) rewriting(op string, value any, row *tablerow.Row, orphans bool) (*Work, error) {
	known, err := r.Remember(value, row.Key, row)
	if err != nil {
		return nil, err
	}
	if !orphans {
		known.Orphans = nil
	}
	old := *r.State(value)
	old.Prior, old.Copies = known, row.Own.Copies
	return &Work{Op: op, Entity: value, Etag: row.ETag, asStored: true, Old: &old,
		Change: driver.Change{Kind: driver.ChangeTouch, Key: row.Key, Entity: value, Stored: row.Properties}}, nil
}

// RunReconcile reconciles, under one intent, the rows and facts of entities outside of their partitions, as
// every write of the entities does. RunReconcile sets
// Again.Err of each entity that it could not reconcile. It returns only an error that concerns all entities.
//
// An intent that fails is left to the workers, since the entity may have changed after its copies were
// written.
func (r *Engine) RunReconcile(ctx context.Context, all []*Again) error {
	intent := intents.Intent{ID: tablerow.NewWriteID()}
	targets := make([]*target, len(all))
	for i, a := range all {
		m := intents.Member{Repository: r.Name(), Key: a.Key, Outside: a.Named}
		intent.Members = append(intent.Members, m)
		targets[i] = &target{Member: m}
	}
	var failed error
	ctx, err := pace.Change(ctx)
	if err != nil {
		return err
	}
	err = r.Schema.Intents.Run(ctx, intent, func(context.Context) error { return nil }, func(ctx context.Context) (rest intents.Rest, err error) {
		err = r.converge(ctx, intent.ID, targets)
		known := false
		for i, t := range targets {
			all[i].Err = t.err
			known = known || t.err != nil
		}
		if !known {
			failed = err
		}
		return rest, err
	})
	return cmp.Or(err, failed) // the runner leaves a failure to its workers and returns no error for it
}

// Owns reports whether a row with all its properties, or those of Primary.System, is an entity of the repository. For a row with a value
// that cannot be read, only the key decides, since Where may compare that value.
func (r *Engine) Owns(row *tablerow.Row) bool {
	return !row.Own.IsCopy && r.Schema.Own.Keeps(row.Key) && (row.Problem != nil || r.Schema.Own.Meets(row.Key, row.Properties))
}

// DecodePlain decodes an entity that has only one row and that no pattern transforms. It does not compute the
// prior state, which only writes need.
func (r *Engine) DecodePlain(row *tablerow.Row) (any, entity.Properties, error) {
	value := r.Codec.New()
	if row.Own.Layout != "" {
		return nil, nil, ErrNoLayout
	}
	if err := r.Codec.Decode(row.Properties, value); err != nil {
		return nil, nil, err
	}
	r.Codec.Finish(row, row.Key, value)
	core.SetState(r.Codec.Meta(value),
		&core.State{Key: row.Key, Row: row.Key.Row, Incarnation: row.Own.Incarnation, WriteID: row.WriteID, Copies: row.Own.Copies, Owner: r})
	return value, row.Properties, nil
}

// SharedBy returns the names of the locks that a job holds while it writes an entity, because writes of other
// entities may change the same rows: the partition key, if patterns have shared rows or companions there, and
// the HeldName of each place at which a pattern with Effect.List stores the entity's facts.
func (r *Engine) SharedBy(key entity.Key, v any) []string {
	var names []string
	if len(r.rows)+len(r.companions) > 0 {
		names = append(names, key.Partition)
	}
	for _, p := range r.Patterns {
		if p.Effect.List == nil || v == nil {
			continue
		}
		facts, err := p.Effect.Expected(v)
		if err != nil {
			continue // the write will report the error
		}
		for _, f := range facts {
			names = append(names, HeldName(p, f.Place))
		}
	}
	return names
}

// HeldName returns a name for a place of a pattern, which no place of another pattern has. It is also the name
// of the place's lock. It contains a tab, so it never equals a partition key.
func HeldName(p *driver.Implementation, place string) string { return p.Name + "\t" + place }

// Fetched holds rows that were read together: own rows of entities, or possible orphaned copies. The value is
// nil for a row that does not exist.
type Fetched map[entity.Key]*tablerow.Row

// FetchOrphans reads, for several changes together, the rows that may be orphaned copies of their entities, so
// that rebase need not read each row. Requests: 0 if there are no such rows, else as FetchMany.
func (r *Engine) FetchOrphans(ctx context.Context, op string, changes []*Work) error {
	var keys []entity.Key
	for _, w := range changes {
		for _, orphan := range priorOf(w.Old).Orphans {
			keys = append(keys, entity.Key{Partition: w.Change.Key.Partition, Row: orphan.key})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := FetchMany(ctx, r.Table, op, keys)
	fetched := Fetched{}
	for _, key := range keys {
		fetched[key] = found[key]
	}
	for _, w := range changes {
		w.Fetched = fetched
	}
	return err
}

// Ends reports whether err would also occur for every smaller set, so that the job must end.
func Ends(err error) bool {
	return errors.Is(err, entity.ErrUnavailable) || errors.Is(err, entity.ErrDenied) || errors.Is(err, entity.ErrMissingResource)
}

// Lost reports whether a write was not applied because a concurrent writer came first: a row has changed, appeared or
// disappeared.
func Lost(err error) bool {
	return slices.Contains([]error{entity.ErrConflict, entity.ErrExists, entity.ErrNotFound}, entity.KindOf(err))
}

// InSets reports whether patterns add more to a change than rows of the entity, so that a bulk write must write change sets.
func (r *Engine) InSets() bool {
	return r.spills || len(r.intents)+len(r.Outside)+len(r.rows)+len(r.companions)+len(r.completers) > 0
}

// BulkRows returns how many rows of entities a bulk write puts into one transaction. If patterns add shared
// rows or companions, half of a transaction is reserved for them.
func (r *Engine) BulkRows() int {
	if len(r.rows)+len(r.companions) > 0 {
		return entity.MaxTransactionOperations / 2
	}
	return entity.MaxTransactionOperations
}

// Rebases reports whether a change must first read the entity's own row, because the entity was read through a
// copy or by another repository, or because its row does not list all indexes. If partial is set, Rebases also
// returns true for an entity that was read through a projection.
func (r *Engine) Rebases(v any, partial bool) bool {
	s := core.StateOf(r.Codec.Meta(v))
	if s == nil {
		return false
	}
	return s.Owner != any(r) || isCopy(s) || len(priorOf(s).Orphans) > 0 || partial && s.Partial
}

// Preflight plans the rows of one change that depend only on the entity, without a request.
func (r *Engine) Preflight(ctx context.Context, w *Work) ([]tablerow.Row, error) {
	w.Begin()
	w.Change.DryRun = true
	d := &draft{set: r.NewSet(w)}
	if err := d.preflight(ctx, w); err != nil {
		return nil, w.Located(err)
	}
	d.addStale()
	return d.Writes, nil
}
