package core

import (
	"context"
	"iter"
	"reflect"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Telemetry returns the emitter of an account's telemetry, nil for a nil account.
func (a *Account) Telemetry() *telemetry.Telemetry {
	if a == nil {
		return nil
	}
	return a.telemetry
}

// Owner returns what has made the handle, nil for a handle of Account.Table: from the handle of a Store, a repository finds the Store.
func (t *Table) Owner() any { return t.owner }

// Owned returns a copy of the handle that has an owner.
func (t *Table) Owned(owner any) *Table {
	owned := *t
	owned.owner = owner
	return &owned
}

// GetMany reads rows by their keys, several at once, and omits keys without a row. Requests: 1 for each key.
func (t *Table) GetMany(ctx context.Context, keys []entity.Key) iter.Seq2[*tablerow.Row, error] {
	return streams.Typed[tablerow.Row](t.rawRows().GetMany(ctx, keys, 0))
}

// Query returns a query of the rows as they are stored: its values are *tablerow.Row.
func (t *Table) Query() Query { return NewQuery(t.rawRows()) }

// Bags returns a query of the rows as property bags: its values are *entity.Entity.
func (t *Table) Bags() Query {
	return NewQuery(t.Plain(&Codec{typ: reflect.TypeFor[entity.Entity](), room: func() (any, *State) { return new(entity.Entity), nil }}))
}

// Source returns a source of the table's rows in a span of row keys. The caller sets Load, which may skip rows.
func (t *Table) Source(span compoundkey.Span) *Source {
	return &Source{Table: t, Codec: &Codec{}, Span: span, Skips: true}
}

// Visit returns a query that passes each row to visit as it is read, and that yields no rows.
func (t *Table) Visit(visit func(context.Context, *tablerow.Row) error) Query {
	return NewQuery(&Source{Table: t, Codec: &Codec{}, Skips: true,
		Load: func(ctx context.Context, row *tablerow.Row, _ []string) (any, error) { return nil, visit(ctx, row) }})
}

// Condition returns the expression of a condition on rows of the codec's type, nil for a nil Condition.
func (c *Codec) Condition(condition entity.Condition) (odata.Expr, error) {
	if condition == nil {
		return nil, nil
	}
	return condition(c.types())
}

// ChangeSet returns the change set of the entities that package patterns has staged; nil for none.
func (x *Transaction) ChangeSet() ChangeSet { return x.set }

// SetChangeSet makes the transaction commit a change set.
func (x *Transaction) SetChangeSet(set ChangeSet) { x.set = set }

// NextChange counts one more change of the transaction, and returns the index of that change.
func (x *Transaction) NextChange() int {
	x.count++
	return x.count - 1
}

// Writes returns the rows of a transaction that is part of a change set, and for each row the index of its change. It returns an error
// if the transaction cannot be committed.
func (x *Transaction) Writes() ([]tablerow.Row, []int, error) {
	if x.err != nil {
		return nil, nil, x.err
	}
	return x.writes, x.changes, nil
}

// Unit is the change of one entity in a bulk write. Its rows stay in one transaction.
type Unit struct {
	Key    entity.Key
	Writes []tablerow.Row // the first is the entity's own row; only an estimate if Written is nil
	More   int            // rows that the entity may write or remove besides Writes
	// Written updates the entity after a commit of Writes; nil if only Together can write it.
	Written func(etags []azcore.ETag, writeID string)
	// Together writes units as one change set of their repository, which may write more rows than Writes. If units has
	// one element, Together writes that unit like any other change of the repository. Together is nil without a
	// repository. In its errors, Error.Change is the number of the failed unit; ErrTooLarge concerns all units
	// together.
	Together func(ctx context.Context, units []Unit) error
	Entity   any  // for Together
	Single   bool // no other unit may be in its transaction
	Again    bool // Together reads the entity again after a conflict
}
