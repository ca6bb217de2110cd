package patterns

import (
	"context"
	"fmt"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/tables"
)

// notInBulk returns the name of a pattern with effects outside of the entity's own rows.
func (r *Repository[T]) notInBulk() (name string, is bool) {
	name, is = r.firstOutside()
	switch {
	case is:
	case len(r.rows) > 0:
		return r.rows[0].PatternName(), true
	case len(r.companions) > 0:
		return r.companions[0].PatternName(), true
	}
	return name, is
}

// BulkInsertNonAtomic inserts any number of entities with all their rows. Each entity is written whole or not at all,
// several share a transaction, and the sequence as a whole is not atomic: see tables.Rows.BulkNonAtomic. An entity that
// meets a taken index key is inserted alone, which takes over a copy that was left behind. Patterns with effects outside
// of the partition are ErrInvalid here.
func (r *Repository[T]) BulkInsertNonAtomic(ctx context.Context, entities iter.Seq2[*T, error], options *tables.BulkOptions) (tables.BulkProgress, error) {
	const op = "BulkInsertNonAtomic"
	if name, is := r.notInBulk(); is {
		return tables.BulkProgress{}, r.invalid(op, tables.Key{}, fmt.Errorf("%q has effects outside of the entity's own rows, and cannot be written in bulk", name))
	}
	return tables.Bulk(ctx, pass, r.table, op, entities, options, func(v *T) (tables.BulkUnit, error) {
		w, err := r.inserting(op, v)
		if err != nil {
			return tables.BulkUnit{}, err
		}
		w.change.ID = newWriteID()
		d, err := r.draft(ctx, w)
		if err != nil {
			return tables.BulkUnit{}, r.located(w, err)
		}
		return tables.BulkUnit{
			Writes:  d.writes,
			Written: func(etag azcore.ETag) { r.settle(v, ChangeInsert, d.next, etag) },
			Alone:   func(ctx context.Context) error { return r.Insert(ctx, v) },
		}, nil
	})
}
