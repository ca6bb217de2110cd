package driver

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Reconciliation is one entity in the input of Implementation.Reconcile.
type Reconciliation[T any] struct {
	Key    tables.Key
	Entity *T                // nil if the entity does not exist
	Stored tables.Properties // of the entity, as stored
	Keys   []string
	// Received reports that Keys come from a queue message, which anyone who can write to the queue may have
	// forged. If it is true, check that a key belongs to the entity before you change or delete what the key
	// names. It is false for the writer's own keys.
	Received bool
	// ChangeID identifies the change set whose message names the keys. The writer and every delivery of the
	// message have the same ChangeID. Another attempt to make the change has another message and another
	// ChangeID.
	ChangeID string
	// NotCommitted reports that the service has refused the writer's change, so that Reconcile only frees the
	// reservations for it. It is false in a worker, and if the outcome is unknown.
	NotCommitted bool
	// Err is set by Reconcile if it cannot reconcile the entity.
	Err error

	pattern string
}

// ReconcileEach returns the Reconcile of a pattern whose entities share nothing outside of the partition: it reconciles each by itself,
// and continues with the next if one fails.
func ReconcileEach[T any](reconcile func(ctx context.Context, r *Reconciliation[T]) error) func(context.Context, []*Reconciliation[T]) error {
	return func(ctx context.Context, all []*Reconciliation[T]) error {
		for _, r := range all {
			r.Err = reconcile(ctx, r)
		}
		return nil
	}
}

// NewReconciliation is for patterns that repair rows of their own outside of any change. r names the keys
// that may be written, and pattern owns the rows.
func NewReconciliation[T any](pattern string, r Reconciliation[T]) *Reconciliation[T] {
	r.pattern = pattern
	return &r
}

// Owns reports whether the message names a key: only named keys may be written for it.
func (r *Reconciliation[T]) Owns(ctx context.Context, key string) bool {
	return slices.Contains(r.Keys, key) || !lease.Holds(ctx, lease.OwnKeys)
}

// Write writes rows that belong to no single entity, such as a shared list, for one of the named keys, in one
// transaction: all rows are of one partition of a table. For rows of several keys or entities, check each by Owns first. Row.Key and Row.Properties are used. ReplaceRow and DeleteRow
// require Row.ETag, so that the service rejects a delayed write. It returns ErrConflict if a row has changed, appeared or disappeared: then read
// the rows again and repeat.
func (r *Reconciliation[T]) Write(ctx context.Context, key string, table *tables.Table, operations ...RowOperation) error {
	const op = "Reconcile"
	if !r.Owns(ctx, key) {
		return tables.Invalidf(op, "the message does not name %q, so it cannot be written for this message; name it in Outside or OutsideKeys", key)
	}
	writes := make([]tables.RawWrite, len(operations))
	for i := range operations {
		var err error
		if writes[i], err = WriteOf(pass, &operations[i], r.pattern); err != nil {
			return tables.Invalid(op, err)
		}
		writes[i].Meaning = namedBy(r.pattern)
	}
	_, err := tables.RawOf(pass, table).Commit(ctx, op, writes, rowwriter.NewWriteID())
	return err
}

const pass = rows.Open

// namedBy is a Meaning that adds the pattern's name to errors of its rows.
type namedBy string

// Explain adds the pattern's name to e. It changes the kinds ErrExists and ErrNotFound to ErrConflict, since a concurrent writer has
// then inserted or deleted the row.
func (n namedBy) Explain(e *tables.Error) {
	e.Pattern = string(n)
	switch tables.KindOf(e) {
	case tables.ErrExists, tables.ErrNotFound:
		e.Kind = tables.ErrConflict
	}
}
