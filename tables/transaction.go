package tables

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/core"
)

// Transaction collects changes of one partition; Commit applies all of them or none: an entity group transaction. A
// change concerns one row, if a method of Transaction makes it, or an entity with all its rows, if
// Repository.StageInsert and the like of package patterns make it. A transaction has at most 100 rows and 4 MiB, and
// may contain each row only once. The methods that add a change return the change's index, from 0, in the ETags that
// Commit returns. Commit returns an error before any write if a change is wrong.
//
// Guide: "Entity Group Transactions". Requests: 1; with entities, also those of their patterns.
type Transaction core.Transaction

func (x *Transaction) core() *core.Transaction { return (*core.Transaction)(x) }

// NewTransaction begins a transaction on the table. It makes no request, and is not safe for concurrent use.
func (t *Table) NewTransaction() *Transaction { return (*Transaction)(t.core().NewTransaction()) }

// Insert adds a row that must not exist.
func (x *Transaction) Insert(e *Entity) int { return x.core().Insert(e) }

// Replace replaces the row that e was read from; the row must not have changed since.
func (x *Transaction) Replace(e *Entity) int { return x.core().Replace(e) }

// ReplaceUnconditional replaces the row without a check of its ETag; the row must exist.
func (x *Transaction) ReplaceUnconditional(e *Entity) int { return x.core().ReplaceUnconditional(e) }

// Merge sets the properties of e in the row that e was read from; the row must not have changed since. A merge cannot remove a
// property, so Commit of a merge of a null value returns ErrInvalid.
func (x *Transaction) Merge(e *Entity) int { return x.core().Merge(e) }

// MergeUnconditional sets the properties of e without a check of the row's ETag; the row must exist.
func (x *Transaction) MergeUnconditional(e *Entity) int { return x.core().MergeUnconditional(e) }

// Upsert inserts the row, or replaces it without a check of its ETag.
func (x *Transaction) Upsert(e *Entity) int { return x.core().Upsert(e) }

// UpsertMerge inserts the row, or merges into it without a check of its ETag.
func (x *Transaction) UpsertMerge(e *Entity) int { return x.core().UpsertMerge(e) }

// Delete deletes the row that e was read from; the row must not have changed since.
func (x *Transaction) Delete(e *Entity) int { return x.core().Delete(e) }

// DeleteUnconditional deletes the row without a check of its ETag; the row must exist.
func (x *Transaction) DeleteUnconditional(key Key) int { return x.core().DeleteUnconditional(key) }

// Len returns the number of changes so far.
func (x *Transaction) Len() int { return x.core().Len() }

// Table returns the transaction's table.
func (x *Transaction) Table() *Table { return (*Table)(x.core().Table()) }

// Commit applies the changes, and returns an ETag for each of them, "" for deletes. For an entity it is the ETag of its
// own row. The ETag of another change is "" only if the response was lost and the row's new ETag could not be read
// back, for example because another writer has changed the row. A failure is an *Error whose Change counts the failed
// change from 1; nothing was applied, unless the error has the kind ErrUnknownOutcome. A transaction can be committed
// once; after a failure, read again and make a new one.
func (x *Transaction) Commit(ctx context.Context) (etags []azcore.ETag, err error) {
	return x.core().Commit(ctx)
}
