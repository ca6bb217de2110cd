// Package bulk plans the bulk writes of a repository: a unit (tables.RawUnit) for each entity, and the change
// sets that write several units.
//
// If the patterns of a repository add only rows of the entity itself, the planned rows are written as they are.
// In any other repository, the entities of a transaction are planned again as one change set, so that the
// patterns see all of them and one intent names their effects.
package bulk

import (
	"context"
	"iter"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// op is the operation that errors name.
const op = "BulkNonAtomic"

// NonAtomic implements Repository.BulkNonAtomic.
func NonAtomic(ctx context.Context, r *engine.Engine, entities iter.Seq2[any, error], options *entity.BulkOptions) (entity.BulkReport, error) {
	if r == nil {
		return entity.BulkReport{}, engine.ErrNil(op)
	}
	w, err := newWriter(r, options)
	if err != nil {
		return entity.BulkReport{}, err
	}
	ctx, span := r.Table.Account().Telemetry().Begin(ctx, telemetry.Tables, op, r.Table.Name())
	err = telemetry.ErrPanicked // until the callbacks have returned
	defer func() { span.End(err) }()
	report, err := core.Bulk(ctx, r.Table, op, entities, options, r.BulkRows(), func(v any) (core.Unit, error) { return w.unit(ctx, v) })
	return report, err
}

// writer plans the changes of one bulk write.
type writer struct {
	engine     *engine.Engine
	verb       entity.BulkVerb
	properties []string
}

// newWriter returns ErrWiring for a verb that repositories do not support.
func newWriter(r *engine.Engine, options *entity.BulkOptions) (*writer, error) {
	w := &writer{engine: r}
	if options != nil {
		w.verb, w.properties = options.Verb, options.Properties
	}
	if w.verb == entity.BulkUpsertMerge {
		return nil, errs.Wiringf(op, r.Table.Name(), "BulkOptions.Verb is BulkUpsertMerge, which only Rows has, since patterns need the whole entity; use BulkUpsert, or BulkMerge of entities that were read")
	}
	return w, nil
}

// unit plans the change of one entity.
func (b *writer) unit(ctx context.Context, v any) (core.Unit, error) {
	u := core.Unit{Entity: v, Together: b.together, Single: b.streams(), Again: b.verb == entity.BulkUpsert}
	rebases := b.verb != entity.BulkInsert && b.engine.Rebases(v, true)
	if b.engine.InSets() || rebases || b.verb == entity.BulkUpsert || b.verb == entity.BulkMerge && len(b.engine.Patterns) > 0 {
		return b.estimated(ctx, u)
	}
	w, err := b.change(ctx, v, nil)
	if err != nil {
		return u, err
	}
	w.Begin()
	u.Key = w.Change.Key
	set := b.engine.NewSet(w)
	d, err := set.Draft(ctx)
	if err != nil {
		return u, err
	}
	u.Writes, u.Written = d.Writes, func(etags []azcore.ETag, writeID string) { set.Finish(d, etags, writeID) }
	return u, nil
}

// streams reports whether entities can hold content that can be read only once. Such an entity must be
// written alone, since a refused change set cannot be divided and its content read again.
func (b *writer) streams() bool {
	return slices.ContainsFunc(b.engine.Transformers, func(t *driver.Implementation) bool { return t.Transform.Streams })
}

// estimated checks an entity, and counts the rows of its change that are known before the stored entity is
// read.
func (b *writer) estimated(ctx context.Context, u core.Unit) (core.Unit, error) {
	r := b.engine
	var w *engine.Work
	var err error
	switch b.verb {
	case entity.BulkMerge, entity.BulkDelete:
		meta, err := r.Known(op, u.Entity)
		if err != nil {
			return u, err
		}
		u.Key = core.StateOf(meta).Key
		verb := wire.VerbDelete
		if b.verb == entity.BulkMerge {
			verb = wire.VerbMerge
			if _, _, err := r.Merged(op, u.Entity, b.properties); err != nil {
				return u, err
			}
		}
		u.Writes, u.More = []tablerow.Row{{Verb: verb, Key: u.Key, IfMatch: azcore.ETagAny}}, len(r.Copies)
		return u, nil
	case entity.BulkReplace:
		w, err = r.Replacing(op, u.Entity)
	default:
		w, err = r.Inserting(op, u.Entity)
	}
	if err != nil {
		return u, err
	}
	u.Key = w.Change.Key
	u.Writes, err = r.Preflight(ctx, w)
	return u, err
}

// together writes the entities of units as one change set. A single upsert goes through the repository's
// Upsert.
func (b *writer) together(ctx context.Context, units []core.Unit) error {
	if len(units) == 1 && b.verb == entity.BulkUpsert {
		return b.engine.Upsert(ctx, units[0].Entity)
	}
	fetched, err := b.fetch(ctx, units)
	if err != nil {
		return err
	}
	changes := make([]*engine.Work, len(units))
	for i, u := range units {
		if changes[i], err = b.change(ctx, u.Entity, fetched); err != nil {
			return errs.Amend(err, func(e *entity.Error) { e.Change = i + 1 })
		}
		changes[i].Fetched = fetched
	}
	return b.engine.NewSet(changes...).Run(ctx)
}

// fetch reads the entities' own rows that the changes of units need. It reads rows whose keys lie close
// together by one query.
func (b *writer) fetch(ctx context.Context, units []core.Unit) (engine.Fetched, error) {
	var keys []entity.Key
	for _, u := range units {
		rebases := b.engine.Rebases(u.Entity, b.verb != entity.BulkReplace)
		if b.verb == entity.BulkUpsert || b.verb != entity.BulkInsert && rebases || b.verb == entity.BulkMerge && len(b.engine.Patterns) > 0 {
			keys = append(keys, u.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	own, err := b.engine.FetchOwnAll(ctx, op, keys)
	fetched := engine.Fetched{}
	for i, key := range keys {
		fetched[key] = own[i]
	}
	return fetched, err
}

// change prepares the change of one entity.
func (b *writer) change(ctx context.Context, v any, fetched engine.Fetched) (*engine.Work, error) {
	r := b.engine
	switch b.verb {
	case entity.BulkReplace:
		return r.Replacing(op, v)
	case entity.BulkMerge:
		return r.Merging(ctx, op, v, b.properties, fetched)
	case entity.BulkDelete:
		return r.Deleting(ctx, op, v, fetched)
	case entity.BulkUpsert:
		w, err := r.Inserting(op, v)
		if err != nil {
			return nil, err
		}
		old, err := r.LoadReplaced(ctx, op, w.Change.Key, fetched[w.Change.Key])
		return r.Overwriting(op, w.Change.Key, v, old), err
	}
	return r.Inserting(op, v)
}
