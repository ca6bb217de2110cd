package engine

import (
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inSets reports whether patterns add more to a change than the rows of the entity, so that a bulk insert writes change sets.
func (r *Engine) inSets() bool { return r.ReachesOut() || len(r.rows)+len(r.companions) > 0 }

// streams reports whether entities can hold content that is read once, while the entity is stored.
func (r *Engine) streams() bool {
	return slices.ContainsFunc(r.Transformers, func(t *Pattern) bool { return t.Transform.Streams })
}

// BulkRows is how many rows of entities a transaction of a bulk insert takes. If patterns add lists or other entities, half of it is
// left to them.
func (r *Engine) BulkRows() int {
	if len(r.rows)+len(r.companions) > 0 {
		return tables.MaxTransactionOperations / 2
	}
	return tables.MaxTransactionOperations
}

// BulkUnit plans the insert of one entity of a bulk insert.
func (r *Engine) BulkUnit(ctx context.Context, op string, v any) (tables.BulkUnit, error) {
	w, err := r.Inserting(op, v)
	if err != nil {
		return tables.BulkUnit{}, err
	}
	w.Begin()
	if r.inSets() {
		return r.bulkUnitOfSet(ctx, op, w)
	}
	d, err := r.NewSet(w).Draft(ctx)
	if err != nil {
		return tables.BulkUnit{}, err
	}
	return tables.BulkUnit{
		Writes:  d.Writes,
		Written: func(etag azcore.ETag) { r.updateMeta(v, driver.ChangeInsert, d.parts[0].next, etag) },
		Alone:   func(ctx context.Context) error { return r.Insert(ctx, v) },
	}, nil
}

// bulkUnitOfSet checks an entity and plans its own rows, to be counted. They are planned again for the change set, in which the patterns
// see all its entities.
func (r *Engine) bulkUnitOfSet(ctx context.Context, op string, w *Work) (tables.BulkUnit, error) {
	s := r.NewSet(w)
	d := &draft{set: s}
	w.Change.DryRun = true
	if err := r.preflight(ctx, w, d); err != nil {
		return tables.BulkUnit{}, w.located(err)
	}
	return tables.BulkUnit{
		Writes: d.Writes,
		Entity: w.Entity,
		Single: r.streams(), // a stream cannot be read again for a smaller set
		Alone:  func(ctx context.Context) error { return r.Insert(ctx, w.Entity) },
		Together: func(ctx context.Context, units []tables.BulkUnit) error {
			s := &Set{table: r.Table}
			for i, u := range units {
				w, err := r.Inserting(op, u.Entity)
				if err != nil {
					return err
				}
				w.engine, w.number = r, i+1
				s.own = append(s.own, w)
			}
			s.members = s.own
			return s.run(ctx)
		},
	}, nil
}
