package driver

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Beside are rows that belong to no single entity and to no pattern of a repository, such as the mark that an
// archive.Mover keeps beside a copy while it moves an entity. They are written in the transaction of an
// entity's change, or alone. Queries, indexes and Verify skip them. Their row keys begin with U+FFFC and a
// word of their owner, so they never collide with an entity.
type Beside struct {
	// Owner is the name of the package that keeps the rows, stored in each as _tpShared.
	Owner string
	// Rows are written in the partition of the entity with which they are written, whatever their own Key.Partition. A
	// write sets Row.ETag to the new ETag, or to "" if it is unknown: the response was lost and another writer
	// followed.
	Rows []RowOperation
}

// Write writes the rows, all of one partition of the table, in one transaction. It returns ErrConflict, ErrExists or
// ErrNotFound if a row has changed. Requests: 1.
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

// Written sets the ETags that a write returned.
func (b *Beside) Written(_ rows.Pass, etags []azcore.ETag) {
	for i := range b.Rows {
		b.Rows[i].Row.ETag = etags[i]
	}
}

// Writes returns the writes of the rows. It rejects rows without an owner: they would be read as entities.
func (b *Beside) Writes(_ rows.Pass) ([]tables.RawWrite, error) {
	if b.Owner == "" && len(b.Rows) > 0 {
		return nil, errors.New("Beside.Owner is empty; set it to the name of the pattern that owns the rows")
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
