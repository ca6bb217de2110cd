package driver

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Reconciliation is what an Implementation.Reconcile has to bring into agreement.
type Reconciliation[T any] struct {
	Key    tables.Key
	Entity *T                // nil when there is no such entity
	Stored tables.Properties // of the entity, as stored
	Keys   []string
	// Received says that Keys were read from a message, which whoever may put messages can have written. What a key names is
	// checked to be the entity's then, before it is changed or deleted. A writer's own keys are not received.
	Received bool

	pattern string
}

// NewReconciliation is for patterns that mend rows of their own outside of any change: r says what may be written, and pattern whose
// rows they are.
func NewReconciliation[T any](pattern string, r Reconciliation[T]) *Reconciliation[T] {
	r.pattern = pattern
	return &r
}

// Owns reports whether the message names a key: nothing else may be written for it.
func (r *Reconciliation[T]) Owns(ctx context.Context, key string) bool {
	return slices.Contains(r.Keys, key) || !lease.Holds(ctx, lease.OwnKeys)
}

// Write writes rows that belong to no one entity, such as a list that many share, for one of the named keys: rows of one
// partition of a table, in one transaction. Row.Key and Row.Properties are used, and Row.ETag by ReplaceRow and DeleteRow,
// which have one, so that what comes late is refused: ErrConflict, ErrExists and ErrNotFound say that the rows have changed.
func (r *Reconciliation[T]) Write(ctx context.Context, key string, table *tables.Table, rows ...RowOperation) error {
	const op = "Reconcile"
	if !r.Owns(ctx, key) {
		return tables.Invalidf(op, "the message does not name %q", key)
	}
	writes := make([]tables.RawWrite, len(rows))
	for i := range rows {
		var err error
		if writes[i], err = WriteOf(pass, &rows[i], r.pattern); err != nil {
			return tables.Invalid(op, err)
		}
		writes[i].Meaning = namedBy(r.pattern)
	}
	_, err := tables.RawOf(pass, table).Commit(ctx, op, writes, rowwriter.NewWriteID())
	return err
}

const pass = rows.Open

// namedBy is the meaning of a pattern's rows: an error names the pattern.
type namedBy string

// Explain names the pattern.
func (n namedBy) Explain(e *tables.Error) { e.Pattern = string(n) }
