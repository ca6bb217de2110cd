package tables

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// reply is what became of a write as far as the service said.
type reply struct {
	etags   []azcore.ETag
	err     *Error // nil on success
	unknown bool   // no answer that can be trusted
	earlier bool   // an attempt before the one that was answered may have been applied
}

// send makes the one request of a write, and lets the SDK repeat it.
func (t *Table) send(ctx context.Context, enc *encoded) reply {
	if len(enc.operations) == 1 {
		return t.sendSingle(ctx, &enc.operations[0])
	}
	return t.sendBatch(ctx, enc)
}

const (
	jsonContent = "application/json"
	stubEntity  = `{"PartitionKey":"` + wire.StubKey + `","RowKey":"` + wire.StubKey + `"}`
)

func (t *Table) sendSingle(ctx context.Context, op *wire.Operation) reply {
	ex := wire.Exchange{Body: op.Body, ContentType: jsonContent}
	ctx = wire.With(ctx, &ex)
	var ifMatch *azcore.ETag
	if op.IfMatch != "" {
		etag := azcore.ETag(op.IfMatch)
		ifMatch = &etag
	}
	var err error
	switch op.Verb {
	case wire.VerbInsert:
		ex.NoContent = true
		_, err = t.client.AddEntity(ctx, []byte(stubEntity), nil)
	case wire.VerbDelete:
		ex.Entity = &op.Address
		_, err = t.client.DeleteEntity(ctx, wire.StubKey, wire.StubKey, &aztables.DeleteEntityOptions{IfMatch: ifMatch})
	default:
		ex.Entity = &op.Address
		mode := aztables.UpdateModeReplace
		if op.Verb == wire.VerbMerge {
			mode = aztables.UpdateModeMerge
		}
		if ifMatch == nil {
			_, err = t.client.UpsertEntity(ctx, []byte(stubEntity), &aztables.UpsertEntityOptions{UpdateMode: mode})
		} else {
			_, err = t.client.UpdateEntity(ctx, []byte(stubEntity), &aztables.UpdateEntityOptions{IfMatch: ifMatch, UpdateMode: mode})
		}
	}
	r := reply{earlier: ex.EarlierUnknown()}
	if err != nil {
		r.err = writeFailure(err, Key{op.Address.PartitionKey, op.Address.RowKey})
		r.unknown = ex.Lost()
		return r
	}
	return r.applied([]wire.Operation{*op}, []string{ex.Header.Get("ETag")})
}

// applied ends a reply to operations that succeeded. An answer without an ETag that belongs in it was damaged on its
// way, and the rows are read to see what it said.
func (r reply) applied(operations []wire.Operation, etags []string) reply {
	r.etags = make([]azcore.ETag, len(etags))
	for i, etag := range etags {
		if operations[i].Verb != wire.VerbDelete && !wire.IsETag(etag) {
			return reply{err: &Error{Kind: ErrGarbled, Err: rowreader.Garbled(rowreader.ErrNoETag)}, unknown: true, earlier: r.earlier}
		}
		r.etags[i] = azcore.ETag(etag)
	}
	return r
}

func (t *Table) sendBatch(ctx context.Context, enc *encoded) reply {
	batch := t.encodeBatch(enc)
	if e := checkBatch(batch); e != nil {
		return reply{err: e}
	}
	ex := wire.Exchange{Body: batch.Body, ContentType: batch.ContentType}
	stub := []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: []byte(stubEntity)}}
	_, err := t.client.SubmitTransaction(wire.With(ctx, &ex), stub, nil)
	r := reply{earlier: ex.EarlierUnknown()}
	if err != nil {
		r.err = writeFailure(err, Key{})
		r.unknown = ex.Lost()
		return r
	}
	answer, err := wire.ParseBatchAnswer(ex.Header.Get("Content-Type"), ex.Answer, len(enc.operations))
	switch {
	case err != nil:
		r.err, r.unknown = &Error{Kind: ErrGarbled, Err: err}, true
	case answer.Failure != nil:
		r.err = batchFailure(answer.Failure, enc)
		r.unknown = wire.OutcomeOfStatus(answer.Failure.Status, answer.Failure.Code) == wire.OutcomeUnknown
	default:
		return r.applied(enc.operations, answer.ETags)
	}
	return r
}

func checkBatch(batch wire.Batch) *Error {
	if len(batch.Body) > MaxTransactionSize {
		return &Error{Kind: ErrTooLarge, Err: sizeOf("a transaction", len(batch.Body), MaxTransactionSize, "bytes")}
	}
	return nil
}

// checkSize finds out whether writes are too large for one transaction without sending them.
func (t *Table) checkSize(writes []RawWrite) *Error {
	enc, e := encode(t.name, writes, anyWriteID)
	if e != nil || len(writes) == 1 {
		return e
	}
	return checkBatch(t.encodeBatch(enc))
}

func (t *Table) encodeBatch(enc *encoded) wire.Batch {
	size := 512
	for i := range enc.operations {
		size += len(enc.operations[i].Body) + 512
	}
	return wire.AppendBatch(make([]byte, 0, size), t.account.endpoints.Table, enc.writeID, t.account.cosmos, enc.operations)
}

// batchFailure makes the error of a transaction that the service answered with a failed operation. The SDK's
// ResponseError is rebuilt from the inner answer, so that callers who look for it find status and code.
func batchFailure(f *wire.BatchFailure, enc *encoded) *Error {
	e := &Error{Change: f.Index + 1, Code: f.Code, Kind: kindOf(f.Status, f.Code)}
	if f.Index >= 0 {
		e.Key = Key{enc.operations[f.Index].Address.PartitionKey, enc.operations[f.Index].Address.RowKey}
	}
	e.Err = runtime.NewResponseErrorWithErrorCode(&http.Response{
		StatusCode: f.Status, Status: fmt.Sprintf("%d %s", f.Status, http.StatusText(f.Status)), Header: http.Header{}, Body: http.NoBody,
		Request: &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/$batch"}},
	}, f.Code)
	return e
}

// writeFailure is failure for a write: what was never sent is known not to be applied.
func writeFailure(err error, key Key) *Error {
	e := asError(failure("", "", key, err))
	var dial *net.OpError
	if e.Kind == nil && errors.As(err, &dial) && dial.Op == "dial" {
		e.Kind = ErrUnavailable
	}
	return e
}
