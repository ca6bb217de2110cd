package patterns

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// commit is the one write path: every row that this library ever writes goes through it. One operation is a single
// request, several are one entity group transaction, applied whole or not at all.
//
// The error is nil when all was applied, ErrUnknownOutcome when nobody can tell (it may stand beside ErrExists,
// ErrNotFound or ErrTableBeingDeleted, when those are true by now), and any other error when nothing was. ETags come for every row
// but the deleted; an ETag is empty where another writer followed before it could be learned.
func (t *Table) commit(ctx context.Context, op string, operations []operation) ([]azcore.ETag, error) {
	return t.commitAs(ctx, op, operations, newWriteID())
}

// commitAs is commit under a write id that no write had before.
func (t *Table) commitAs(ctx context.Context, op string, operations []operation, writeID string) ([]azcore.ETag, error) {
	etags, e := t.tryCommit(ctx, operations, writeID)
	if e == nil {
		return etags, nil
	}
	e.Op, e.Table = op, t.name
	if len(operations) == 1 {
		e.Change = 0
		if e.Key == (Key{}) {
			e.Key = loggable(operations[0].key)
		}
	}
	if n := e.Change; n > 0 && n <= len(operations) || len(operations) == 1 {
		e.explain(&operations[max(n, 1)-1])
	}
	return nil, e
}

// explain adds what the failing operation means to its pattern.
func (e *Error) explain(op *operation) {
	e.Pattern, e.role = op.pattern, op.role
	if op.role == roleUnique && errors.Is(e.Kind, ErrExists) {
		e.Kind = ErrDuplicate
	}
}

func (t *Table) tryCommit(ctx context.Context, operations []operation, writeID string) ([]azcore.ETag, *Error) {
	if err := t.usable(); err != nil {
		return nil, invalid("", err)
	}
	if e := checkTransaction(operations); e != nil {
		return nil, e
	}
	enc, e := encode(t.name, operations, writeID)
	if e != nil {
		return nil, e
	}
	if err := ctx.Err(); err != nil {
		return nil, &Error{Err: err}
	}
	r := t.send(ctx, enc)
	if r.err == nil {
		return r.etags, nil
	}
	if !r.unknown && !r.earlier {
		return nil, r.err
	}
	return t.resolve(ctx, operations, enc, r)
}

// checkTransaction holds the rules of an entity group transaction.
func checkTransaction(operations []operation) *Error {
	if len(operations) == 0 {
		return invalidf("", "a transaction without operations")
	}
	if len(operations) > MaxTransactionOperations {
		return &Error{Kind: ErrTooLarge, Err: sizeOf("a transaction", len(operations), MaxTransactionOperations, "operations")}
	}
	if len(operations) == 1 {
		return nil
	}
	rows := make(map[string]int, len(operations))
	for i := range operations {
		key := operations[i].key
		if key.Partition != operations[0].key.Partition {
			e := invalidf("", "a transaction has one partition, and change %d is in another than change 1", i+1)
			e.Key, e.Change = loggable(key), i+1
			return e
		}
		if first, twice := rows[key.Row]; twice {
			e := invalidf("", "a transaction has a row once, and changes %d and %d are the same row", first+1, i+1)
			e.Key, e.Change, e.Pattern = loggable(key), i+1, operations[i].pattern
			return e
		}
		rows[key.Row] = i
	}
	return nil
}

// resolve finds out what became of a write whose answer, or whose earlier attempt's answer, was lost. A row that
// carries this write's id proves that all of it was applied. The contrary proof is rare: a request may still be on
// its way, and a rival may have overwritten ours.
func (t *Table) resolve(ctx context.Context, operations []operation, enc *encoded, r reply) ([]azcore.ETag, *Error) {
	if !r.unknown && settles(r.err) {
		return nil, r.err
	}
	if !r.unknown && errors.Is(r.err.Kind, ErrTableBeingDeleted) {
		return nil, r.err.unsettled() // there is no row to read
	}
	witnesses := enc.witnesses(operations, r)
	if len(witnesses) == 0 {
		return t.resolveUnmarked(ctx, operations, r)
	}
	var first error
	for i, witness := range witnesses {
		row, err := t.readRow(ctx, operations[witness].key)
		if err == nil && row.writeID == enc.writeID {
			return t.learnETags(ctx, operations, enc, witness, row.etag), nil
		}
		if i == 0 {
			first = err
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, unknown(r.err, err)
		}
	}
	if r.unknown {
		return nil, unknown(r.err, first)
	}
	return nil, judge(r.err, first)
}

// settles reports whether a refusal says the same of every attempt, so that none before it was applied: the service
// never takes such a row. A refusal without a code settles nothing: a gateway may send it, and an earlier attempt may have
// come past that gateway. Nor does a table that is not there, or is being deleted: it may be made, also of a name that is
// free in a moment, while an earlier attempt is on its way.
func settles(refusal *Error) bool {
	return refusal.Code != "" && (errors.Is(refusal.Kind, ErrInvalid) || errors.Is(refusal.Kind, ErrTooLarge))
}

// unansweredWitnesses is the number of rows read when the service gave no answer at all: it may be in trouble, and
// nothing read then could prove that the write was not applied.
const unansweredWitnesses = 2

// witnesses chooses the rows to read, of those that would carry the id: the refused one first, then the inserted
// ones, which rivals overwrite least. A rival may have overwritten any of them, so after a refusal all are asked.
func (enc *encoded) witnesses(operations []operation, r reply) []int {
	rank := func(i int) int {
		switch {
		case i+1 == r.err.Change:
			return 0
		case operations[i].verb == wire.VerbInsert:
			return 1
		}
		return 2
	}
	var rows []int
	for i, marked := range enc.marked {
		if marked {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return rank(a) - rank(b) })
	if r.unknown {
		rows = rows[:min(len(rows), unansweredWitnesses)]
	}
	return rows
}

// judge reads a certain refusal that came after an uncertain attempt, when no row carries our id. Where the refusal
// is the truth as of now, it keeps its kind, and ErrUnknownOutcome beside it: ours may have been applied, and changed
// or removed by a rival since.
func judge(refusal *Error, readErr error) *Error {
	exists := errors.Is(refusal.Kind, ErrExists) && readErr == nil
	gone := errors.Is(refusal.Kind, ErrNotFound) && errors.Is(readErr, ErrNotFound)
	if exists || gone {
		return refusal.unsettled()
	}
	return unknown(refusal, readErr)
}

// unsettled is a refusal that is true of the last attempt, and as of now, with ErrUnknownOutcome beside it.
func (e *Error) unsettled() *Error {
	beside := *e
	beside.Err = errors.Join(e.Err, ErrUnknownOutcome)
	return &beside
}

// unknown makes the error of an outcome that nobody can tell.
func unknown(cause *Error, readErr error) *Error {
	e := *cause
	e.Kind = ErrUnknownOutcome
	if read := asError(readErr); read != nil && read.Err != nil {
		readErr = read.Err // without its kind: a read that is ErrUnavailable says nothing of the write
	}
	e.Err = errors.Join(cause.Err, readErr)
	return &e
}

// resolveUnmarked is resolve for deletes, and for rows that had no room for the id.
func (t *Table) resolveUnmarked(ctx context.Context, operations []operation, r reply) ([]azcore.ETag, *Error) {
	for i := range operations {
		if operations[i].verb != wire.VerbDelete {
			return nil, unknown(r.err, nil)
		}
	}
	for i := range operations {
		// Gone is what a delete asked for, whoever did it; a row that is still there tells nothing.
		if _, err := t.readRow(ctx, operations[i].key); !errors.Is(err, ErrNotFound) {
			return nil, unknown(r.err, err)
		}
	}
	return make([]azcore.ETag, len(operations)), nil
}

// learnETags reads the ETags that the lost answer held. A row that somebody wrote since keeps an empty one.
func (t *Table) learnETags(ctx context.Context, operations []operation, enc *encoded, witness int, etag azcore.ETag) []azcore.ETag {
	etags := make([]azcore.ETag, len(operations))
	etags[witness] = etag
	for i := range operations {
		if i == witness || !enc.marked[i] {
			continue
		}
		if row, err := t.readRow(ctx, operations[i].key); err == nil && row.writeID == enc.writeID {
			etags[i] = row.etag
		}
	}
	return etags
}
