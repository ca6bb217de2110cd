package tables

import (
	"context"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/core"
)

// Table is one table of an account. It is safe for concurrent use.
type Table core.Table

func (t *Table) core() *core.Table { return (*core.Table)(t) }

// Table returns a handle for the table. With an illegal name every operation returns ErrWiring. Requests: 0.
func (a *Account) Table(name string) *Table { return (*Table)(a.core().Table(name)) }

// Name returns the table's name.
func (t *Table) Name() string { return t.core().Name() }

// Account returns the account the table belongs to.
func (t *Table) Account() *Account { return (*Account)(t.core().Account()) }

// Client returns the SDK's client for the table.
func (t *Table) Client() *aztables.Client { return t.core().Client() }

// Create creates the table. It returns ErrExists if the table exists. For 40 s or more after a drop it returns ErrBeingDeleted, or
// ErrUnknownOutcome if an earlier attempt had no response and may still create the table. If a response is lost and the repeated request
// finds the table, Create returns nil, whoever created it.
//
// Requests: 1.
func (t *Table) Create(ctx context.Context) error { return t.core().Create(ctx) }

// CreateIfMissing creates the table unless it exists. Requests: 1.
func (t *Table) CreateIfMissing(ctx context.Context) error { return t.core().CreateIfMissing(ctx) }

// Drop deletes the table with everything in it. It returns ErrMissingResource if the table does not exist. Requests:
// 1.
func (t *Table) Drop(ctx context.Context) error { return t.core().Drop(ctx) }

// Same reports whether two handles are of the same table. Names of tables ignore case.
func (t *Table) Same(other *Table) bool { return t.core().Same(other.core()) }

// InOrder yields rows of one partition in the order of their row keys, for callers that rely on this order. From Azure
// Tables it yields them as they are received. From Azure Cosmos DB for Table, which returns rows in no order, it first
// reads all of them into memory.
func (t *Table) InOrder(rows iter.Seq2[*Entity, error]) iter.Seq2[*Entity, error] {
	return t.core().InOrder(rows)
}
