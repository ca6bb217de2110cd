package tables

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Rows reads and writes the rows of a table as values of T, without any pattern: each value is one row. T is
// Entity for the property bag, or a struct with string fields PartitionKey and RowKey.
//
// Replace, Merge and Delete are conditional on the ETag with which the value was read: Entity.ETag, or the
// ETag of an embedded Meta. If T is Entity or embeds a Meta, every write returns ErrInvalid for a value of a
// row that a Repository keeps consistent with copies in its partition. The one exception is Insert of a struct, which makes a plain row.
// Rows cannot see copies in other partitions, lists and counts: write such entities through their repository only. An Entity lacks the
// library's own properties, so a table copied as Entities would lack them and be broken: use backup.Copy, or make a new Entity for a
// plain row.
//
// Requests: 1 for each operation on one row; after a lost response, 1 more to read the outcome.
type Rows[T any] struct {
	src *RawSource
}

// RowsOf returns a view of the table's rows as T. It makes no request. It returns ErrWiring if a T cannot be stored.
func RowsOf[T any](table *Table) (*Rows[T], error) {
	if table == nil {
		return nil, Wiringf("RowsOf", "", "the table is nil; make it with Account.Table")
	}
	codec, err := NewCodec[T]()
	if err != nil {
		return nil, err
	}
	src := &RawSource{Table: table, Codec: codec.raw, Known: codec.raw.Known()}
	if codec.raw.IsBag() || codec.raw.HasMeta() {
		src.Guards = []string{rows.Primary, rows.Shared, rows.Copies, rows.Layout}
	}
	src.Load = func(_ context.Context, row *RawRow, selected []string) (any, error) {
		return codec.raw.load(row, selected != nil)
	}
	return &Rows[T]{src}, nil
}

// Entities returns a view of the table's rows as property bags. It makes no request.
func (t *Table) Entities() *Rows[Entity] {
	view, _ := RowsOf[Entity](t) // RowsOf returns an error only for a nil table: every Entity can be stored
	return view
}

// Table returns the table.
func (r *Rows[T]) Table() *Table { return r.src.Table }

// Get reads one row. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) Get(ctx context.Context, key Key) (*T, error) {
	return as[T](r.src.get(ctx, "Get", key))
}

// Query returns a query of the rows. It makes no request.
func (r *Rows[T]) Query() Query[T] { return QueryOf[T](rows.Open, r.src) }

// Insert adds a row. It returns ErrExists if a row has the same key.
func (r *Rows[T]) Insert(ctx context.Context, v *T) error {
	return r.write(ctx, "Insert", wire.VerbInsert, v, "")
}

// Replace replaces the row that v was read from: properties that v does not have are removed. It returns ErrConflict if the row has
// changed since, and ErrInvalid for a value that was read with Select.
func (r *Rows[T]) Replace(ctx context.Context, v *T) error {
	return r.conditional(ctx, "Replace", wire.VerbReplace, v)
}

// ReplaceUnconditional replaces the row without a check of its ETag: changes of other writers are lost. It returns ErrNotFound if
// the row does not exist.
func (r *Rows[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	return r.write(ctx, "ReplaceUnconditional", wire.VerbReplace, v, azcore.ETagAny)
}

// Merge sets the named properties, all that T stores if none is named (of an Entity: all that it has), in the row that v was read
// from, and keeps the row's other properties. It returns ErrConflict if the row has changed since.
//
// A merge cannot remove a property, so each property that it sets must have a value: Merge returns ErrInvalid for a nil pointer, nil
// bytes, a null Value, and an empty field tagged omitempty or omitzero. Name the other properties, or use Replace. Name the
// properties also if v is a struct that was read with Select.
func (r *Rows[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return r.conditional(ctx, "Merge", wire.VerbMerge, v, properties...)
}

// MergeUnconditional is Merge without a check of the ETag. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) MergeUnconditional(ctx context.Context, v *T, properties ...string) error {
	return r.write(ctx, "MergeUnconditional", wire.VerbMerge, v, azcore.ETagAny, properties...)
}

// Upsert inserts the row, or replaces it without a check of its ETag: changes of other writers are lost.
func (r *Rows[T]) Upsert(ctx context.Context, v *T) error {
	return r.write(ctx, "Upsert", wire.VerbReplace, v, "")
}

// UpsertMerge inserts a row with the properties that Merge would set, or merges them into the row without a check of its ETag.
func (r *Rows[T]) UpsertMerge(ctx context.Context, v *T, properties ...string) error {
	return r.write(ctx, "UpsertMerge", wire.VerbMerge, v, "", properties...)
}

// Delete deletes the row that v was read from. It returns ErrConflict if the row has changed since.
func (r *Rows[T]) Delete(ctx context.Context, v *T) error {
	return r.conditional(ctx, "Delete", wire.VerbDelete, v)
}

// DeleteUnconditional deletes the row without a check of its ETag. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) DeleteUnconditional(ctx context.Context, key Key) error {
	_, err := r.src.Table.commit(ctx, "DeleteUnconditional", []RawWrite{{Verb: wire.VerbDelete, Key: key, IfMatch: azcore.ETagAny}}, rowwriter.NewWriteID())
	return err
}

func (r *Rows[T]) conditional(ctx context.Context, op string, verb wire.Verb, v *T, properties ...string) error {
	if v == nil {
		return relabel(op, r.src.Table, Invalid("", errNil))
	}
	etag, err := r.src.Codec.etag(v)
	if err != nil {
		return relabel(op, r.src.Table, Invalid("", err))
	}
	return r.write(ctx, op, verb, v, etag, properties...)
}

func (r *Rows[T]) write(ctx context.Context, op string, verb wire.Verb, v *T, ifMatch azcore.ETag, properties ...string) error {
	if v == nil {
		return relabel(op, r.src.Table, Invalid("", errNil))
	}
	return r.src.write(ctx, op, verb, v, ifMatch, properties)
}

// Entity returns v as a property bag, for a Transaction. It returns ErrInvalid for a value that was read through a
// projection.
func (r *Rows[T]) Entity(v *T) (*Entity, error) {
	if v == nil {
		return nil, relabel("Entity", r.src.Table, Invalid("", errNil))
	}
	e, err := r.src.entity(v)
	if err != nil {
		return nil, relabel("Entity", r.src.Table, err)
	}
	return e, nil
}

// relabel sets the operation of an error from a lower layer to the one that the caller called.
func relabel(op string, t *Table, err error) error {
	return amend(err, func(e *Error) { e.Op, e.Table = op, t.name })
}
