package core

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Transaction collects changes of one partition; Commit applies all of them or none: an entity group transaction. A
// change concerns one row, if a method of Transaction makes it, or an entity with all its rows, if
// Repository.StageInsert and the like of package patterns make it. A transaction has at most 100 rows and 4 MiB, and
// may contain each row only once. The methods that add a change return the change's index, from 0, in the ETags that
// Commit returns. Commit returns an error before any write if a change is wrong.
//
// Guide: "Entity Group Transactions". Requests: 1; with entities, also those of their patterns.
type Transaction struct {
	table     *Table
	writes    []tablerow.Row
	changes   []int // for each of writes, the index of its change
	count     int   // number of changes
	err       *entity.Error
	committed bool
	set       ChangeSet
}

// ChangeSet holds the changes of entities that package patterns has added to a transaction. It commits the
// rows of the transaction as well.
type ChangeSet interface {
	// Commit returns the ETag of each change.
	Commit(ctx context.Context) ([]azcore.ETag, error)
}

// NewTransaction begins a transaction on the table. It makes no request, and is not safe for concurrent use.
func (t *Table) NewTransaction() *Transaction { return &Transaction{table: t} }

// Len returns the number of changes so far.
func (x *Transaction) Len() int { return x.count }

// Table returns the transaction's table.
func (x *Transaction) Table() *Table { return x.table }

// Insert adds a row that must not exist.
func (x *Transaction) Insert(e *entity.Entity) int { return x.add(wire.VerbInsert, e, "") }

// Replace replaces the row that e was read from; the row must not have changed since.
func (x *Transaction) Replace(e *entity.Entity) int { return x.addConditional(wire.VerbReplace, e) }

// ReplaceUnconditional replaces the row without a check of its ETag; the row must exist.
func (x *Transaction) ReplaceUnconditional(e *entity.Entity) int {
	return x.add(wire.VerbReplace, e, azcore.ETagAny)
}

// Merge sets the properties of e in the row that e was read from; the row must not have changed since.
func (x *Transaction) Merge(e *entity.Entity) int { return x.addConditional(wire.VerbMerge, e) }

// MergeUnconditional sets the properties of e without a check of the row's ETag; the row must exist.
func (x *Transaction) MergeUnconditional(e *entity.Entity) int {
	return x.add(wire.VerbMerge, e, azcore.ETagAny)
}

// Upsert inserts the row, or replaces it without a check of its ETag.
func (x *Transaction) Upsert(e *entity.Entity) int { return x.add(wire.VerbReplace, e, "") }

// UpsertMerge inserts the row, or merges into it without a check of its ETag.
func (x *Transaction) UpsertMerge(e *entity.Entity) int { return x.add(wire.VerbMerge, e, "") }

// Delete deletes the row that e was read from; the row must not have changed since.
func (x *Transaction) Delete(e *entity.Entity) int { return x.addConditional(wire.VerbDelete, e) }

// DeleteUnconditional deletes the row without a check of its ETag; the row must exist.
func (x *Transaction) DeleteUnconditional(key entity.Key) int {
	return x.add(wire.VerbDelete, &entity.Entity{Key: key}, azcore.ETagAny)
}

func (x *Transaction) addConditional(verb wire.Verb, e *entity.Entity) int {
	if e != nil && e.ETag == "" {
		x.fail(errs.Loggable(e.Key), fmt.Errorf("change %d has no ETag: the entity was not read before; use the unconditional form", x.count+1))
	}
	var etag azcore.ETag
	if e != nil {
		etag = e.ETag
	}
	return x.add(verb, e, etag)
}

// add appends an operation. It copies the properties, so that e may be used for the next one.
func (x *Transaction) add(verb wire.Verb, e *entity.Entity, ifMatch azcore.ETag) int {
	var w tablerow.Row
	var err error = errs.Invalid("", ErrNil)
	var key entity.Key
	if e != nil {
		key = errs.Loggable(e.Key)
		w, err = (&Codec{}).write(verb, e, ifMatch, nil)
	}
	if err != nil {
		x.fail(key, err)
	}
	x.writes, x.changes = append(x.writes, w), append(x.changes, x.count)
	x.count++
	return x.count - 1
}

func (x *Transaction) fail(key entity.Key, err error) {
	if x.err == nil && x.table != nil {
		if x.err = errs.Of(err); x.err == nil {
			x.err = errs.Invalid("", err)
		}
		x.err.Op = "Commit"
		x.err.Table, x.err.Key, x.err.Change = x.table.name, key, x.count+1
	}
}

// Commit applies the changes, and returns an ETag for each of them, "" for deletes. For an entity it is the ETag of its
// own row. The ETag of another change is "" only if the response was lost and the row's new ETag could not be read
// back, for example because another writer has changed the row. A failure is an *Error whose Change counts the failed
// change from 1; nothing was applied, unless the error has the kind ErrUnknownOutcome. A transaction can be committed
// once; after a failure, read again and make a new one.
func (x *Transaction) Commit(ctx context.Context) (etags []azcore.ETag, err error) {
	if x.table == nil {
		return nil, errs.Wiringf("Commit", "", "the transaction has no table; make it with Table.NewTransaction")
	}
	ctx, span := (&Source{Table: x.table}).begin(ctx, "Commit")
	err = telemetry.ErrPanicked // the outcome if a pattern panics
	defer func() { span.End(err) }()
	if err := x.usable(); err != nil {
		return nil, err
	}
	x.committed = true
	if x.set != nil {
		return x.set.Commit(ctx)
	}
	etags, _, err = x.table.Commit(ctx, "Commit", x.writes...)
	if len(x.writes) == 1 { // sent as a single request, which counts no changes
		err = errs.Amend(err, func(e *entity.Error) { e.Change = 1 })
	}
	return etags, err
}

// usable returns why the operations cannot be committed, or nil.
func (x *Transaction) usable() error {
	switch {
	case x.err != nil:
		return x.err
	case x.committed:
		return errs.Wiringf("Commit", "", "the transaction was committed before; make a new one")
	}
	return nil
}
