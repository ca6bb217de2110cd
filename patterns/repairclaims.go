package patterns

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// isMisplaced reports whether a row is a claim whose name does not follow from what it says. The library writes none: another
// program changed it, or had two claims change places.
func (r *storedRow) isMisplaced() bool {
	if !r.outside.isClaim {
		return false
	}
	copied := tables.Key{Partition: r.Key.Partition, Row: r.outside.claim}
	return r.Key != claimKey(copied, tables.Key{Partition: r.outside.partition, Row: r.primary}, r.outside.reserved)
}

// evidence is the row with the ETag under which it is wrong.
func (r *storedRow) evidence() evidence { return evidence{r.Key, string(r.ETag), r.isMisplaced()} }

// removeMisplaced removes a claim that says something else than its name, unless a copy is there whose claim has this name: then
// it makes the claim say so. To delete it would leave that copy without its claim. Both writes are conditional on the row's ETag;
// a row that somebody else changed meanwhile is left to the next run. Requests: 1, and 1 for each page of the index's partition.
func (v *verifier) removeMisplaced(ctx context.Context, table *tables.Table, e evidence) error {
	o := operation{verb: wire.VerbDelete, key: e.key}
	copied, err := copyNamedBy(ctx, table, e.key)
	if err != nil {
		return err
	}
	if copied != nil {
		w := &outsideWriter{table: table, entity: tables.Key{Partition: copied.outside.partition, Row: copied.primary}}
		o = w.claim(wire.VerbReplace, copied.Key, copied.outside.reserved)
	}
	o.ifMatch = azcore.ETag(e.etag)
	_, err = commit(ctx, table, v.op, o)
	if errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}

// copyNamedBy finds the copy, or reserved key, whose claim has this name; nil for none.
func copyNamedBy(ctx context.Context, table *tables.Table, claim tables.Key) (*storedRow, error) {
	for row, err := range storedRows(raw(table).Query().Partition(claim.Partition).Rows(compoundkey.Range("", claimPrefix)).All(ctx)) {
		if err != nil {
			return nil, err
		}
		if row.outside.is && !row.outside.isClaim && claimKey(row.Key, tables.Key{Partition: row.outside.partition, Row: row.primary}, row.outside.reserved) == claim {
			return row, nil
		}
	}
	return nil, nil
}
