package tables

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/submission"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// commit is the one write path: every row that this library ever writes goes through it. One operation is a single
// request, several are one entity group transaction, applied whole or not at all.
//
// The error is nil if all operations were applied, ErrUnknownOutcome if the outcome is unknown, and any other error if
// none was applied. commit returns an ETag for every row that it did not delete; an ETag is empty if another writer changed the row before it was read
// back.
//
// writeID must not have been used by an earlier write.
func (t *Table) commit(ctx context.Context, op string, writes []RawWrite, writeID string) ([]azcore.ETag, error) {
	ctx, span := (&Source{Table: t}).begin(ctx, op)
	etags, e := t.tryCommit(ctx, writes, writeID)
	if e == nil {
		span.End(nil)
		return etags, nil
	}
	defer func() { span.End(e) }()
	t.failed(ctx, e)
	e.Op, e.Table = op, t.name
	failed := e.Change
	if len(writes) == 1 {
		failed, e.Change = 1, 0
		if e.Key == (Key{}) {
			e.Key = Loggable(rows.Open, writes[0].Key)
		}
	}
	if failed > 0 && failed <= len(writes) {
		writes[failed-1].explain(e)
	}
	return nil, e
}

// failed counts a failed request of the table, and logs it if the table does not exist.
func (t *Table) failed(ctx context.Context, err error) {
	signals, e := TelemetryOf(rows.Open, t.account), asError(err)
	if signals == nil || e == nil {
		return
	}
	switch KindOf(e) {
	case ErrMissingResource:
		signals.Missing(ctx, "tables", t.name)
	case ErrConflict, ErrExists:
		signals.Count(ctx, telemetry.Conflicts, 1, telemetry.AttrTable, t.name, telemetry.AttrOutcome, explain(e).Outcome)
	}
}

func (t *Table) tryCommit(ctx context.Context, writes []RawWrite, writeID string) ([]azcore.ETag, *Error) {
	if err := t.usable(); err != nil {
		return nil, Wiringf("", "", "%w", err)
	}
	if e := CheckWrites(rows.Open, writes); e != nil {
		return nil, e
	}
	enc, e := encode(t.name, writes, writeID)
	if e != nil {
		return nil, e
	}
	if err := pace.Rows(ctx, len(writes)); err != nil {
		return nil, &Error{Err: err}
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
	return t.resolve(ctx, writes, enc, r)
}

// CheckWrites refuses writes that break the rules of an entity group transaction.
func CheckWrites(_ rows.Pass, writes []RawWrite) *Error {
	if len(writes) == 0 {
		return Invalidf("", "the transaction has no operations; add at least one")
	}
	if len(writes) > MaxTransactionOperations {
		return Invalid("", &edm.SizeError{What: "a transaction", Size: len(writes), Limit: MaxTransactionOperations, Unit: "operations"})
	}
	if len(writes) == 1 {
		return nil
	}
	seen := make(map[string]int, len(writes))
	for i := range writes {
		key := writes[i].Key
		if key.Partition != writes[0].Key.Partition {
			e := Invalidf("", "change %d is in another partition than change 1; all changes of a transaction must be in one", i+1)
			e.Key, e.Change = Loggable(rows.Open, key), i+1
			return e
		}
		if first, twice := seen[key.Row]; twice {
			e := Invalidf("", "changes %d and %d are of the same row; a transaction may change a row only once", first+1, i+1)
			e.Key, e.Change = Loggable(rows.Open, key), i+1
			return writes[i].explain(e)
		}
		seen[key.Row] = i
	}
	return nil
}

// resolve finds out the outcome of a write if the response to it, or to an earlier attempt, was lost. A row
// with this write's ID proves that all of it was applied. resolve can rarely prove that nothing was applied:
// a request may still be on its way, and another writer may have overwritten the rows.
func (t *Table) resolve(ctx context.Context, writes []RawWrite, enc *encoded, r reply) ([]azcore.ETag, *Error) {
	if !r.unknown && isFinal(r.err) {
		return nil, r.err
	}
	if !r.unknown && errors.Is(r.err.Kind, ErrBeingDeleted) {
		return nil, unknown(r.err, nil) // there is no row to read
	}
	witnesses := submission.Witnesses(enc.operations, enc.marked, r.err.Change, r.unknown)
	if len(witnesses) == 0 {
		return t.resolveUnmarked(ctx, writes, r)
	}
	var first error
	for i, witness := range witnesses {
		row, err := t.readRow(ctx, writes[witness].Key)
		if err == nil && row.WriteID == enc.writeID {
			return t.learnETags(ctx, writes, enc, witness, row.ETag), nil
		}
		if i == 0 {
			first = err
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, unknown(r.err, err)
		}
	}
	return nil, unknown(r.err, first)
}

// isFinal reports whether a refusal applies to every attempt, so that no earlier one was applied: the service never
// accepts such a row. A refusal without a code is not final: a gateway may have sent it, and an earlier attempt may
// have passed that gateway. A missing table, or one being deleted, is not final either: the table may be created
// while an earlier attempt is on its way.
func isFinal(refusal *Error) bool {
	return refusal.Code != "" && (errors.Is(refusal.Kind, ErrInvalid) || errors.Is(refusal.Kind, ErrTooLarge))
}

// unknown returns the error of an unknown outcome. Its kind is never that of a rejection, such as EntityAlreadyExists: an earlier
// attempt of this write may have been applied.
func unknown(cause *Error, readErr error) *Error {
	e := *cause
	e.Kind = ErrUnknownOutcome
	if read := asError(readErr); read != nil && read.Err != nil {
		readErr = read.Err // without its kind, which says nothing about the write
	}
	e.Err = errors.Join(cause.Err, readErr)
	return &e
}

// resolveUnmarked is resolve for deletes, and for rows that had no room for the write ID.
func (t *Table) resolveUnmarked(ctx context.Context, writes []RawWrite, r reply) ([]azcore.ETag, *Error) {
	for i := range writes {
		if writes[i].Verb != wire.VerbDelete {
			return nil, unknown(r.err, nil)
		}
	}
	for i := range writes {
		// If the row is missing, the delete has reached its aim, whoever deleted the row. A row that still
		// exists proves nothing: the delete may still be on its way.
		if _, err := t.readRow(ctx, writes[i].Key); !errors.Is(err, ErrNotFound) {
			return nil, unknown(r.err, err)
		}
	}
	return make([]azcore.ETag, len(writes)), nil
}

// learnETags reads the ETags that the lost response held. The ETag of a row that another writer has changed since
// stays empty.
func (t *Table) learnETags(ctx context.Context, writes []RawWrite, enc *encoded, witness int, etag azcore.ETag) []azcore.ETag {
	etags := make([]azcore.ETag, len(writes))
	etags[witness] = etag
	for i := range writes {
		if i == witness || !enc.marked[i] {
			continue
		}
		if row, err := t.readRow(ctx, writes[i].Key); err == nil && row.WriteID == enc.writeID {
			etags[i] = row.ETag
		}
	}
	return etags
}
