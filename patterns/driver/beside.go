package driver

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Beside are rows that belong to no one entity and to no pattern of a repository, such as the mark that archive.Mover keeps
// beside a copy while it moves an entity. They are written in the transaction of an entity's change, or by themselves. Queries,
// indexes and Verify leave them out. Their row keys begin with U+FFFC and a word of their owner, so that no entity is there.
type Beside struct {
	// Owner is stored in each row as _tpShared.
	Owner string
	// Rows have the partition of the entity, whatever their own says, where they are written with one. A write gives Row.ETag the
	// new ETag, "" if the response was lost and another writer followed.
	Rows []RowOperation
}

// Write writes the rows, of one partition of the table, in one transaction. ErrConflict, ErrExists and ErrNotFound say that a
// row has changed. Requests: 1.
func (b *Beside) Write(ctx context.Context, table *tables.Table) error {
	const op = "Write"
	writes, err := b.Writes(pass)
	if err != nil {
		return tables.Invalid(op, err)
	}
	etags, err := tables.RawOf(pass, table).Commit(ctx, op, writes, rowwriter.NewWriteID())
	if err != nil {
		return err
	}
	b.Written(pass, etags)
	return nil
}

// Written notes the ETags that a write has left.
func (b *Beside) Written(_ rows.Pass, etags []azcore.ETag) {
	for i := range b.Rows {
		b.Rows[i].Row.ETag = etags[i]
	}
}

// Writes returns the rows as they are written, and refuses rows without an owner: they would be read as entities.
func (b *Beside) Writes(_ rows.Pass) ([]tables.RawWrite, error) {
	if b.Owner == "" && len(b.Rows) > 0 {
		return nil, errors.New("Beside.Owner is empty; rows beside an entity need the name of who keeps them")
	}
	writes := make([]tables.RawWrite, len(b.Rows))
	for i := range b.Rows {
		var err error
		if writes[i], err = WriteOf(pass, &b.Rows[i], b.Owner); err != nil {
			return nil, err
		}
	}
	return writes, nil
}
