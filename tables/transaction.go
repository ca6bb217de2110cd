package tables

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Transaction collects operations on rows of one partition and applies them whole or not at all: an entity group
// transaction. At most 100 operations and 4 MiB, each row once. Its methods return the operation's index, under which
// the ETags and a failure come back. What is wrong with an operation is told by Commit, before any request.
//
// Guide: "Entity Group Transactions". Requests: 1.
type Transaction struct {
	table     *Table
	writes    []RawWrite
	err       *Error
	committed bool
	written   []func(etags []azcore.ETag)
	hint      any // from the planner of a change to the repositories that stage in it
}

// NewTransaction begins a transaction on the table. It makes no request, and is not safe for concurrent use.
func (t *Table) NewTransaction() *Transaction { return &Transaction{table: t} }

// Len returns the number of operations so far.
func (x *Transaction) Len() int { return len(x.writes) }

// Table returns the table that the transaction is on.
func (x *Transaction) Table() *Table { return x.table }

// Insert adds a row that must not be there yet.
func (x *Transaction) Insert(e *Entity) int { return x.add(wire.VerbInsert, e, "") }

// Replace puts e in the place of the row it was read from.
func (x *Transaction) Replace(e *Entity) int { return x.addConditional(wire.VerbReplace, e) }

// ReplaceUnconditional puts e in the place of whatever row is there.
func (x *Transaction) ReplaceUnconditional(e *Entity) int {
	return x.add(wire.VerbReplace, e, azcore.ETagAny)
}

// Merge sets the properties of e in the row it was read from.
func (x *Transaction) Merge(e *Entity) int { return x.addConditional(wire.VerbMerge, e) }

// MergeUnconditional sets the properties of e in whatever row is there.
func (x *Transaction) MergeUnconditional(e *Entity) int {
	return x.add(wire.VerbMerge, e, azcore.ETagAny)
}

// Upsert inserts or replaces, whatever is there.
func (x *Transaction) Upsert(e *Entity) int { return x.add(wire.VerbReplace, e, "") }

// UpsertMerge inserts or merges, whatever is there.
func (x *Transaction) UpsertMerge(e *Entity) int { return x.add(wire.VerbMerge, e, "") }

// Delete removes the row e was read from.
func (x *Transaction) Delete(e *Entity) int { return x.addConditional(wire.VerbDelete, e) }

// DeleteUnconditional removes the row, whatever is there; it must be there.
func (x *Transaction) DeleteUnconditional(key Key) int {
	return x.add(wire.VerbDelete, &Entity{Key: key}, azcore.ETagAny)
}

func (x *Transaction) addConditional(verb wire.Verb, e *Entity) int {
	if e != nil && e.ETag == "" {
		x.fail(Loggable(rows.Open, e.Key), fmt.Errorf("change %d has no ETag: the entity was not read before; use the unconditional form", len(x.writes)+1))
	}
	var etag azcore.ETag
	if e != nil {
		etag = e.ETag
	}
	return x.add(verb, e, etag)
}

// add notes an operation. The properties are copied, so that e may be used for the next one.
func (x *Transaction) add(verb wire.Verb, e *Entity, ifMatch azcore.ETag) int {
	var w RawWrite
	var err error = Invalid("", errNil)
	var key Key
	if e != nil {
		key = Loggable(rows.Open, e.Key)
		w, err = (&RawCodec{}).write(verb, e, ifMatch)
	}
	if err != nil {
		x.fail(key, err)
	}
	x.writes = append(x.writes, w)
	return len(x.writes) - 1
}

func (x *Transaction) fail(key Key, err error) {
	if x.err == nil && x.table != nil {
		if x.err = asError(err); x.err == nil {
			x.err = Invalid("", err)
		}
		x.err.Op = "Commit"
		x.err.Table, x.err.Key, x.err.Change = x.table.name, key, len(x.writes)+1
	}
}

// Commit applies the operations. On success it returns an ETag for each, "" for deletes; in the rare case that the
// answer was lost and another writer followed at once, an ETag may be "" for a row as well. A failure is an *Error
// with the failing operation's index, and nothing was applied, unless it is ErrUnknownOutcome. A transaction can be
// committed once; after a failure a new one is built from what is read then.
func (x *Transaction) Commit(ctx context.Context) ([]azcore.ETag, error) {
	if x.table == nil {
		return nil, Invalidf("Commit", "the transaction is of no table: it was not made by NewTransaction")
	}
	if err := x.usable(); err != nil {
		return nil, err
	}
	x.committed = true
	etags, err := x.table.commit(ctx, "Commit", x.writes, rowwriter.NewWriteID())
	if err != nil {
		return nil, err
	}
	x.notify(etags)
	return etags, nil
}

// usable tells why the operations cannot be committed.
func (x *Transaction) usable() error {
	switch {
	case x.err != nil:
		return x.err
	case x.committed:
		return Invalidf("Commit", "the transaction was committed before")
	}
	return nil
}

// notify tells those who have staged writes that they are made.
func (x *Transaction) notify(etags []azcore.ETag) {
	for _, written := range x.written {
		written(etags)
	}
}
