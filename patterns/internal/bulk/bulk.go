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

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// op is the operation that errors name.
const op = "BulkNonAtomic"

// NonAtomic implements Repository.BulkNonAtomic.
func NonAtomic(ctx context.Context, r *engine.Engine, entities iter.Seq2[any, error], options *tables.BulkOptions) (tables.Report, error) {
	w, err := newWriter(r, options)
	if err != nil {
		return tables.Report{}, err
	}
	internals := tables.InternalsOf(rows.Open)
	ctx, span := internals.Telemetry(r.Table.Account()).Begin(ctx, telemetry.Tables, op, r.Table.Name())
	err = telemetry.ErrPanicked // until the callbacks have returned
	defer func() { span.End(err) }()
	report, err := internals.Bulk(ctx, r.Table, op, entities, options, r.BulkRows(), func(v any) (tables.RawUnit, error) { return w.unit(ctx, v) })
	return report, err
}

// writer plans the changes of one bulk write.
type writer struct {
	engine     *engine.Engine
	verb       tables.BulkVerb
	properties []string
}

// newWriter returns ErrWiring for a verb that repositories do not support.
func newWriter(r *engine.Engine, options *tables.BulkOptions) (*writer, error) {
	w := &writer{engine: r}
	if options != nil {
		w.verb, w.properties = options.Verb, options.Properties
	}
	if w.verb == tables.BulkUpsertMerge {
		return nil, tables.Wiringf(op, r.Table.Name(), "BulkOptions.Verb is BulkUpsertMerge, which only Rows has, since patterns need the whole entity; use BulkUpsert, or BulkMerge of entities that were read")
	}
	return w, nil
}

// unit plans the change of one entity.
func (b *writer) unit(ctx context.Context, v any) (tables.RawUnit, error) {
	u := tables.RawUnit{Entity: v, Together: b.together, Single: b.streams(), Again: b.verb == tables.BulkUpsert}
	rebases := b.verb != tables.BulkInsert && b.engine.Rebases(v, true)
	if b.engine.InSets() || rebases || b.verb == tables.BulkUpsert || b.verb == tables.BulkMerge && len(b.engine.Patterns) > 0 {
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
	return slices.ContainsFunc(b.engine.Transformers, func(t *engine.Pattern) bool { return t.Transform.Streams })
}

// estimated checks an entity, and counts the rows of its change that are known before the stored entity is
// read.
func (b *writer) estimated(ctx context.Context, u tables.RawUnit) (tables.RawUnit, error) {
	r := b.engine
	var w *engine.Work
	var err error
	switch b.verb {
	case tables.BulkMerge, tables.BulkDelete:
		meta, err := r.Known(op, u.Entity)
		if err != nil {
			return u, err
		}
		u.Key = (*tables.InternalsOf(rows.Open).State(meta)).Key
		verb := wire.VerbDelete
		if b.verb == tables.BulkMerge {
			verb = wire.VerbMerge
			if _, _, err := r.Merged(op, u.Entity, b.properties); err != nil {
				return u, err
			}
		}
		u.Writes, u.More = []tables.RawWrite{{Verb: verb, Key: u.Key, IfMatch: azcore.ETagAny}}, len(r.Copies)
		return u, nil
	case tables.BulkReplace:
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
func (b *writer) together(ctx context.Context, units []tables.RawUnit) error {
	if len(units) == 1 && b.verb == tables.BulkUpsert {
		return b.engine.Upsert(ctx, units[0].Entity)
	}
	fetched, err := b.fetch(ctx, units)
	if err != nil {
		return err
	}
	changes := make([]*engine.Work, len(units))
	for i, u := range units {
		if changes[i], err = b.change(ctx, u.Entity, fetched); err != nil {
			return tables.InternalsOf(rows.Open).Amend(err, func(e *tables.Error) { e.Change = i + 1 })
		}
		changes[i].Fetched = fetched
	}
	return b.engine.NewSet(changes...).Run(ctx)
}

// fetch reads the entities' own rows that the changes of units need. It reads rows whose keys lie close
// together by one query.
func (b *writer) fetch(ctx context.Context, units []tables.RawUnit) (engine.Fetched, error) {
	var keys []tables.Key
	for _, u := range units {
		rebases := b.engine.Rebases(u.Entity, b.verb != tables.BulkReplace)
		if b.verb == tables.BulkUpsert || b.verb != tables.BulkInsert && rebases || b.verb == tables.BulkMerge && len(b.engine.Patterns) > 0 {
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
	case tables.BulkReplace:
		return r.Replacing(op, v)
	case tables.BulkMerge:
		return r.Merging(ctx, op, v, b.properties, fetched)
	case tables.BulkDelete:
		return r.Deleting(ctx, op, v, fetched)
	case tables.BulkUpsert:
		w, err := r.Inserting(op, v)
		if err != nil {
			return nil, err
		}
		old, err := r.LoadReplaced(ctx, op, w.Change.Key, fetched[w.Change.Key])
		return r.Overwriting(op, w.Change.Key, v, old), err
	}
	return r.Inserting(op, v)
}
