package patterns

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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
	operations, err := b.operations()
	if err != nil {
		return tables.Invalid(op, err)
	}
	etags, err := commit(ctx, table, op, operations...)
	if err != nil {
		return err
	}
	b.settle(etags)
	return nil
}

// settle notes the ETags that a write has left.
func (b *Beside) settle(etags []azcore.ETag) {
	for i := range b.Rows {
		b.Rows[i].Row.ETag = etags[i]
	}
}

// operations refuses rows without an owner: they would be read as entities.
func (b *Beside) operations() ([]operation, error) {
	if b.Owner == "" && len(b.Rows) > 0 {
		return nil, errors.New("Beside.Owner is empty; rows beside an entity need the name of who keeps them")
	}
	operations := make([]operation, len(b.Rows))
	for i := range b.Rows {
		o, err := contributed("", &b.Rows[i])
		if err != nil {
			return nil, err
		}
		o.shared, o.role = b.Owner, roleBeside
		operations[i] = o
	}
	return operations, nil
}

// ApplyOptions are what Apply adds to a change; nil is the same as the zero value.
type ApplyOptions struct {
	// Incarnation is the id of the entity's life from this change on. With it a repeated insert of the same thing is known. ""
	// is a new one for an insert, and the entity's own for a replace.
	Incarnation string
	// Beside are rows that are written in the entity's transaction. If one of them has changed, nothing is written, and the
	// error is that of an entity that has changed: ErrConflict, ErrExists or ErrNotFound.
	Beside Beside
}

// apply is Repository.Apply.
func (r *engine) apply(ctx context.Context, kind ChangeKind, v any, options *ApplyOptions) error {
	w, err := r.applying(ctx, kind, v)
	if err != nil {
		return err
	}
	if options != nil {
		w.change.incarnation = options.Incarnation
		w.change.beside = &options.Beside
		if _, err := options.Beside.operations(); err != nil {
			return r.invalid(w.op, w.change.Key, err)
		}
	}
	return r.run(ctx, w)
}

func (r *engine) applying(ctx context.Context, kind ChangeKind, v any) (*work, error) {
	const op = "Apply"
	switch kind {
	case ChangeInsert:
		return r.inserting("Insert", v)
	case ChangeReplace:
		return r.replacing("Replace", v)
	case ChangeDelete:
		return r.deleting(ctx, "Delete", v)
	}
	return nil, r.invalid(op, tables.Key{}, fmt.Errorf("change kind %d; Apply takes ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
