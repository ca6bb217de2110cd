package engine

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// This file has the parts of Engine and Set that only patterns/internal/bulk uses.

// Fetched are own rows of entities that were read together, nil for one that does not exist.
type Fetched map[tables.Key]*StoredRow

// FetchOrphans reads, for several changes together, the rows that may be orphaned copies of their entities,
// so that rebase need not read each row. Requests: 0 if there are none, else 1 for each partition if the keys
// lie close together.
func (r *Engine) FetchOrphans(ctx context.Context, op string, changes []*Work) error {
	var keys []tables.Key
	for _, w := range changes {
		for _, orphan := range priorOf(w.Change.Old).Orphans {
			keys = append(keys, tables.Key{Partition: w.Change.Key.Partition, Row: orphan.RowKey})
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

// InSets reports whether patterns add more to a change than rows of the entity, so that a bulk write must write change sets.
func (r *Engine) InSets() bool {
	return r.ReachesOut() || len(r.rows)+len(r.companions)+len(r.completers) > 0
}

// BulkRows returns how many rows of entities a bulk write puts into one transaction. If patterns add lists or
// other entities, half of a transaction is reserved for these.
func (r *Engine) BulkRows() int {
	if len(r.rows)+len(r.companions) > 0 {
		return tables.MaxTransactionOperations / 2
	}
	return tables.MaxTransactionOperations
}

// Rebases reports whether a change must first read the entity's own row, because the entity was read through a copy or by another
// repository. partial includes an entity that was read through a projection.
func (r *Engine) Rebases(v any, partial bool) bool {
	s := stateOf(r.Codec.Meta(v))
	if s == nil {
		return false
	}
	return s.Owner != any(r) || isCopy(s) || len(priorOf(s).Orphans) > 0 || partial && s.Partial
}

// Preflight plans the rows of one change that depend only on the entity, without a request.
func (r *Engine) Preflight(ctx context.Context, w *Work) ([]tables.RawWrite, error) {
	w.Begin()
	w.Change.DryRun = true
	d := &draft{set: r.NewSet(w)}
	if err := r.preflight(ctx, w, d); err != nil {
		return nil, w.located(err)
	}
	d.addRemovals()
	return d.Writes, nil
}
