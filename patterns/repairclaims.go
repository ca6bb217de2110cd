package patterns

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/internal/claims"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rowVersionOf returns the version of a row that was read.
func rowVersionOf(r *engine.StoredRow) rowVersion {
	return rowVersion{r.Key, string(r.ETag), claims.IsMisplaced(r)}
}

// removeMisplaced removes a claim whose content does not match its row key. If a copy needs a claim under this key, it
// corrects the content instead, since deleting the claim would leave the copy without one. Both writes are conditional
// on the row's ETag; if a concurrent writer changed the row, the next run handles it. Requests: 1, and 1 for each page
// of the index's partition.
func (v *verifier) removeMisplaced(ctx context.Context, table *tables.Table, e rowVersion) error {
	o := engine.Operation{Verb: wire.VerbDelete, Key: e.key}
	copied, err := claims.CopyNamedBy(ctx, table, e.key)
	if err != nil {
		return err
	}
	if copied != nil {
		w := &engine.OutsideWriter{Table: table, Entity: tables.Key{Partition: copied.Outside.Partition, Row: copied.Primary}}
		o = w.Claim(wire.VerbReplace, copied.Key, copied.Outside.Reserved)
	}
	o.IfMatch = azcore.ETag(e.etag)
	_, err = engine.Commit(ctx, table, v.op, o)
	if errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}
