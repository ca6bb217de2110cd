package tables

import (
	"context"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/streams"
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
type Rows[T any] struct{ src *core.Source }

// RowsOf returns a view of the table's rows as T. It makes no request. It returns ErrWiring if a T cannot be stored.
func RowsOf[T any](table *Table) (*Rows[T], error) {
	if table == nil {
		return nil, errs.Wiringf("RowsOf", "", "the table is nil; make it with Account.Table")
	}
	codec, err := core.CodecOf[T]()
	if err != nil {
		return nil, err
	}
	return &Rows[T]{table.core().Plain(codec)}, nil
}

// Entities returns a view of the table's rows as property bags. It makes no request.
func (t *Table) Entities() *Rows[Entity] {
	view, _ := RowsOf[Entity](t) // RowsOf returns an error only for a nil table: every Entity can be stored
	return view
}

// Table returns the table.
func (r *Rows[T]) Table() *Table { return (*Table)(r.src.Table) }

// Get reads one row. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) Get(ctx context.Context, key Key) (*T, error) {
	return as[T](r.src.Get(ctx, "Get", key))
}

// as converts v to a *T, and passes err on.
func as[T any](v any, err error) (*T, error) {
	if err != nil || v == nil {
		return nil, err
	}
	return v.(*T), nil
}

// Query returns a query of the rows. It makes no request.
func (r *Rows[T]) Query() Query[T] { return Query[T](core.NewQuery(r.src)) }

// Insert adds a row. It returns ErrExists if a row has the same key.
func (r *Rows[T]) Insert(ctx context.Context, v *T) error {
	if v == nil {
		return r.src.Refused("Insert")
	}
	return r.src.Write(ctx, "Insert", wire.VerbInsert, v, "")
}

// Replace replaces the row that v was read from: properties that v does not have are removed. It returns ErrConflict if the row has
// changed since, and ErrInvalid for a value that was read with Select.
func (r *Rows[T]) Replace(ctx context.Context, v *T) error {
	if v == nil {
		return r.src.Refused("Replace")
	}
	return r.src.Conditional(ctx, "Replace", wire.VerbReplace, v)
}

// ReplaceUnconditional replaces the row without a check of its ETag: changes of other writers are lost. It returns ErrNotFound if
// the row does not exist.
func (r *Rows[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	if v == nil {
		return r.src.Refused("ReplaceUnconditional")
	}
	return r.src.Write(ctx, "ReplaceUnconditional", wire.VerbReplace, v, azcore.ETagAny)
}

// Merge sets the named properties, all that T stores if none is named (of an Entity: all that it has), in the row that v was read
// from, and keeps the row's other properties. It returns ErrConflict if the row has changed since.
//
// A merge cannot remove a property, so each property that it sets must have a value: Merge returns ErrInvalid for a nil pointer, nil
// bytes, a null Value, and an empty field tagged omitempty or omitzero. Name the other properties, or use Replace. Name the
// properties also if v is a struct that was read with Select.
func (r *Rows[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	if v == nil {
		return r.src.Refused("Merge")
	}
	return r.src.Conditional(ctx, "Merge", wire.VerbMerge, v, properties...)
}

// MergeUnconditional is Merge without a check of the ETag. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) MergeUnconditional(ctx context.Context, v *T, properties ...string) error {
	if v == nil {
		return r.src.Refused("MergeUnconditional")
	}
	return r.src.Write(ctx, "MergeUnconditional", wire.VerbMerge, v, azcore.ETagAny, properties...)
}

// Upsert inserts the row, or replaces it without a check of its ETag: changes of other writers are lost.
func (r *Rows[T]) Upsert(ctx context.Context, v *T) error {
	if v == nil {
		return r.src.Refused("Upsert")
	}
	return r.src.Write(ctx, "Upsert", wire.VerbReplace, v, "")
}

// UpsertMerge inserts a row with the properties that Merge would set, or merges them into the row without a check of its ETag.
func (r *Rows[T]) UpsertMerge(ctx context.Context, v *T, properties ...string) error {
	if v == nil {
		return r.src.Refused("UpsertMerge")
	}
	return r.src.Write(ctx, "UpsertMerge", wire.VerbMerge, v, "", properties...)
}

// Delete deletes the row that v was read from. It returns ErrConflict if the row has changed since.
func (r *Rows[T]) Delete(ctx context.Context, v *T) error {
	if v == nil {
		return r.src.Refused("Delete")
	}
	return r.src.Conditional(ctx, "Delete", wire.VerbDelete, v)
}

// DeleteUnconditional deletes the row without a check of its ETag. It returns ErrNotFound if the row does not exist.
func (r *Rows[T]) DeleteUnconditional(ctx context.Context, key Key) error {
	return r.src.Table.DeleteUnconditional(ctx, key)
}

// Entity returns v as a property bag, for a Transaction. It returns ErrInvalid for a value that was read through a
// projection.
func (r *Rows[T]) Entity(v *T) (*Entity, error) {
	if v == nil {
		return nil, r.src.Refused("Entity")
	}
	return r.src.Entity(v)
}

// GetMany reads rows by their keys, several at once, and yields those that exist, in the order in which keys lists
// them. Use it in place of the filter "RowKey eq a or RowKey eq b", which the service runs as a partition scan. For a
// row that does not fit T it yields ErrGarbled, as All does. It yields any other error once, as the last element.
//
// Requests: 1 for each key, at most Concurrency of them ahead of the caller.
func (r *Rows[T]) GetMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return streams.Typed[T](r.src.GetMany(ctx, keys, options.core().Concurrency))
}

// BulkNonAtomic writes any number of rows with one verb. It groups them by partition, packs each group into entity group transactions,
// and sends those of several partitions at once. Each transaction is atomic; the whole is not: if BulkNonAtomic ends early, because of
// the context or an error, any of the rows after Report.Resume may have been written. It then waits for the transactions that were sent,
// and returns the first error. The report is of this run, without the
// runs that it resumes.
//
// If the service refuses a transaction because of one row, BulkNonAtomic writes the other rows without that row and
// passes the row's error to BulkOptions.Refused. So one row that is too large, or that another writer has changed, does
// not prevent the others from being written. A failure of the service, or an unknown outcome, ends the run. Values with
// the same key are written in the order of the sequence, each in a different transaction.
//
// It holds at most 20,000 rows in memory. If these rows are spread over so many partitions that no transaction fills,
// it sends smaller transactions. The properties and the ETag of a value are copied when it is taken from the sequence.
// New ETags are set later, by other goroutines: do not use the values before BulkNonAtomic returns.
//
// Requests: at least 1 for each 100 rows of a partition, and at least 1 more for each refused row.
func (r *Rows[T]) BulkNonAtomic(ctx context.Context, values iter.Seq2[*T, error], options *BulkOptions) (BulkReport, error) {
	return r.src.BulkNonAtomic(ctx, streams.Untyped(values), options)
}
