package core

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Commit is the one write path: every row that this library ever writes goes through it. It sends one operation as a
// single request, and several as one entity group transaction, which the service applies whole or not at all.
//
// The error is nil if all operations were applied, ErrUnknownOutcome if the outcome is unknown, and any other error if
// none was applied. Commit returns an ETag for every row that it did not delete. After a lost response, the ETag of a
// row is empty if the row could not be read back, has no write ID, or was changed by another writer before it was read
// back.
//
// The rows that have room for it carry id, which no other write has.
func (t *Table) Commit(ctx context.Context, op string, writes ...tablerow.Row) (etags []azcore.ETag, id string, err error) {
	return t.CommitWithin(ctx, Bounds{}, op, writes...)
}

// Bounds limit how the request of a write is sent; the zero value sets no limit. The reads that find out the outcome of a lost response
// are not limited.
type Bounds struct {
	Term lease.Term // no attempt is sent after it has ended
	Once bool       // no attempt follows one with an unknown outcome
}

// CommitWithin does what Commit does, within bounds.
func (t *Table) CommitWithin(ctx context.Context, bounds Bounds, op string, writes ...tablerow.Row) (etags []azcore.ETag, id string, err error) {
	ctx, span := (&Source{Table: t}).begin(ctx, op)
	id = tablerow.NewWriteID()
	etags, e := t.tryCommit(ctx, bounds, writes, id)
	if e == nil {
		span.End(nil)
		return etags, id, nil
	}
	defer func() { span.End(e) }()
	t.failed(ctx, e)
	e.Op, e.Table = op, t.name
	failed := e.Change
	if len(writes) == 1 {
		failed, e.Change = 1, 0
		if e.Key == (entity.Key{}) {
			e.Key = errs.Loggable(writes[0].Key)
		}
	}
	if failed > 0 && failed <= len(writes) {
		writes[failed-1].Explain(e)
	}
	return nil, id, e
}

// failed reports a failed request to telemetry: it logs a missing table, and counts a conflict or an insert of an
// existing row.
func (t *Table) failed(ctx context.Context, err error) {
	signals, e := t.account.Telemetry(), errs.Of(err)
	if signals == nil || e == nil {
		return
	}
	switch entity.KindOf(e) {
	case entity.ErrMissingResource:
		signals.Missing(ctx, "tables", t.name)
	case entity.ErrConflict, entity.ErrExists:
		signals.Count(ctx, telemetry.Conflicts, 1, telemetry.AttrTable, t.name, telemetry.AttrOutcome, explain(e).Outcome)
	}
}

func (t *Table) tryCommit(ctx context.Context, bounds Bounds, writes []tablerow.Row, writeID string) ([]azcore.ETag, *entity.Error) {
	if err := t.Usable(); err != nil {
		return nil, errs.Wiringf("", "", "%w", err)
	}
	if e := CheckWrites(writes); e != nil {
		return nil, e
	}
	r, e := t.encode(writes, writeID)
	if e != nil {
		return nil, e
	}
	if err := pace.Rows(ctx, len(writes)); err != nil {
		return nil, &entity.Error{Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, &entity.Error{Err: err}
	}
	bounded, done := bounds.Term.Context(ctx)
	defer done()
	sent := t.send(bounded, r, bounds.Once)
	if sent.refused == nil {
		return sent.etags, nil
	}
	if !sent.unknown && !sent.earlier {
		if late := context.Cause(bounded); late != nil && ctx.Err() == nil {
			return nil, &entity.Error{Kind: entity.ErrUnavailable, Err: late}
		}
		return nil, sent.refused
	}
	return t.resolve(ctx, r, sent.refused, sent.unknown)
}

// CheckWrites refuses writes that break the rules of an entity group transaction.
func CheckWrites(writes []tablerow.Row) *entity.Error {
	if len(writes) == 0 {
		return errs.Invalidf("", "the transaction has no operations; add at least one")
	}
	if len(writes) > entity.MaxTransactionOperations {
		return errs.Invalid("", &edm.SizeError{What: "a transaction", Size: len(writes), Limit: entity.MaxTransactionOperations, Unit: "operations"})
	}
	if len(writes) == 1 {
		return nil
	}
	seen := make(map[string]int, len(writes))
	for i := range writes {
		key := writes[i].Key
		if key.Partition != writes[0].Key.Partition {
			e := errs.Invalidf("", "change %d is in another partition than change 1; all changes of a transaction must be in one", i+1)
			e.Key, e.Change = errs.Loggable(key), i+1
			return e
		}
		if first, twice := seen[key.Row]; twice {
			e := errs.Invalidf("", "changes %d and %d are of the same row; a transaction may change a row only once", first+1, i+1)
			e.Key, e.Change = errs.Loggable(key), i+1
			return writes[i].Explain(e)
		}
		seen[key.Row] = i
	}
	return nil
}

// resolve determines the outcome of a write after a lost response: to its last attempt (unanswered), or to an attempt
// before the one that the service refused. A row with this write's ID proves that the whole write was applied. resolve
// can rarely prove that nothing was applied: a request may still be on its way, and another writer may have overwritten
// the rows.
func (t *Table) resolve(ctx context.Context, r *request, refused *entity.Error, unanswered bool) ([]azcore.ETag, *entity.Error) {
	if !unanswered && isFinal(refused) {
		return nil, refused
	}
	if !unanswered && errors.Is(refused.Kind, entity.ErrBeingDeleted) {
		return nil, unknown(refused, nil) // there is no row to read
	}
	witnesses := r.witnesses(refused.Change, unanswered)
	if len(witnesses) == 0 {
		return t.resolveUnmarked(ctx, r.writes, refused)
	}
	var first error
	for i, witness := range witnesses {
		row, err := t.readRow(ctx, r.writes[witness].Key)
		if err == nil && row.WriteID == r.body.ID {
			return t.learnETags(ctx, r, witness, row.ETag), nil
		}
		if i == 0 {
			first = err
		}
		if err != nil && !errors.Is(err, entity.ErrNotFound) {
			return nil, unknown(refused, err)
		}
	}
	return nil, unknown(refused, first)
}

// isFinal reports whether the service refuses the row in every attempt, so that no earlier attempt was applied. A refusal
// without a code is not final, since a gateway may have sent it. A missing table is not final either: it may be created while an
// earlier attempt is on its way.
func isFinal(e *entity.Error) bool {
	return e.Code != "" && (errors.Is(e.Kind, entity.ErrInvalid) || errors.Is(e.Kind, entity.ErrTooLarge))
}

// unknown returns the error of an unknown outcome. It hides the kind of a refusal, such as ErrExists: the row that exists may be
// from an earlier attempt of this write.
func unknown(cause *entity.Error, readErr error) *entity.Error {
	e := *cause
	e.Kind = entity.ErrUnknownOutcome
	if read := errs.Of(readErr); read != nil && read.Err != nil {
		readErr = read.Err // without its kind, which says nothing about the write
	}
	e.Err = errors.Join(cause.Err, readErr)
	return &e
}

// resolveUnmarked does the work of resolve if no row of the write carries its ID: for deletes, and for rows without
// room for the ID.
func (t *Table) resolveUnmarked(ctx context.Context, writes []tablerow.Row, refused *entity.Error) ([]azcore.ETag, *entity.Error) {
	for i := range writes {
		if writes[i].Verb != wire.VerbDelete {
			return nil, unknown(refused, nil)
		}
	}
	for i := range writes {
		// If the row is missing, the delete counts as applied, whoever deleted the row. A row that still exists proves
		// nothing: the delete may still be on its way.
		if _, err := t.readRow(ctx, writes[i].Key); !errors.Is(err, entity.ErrNotFound) {
			return nil, unknown(refused, err)
		}
	}
	return make([]azcore.ETag, len(writes)), nil
}

// learnETags reads the rows for the ETags that the lost response had. The ETag of a row stays empty if the row cannot
// be read, carries no write ID, or was changed by another writer since.
func (t *Table) learnETags(ctx context.Context, r *request, witness int, etag azcore.ETag) []azcore.ETag {
	etags := make([]azcore.ETag, len(r.writes))
	etags[witness] = etag
	for i := range r.writes {
		if i == witness || !r.carries[i] {
			continue
		}
		if row, err := t.readRow(ctx, r.writes[i].Key); err == nil && row.WriteID == r.body.ID {
			etags[i] = row.ETag
		}
	}
	return etags
}

// request is the one request of a write.
type request struct {
	writes  []tablerow.Row
	body    wire.Batch // of a single row only Body is set
	carries []bool     // for each row: it carries the write ID
}

// encode checks every row and encodes it.
func (t *Table) encode(writes []tablerow.Row, writeID string) (*request, *entity.Error) {
	r := &request{writes: writes, carries: make([]bool, len(writes)), body: wire.Batch{Endpoint: t.account.endpoints.Table, ID: writeID, Cosmos: t.account.cosmos}}
	hint := 0
	for i := range writes {
		hint += writes[i].Hint()
	}
	var e *entity.Error
	if len(writes) == 1 {
		if writes[0].Verb == wire.VerbDelete {
			hint = 0
		}
		if r.body.Body, r.carries[0], e = writes[0].Encode(make([]byte, 0, hint), writeID); e != nil {
			e.Change = 1
		}
		return r, e
	}
	r.body.Body = make([]byte, 0, hint+len(writes)*batchOverhead)
	var row []byte
	for i := range writes {
		w := &writes[i]
		if row, r.carries[i], e = w.Encode(row[:0], writeID); e != nil {
			e.Change = i + 1
			return nil, e
		}
		r.body.Add(w.Verb, t.address(w), string(w.IfMatch), row)
	}
	r.body.End()
	if size := len(r.body.Body); size > edm.MaxBatchBytes {
		return nil, errs.Invalid("", &edm.SizeError{What: "a transaction", Size: size, Limit: edm.MaxBatchBytes, Unit: "bytes"})
	}
	return r, nil
}

func (t *Table) address(w *tablerow.Row) wire.Address {
	return wire.Address{Table: t.name, PartitionKey: w.Key.Partition, RowKey: w.Key.Row}
}

// Measure returns the number of bytes of the request's body, and which rows carry the write ID. It returns an error if the writes are
// too large for one transaction. It sends nothing.
func (t *Table) Measure(writes []tablerow.Row) (body int, carries []bool, e *entity.Error) {
	r, e := t.encode(writes, tablerow.AnyWriteID)
	if e != nil {
		return 0, nil, e
	}
	return len(r.body.Body), r.carries, nil
}

// writeFailure does for a write what failure does for a read. The caller replaces its kind by ErrUnknownOutcome if the
// write may have been applied.
func writeFailure(err error) *entity.Error {
	if _, ok := errors.AsType[*edm.SizeError](err); ok {
		return errs.Invalid("", err)
	}
	return errs.Of(failure("", "", entity.Key{}, err))
}
