// Package claims examines, for Verify and Repair, the claims beside copies in other partitions.
package claims

import (
	"context"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// IsMisplaced reports whether a claim's row key does not match its content. The library writes no such claim: another
// program changed it, or swapped two claims.
func IsMisplaced(r *engine.StoredRow) bool {
	if !r.Outside.IsClaim {
		return false
	}
	copied := tables.Key{Partition: r.Key.Partition, Row: r.Outside.Claim}
	return r.Key != engine.ClaimKey(copied, tables.Key{Partition: r.Outside.Partition, Row: r.Primary}, r.Outside.Reserved)
}

// CopyNamedBy returns the copy, or reserved key, whose claim has this row key, or nil if there is none.
func CopyNamedBy(ctx context.Context, table *tables.Table, claim tables.Key) (*engine.StoredRow, error) {
	for row, err := range engine.StoredRows(engine.Raw(table).Query().Partition(claim.Partition).Rows(compoundkey.Range("", engine.ClaimPrefix)).All(ctx)) {
		if err != nil {
			return nil, err
		}
		if row.Outside.Is && !row.Outside.IsClaim && engine.ClaimKey(row.Key, tables.Key{Partition: row.Outside.Partition, Row: row.Primary}, row.Outside.Reserved) == claim {
			return row, nil
		}
	}
	return nil, nil
}
