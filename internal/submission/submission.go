// Package submission sends the one request of a write of rows: a single operation, or an entity group transaction of several. It reports
// the service's response, and whether the write, or an earlier attempt of it, may have been applied nevertheless.
package submission

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Target is the table to which the requests go.
type Target struct {
	Client   *aztables.Client
	Endpoint string // of the table service
	Cosmos   bool
}

// Reply is the outcome of a write as far as the service's response shows it.
type Reply struct {
	ETags   []azcore.ETag
	Err     error              // nil on success; of kind kinds.ErrCutOff for an invalid response
	Refused *wire.BatchFailure // set beside Err: the operation for which the service refused the transaction
	Unknown bool               // the last attempt may have been applied: its response is missing, invalid, or does not show the outcome
	Earlier bool               // an attempt before the last one may have been applied
}

const (
	jsonContent = "application/json"
	stubEntity  = `{"PartitionKey":"` + wire.StubKey + `","RowKey":"` + wire.StubKey + `"}`
)

// Send makes the request, and lets the SDK repeat it. The argument id is the ID of the write.
func (t Target) Send(ctx context.Context, operations []wire.Operation, id string) Reply {
	if len(operations) == 1 {
		return t.sendSingle(ctx, &operations[0])
	}
	batch, err := t.encode(operations, id)
	if err != nil {
		return Reply{Err: err}
	}
	ex := wire.Exchange{Body: batch.Body, ContentType: batch.ContentType, Table: operations[0].Address.Table}
	stub := []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: []byte(stubEntity)}}
	if _, err := t.Client.SubmitTransaction(wire.With(ctx, &ex), stub, nil); err != nil {
		return Reply{Err: err, Unknown: ex.Lost(), Earlier: ex.EarlierUnknown()}
	}
	answer, err := wire.ParseBatchAnswer(ex.Header.Get("Content-Type"), ex.Answer, len(operations))
	if err != nil {
		return Reply{Err: err, Unknown: true, Earlier: ex.EarlierUnknown()}
	}
	if f := answer.Failure; f != nil {
		return Reply{Err: responseError(f), Refused: f, Earlier: ex.EarlierUnknown(),
			Unknown: wire.OutcomeOfStatus(f.Status, f.Code) == wire.OutcomeUnknown}
	}
	return applied(ex.EarlierUnknown(), operations, answer.ETags)
}

func (t Target) sendSingle(ctx context.Context, op *wire.Operation) Reply {
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
		_, err = t.Client.AddEntity(ctx, []byte(stubEntity), nil)
	case wire.VerbDelete:
		ex.Entity = &op.Address
		_, err = t.Client.DeleteEntity(ctx, wire.StubKey, wire.StubKey, &aztables.DeleteEntityOptions{IfMatch: ifMatch})
	default:
		ex.Entity = &op.Address
		mode := aztables.UpdateModeReplace
		if op.Verb == wire.VerbMerge {
			mode = aztables.UpdateModeMerge
		}
		if ifMatch == nil {
			_, err = t.Client.UpsertEntity(ctx, []byte(stubEntity), &aztables.UpsertEntityOptions{UpdateMode: mode})
		} else {
			_, err = t.Client.UpdateEntity(ctx, []byte(stubEntity), &aztables.UpdateEntityOptions{IfMatch: ifMatch, UpdateMode: mode})
		}
	}
	if err != nil {
		return Reply{Err: err, Unknown: ex.Lost(), Earlier: ex.EarlierUnknown()}
	}
	return applied(ex.EarlierUnknown(), []wire.Operation{*op}, []string{ex.Header.Get("ETag")})
}

// applied returns the reply for operations that succeeded. A missing ETag means that the response was damaged on its way; the
// caller must then read the rows to find out the outcome.
func applied(earlier bool, operations []wire.Operation, etags []string) Reply {
	r := Reply{ETags: make([]azcore.ETag, len(etags)), Earlier: earlier}
	for i, etag := range etags {
		if operations[i].Verb != wire.VerbDelete && !wire.IsETag(etag) {
			return Reply{Err: rowreader.Garbled(rowreader.ErrNoETag), Unknown: true, Earlier: earlier}
		}
		r.ETags[i] = azcore.ETag(etag)
	}
	return r
}

// Size returns the number of bytes of the request's body, or an error if the operations are too large for one transaction. It
// sends nothing.
func (t Target) Size(operations []wire.Operation, id string) (int, error) {
	if len(operations) == 1 {
		return len(operations[0].Body), nil
	}
	batch, err := t.encode(operations, id)
	return len(batch.Body), err
}

func (t Target) encode(operations []wire.Operation, id string) (wire.Batch, error) {
	size := 512
	for i := range operations {
		size += len(operations[i].Body) + 512
	}
	batch := wire.AppendBatch(make([]byte, 0, size), t.Endpoint, id, t.Cosmos, operations)
	if len(batch.Body) > edm.MaxBatchBytes {
		return batch, &edm.SizeError{What: "a transaction", Size: len(batch.Body), Limit: edm.MaxBatchBytes, Unit: "bytes"}
	}
	return batch, nil
}

// responseError returns the SDK's error for an operation that failed inside of a transaction, so that callers find status and code with
// errors.As.
func responseError(f *wire.BatchFailure) error {
	return runtime.NewResponseErrorWithErrorCode(&http.Response{
		StatusCode: f.Status, Status: fmt.Sprintf("%d %s", f.Status, http.StatusText(f.Status)), Header: http.Header{}, Body: http.NoBody,
		Request: &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/$batch"}},
	}, f.Code)
}

// unansweredWitnesses is the maximum number of rows to read if there was no response: the service may be failing, and
// no read can prove that the write was not applied.
const unansweredWitnesses = 2

// Witnesses chooses the rows to read after a lost response: rows that have the write ID if the write was applied. The row of the
// refused operation, counted from 1, comes first, then inserted rows, which other writers overwrite least. After a refusal it
// chooses all rows, since another writer may have overwritten any of them.
func Witnesses(operations []wire.Operation, marked []bool, refused int, unanswered bool) []int {
	rank := func(i int) int {
		switch {
		case i+1 == refused:
			return 0
		case operations[i].Verb == wire.VerbInsert:
			return 1
		}
		return 2
	}
	var rows []int
	for i, m := range marked {
		if m {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return rank(a) - rank(b) })
	if unanswered {
		rows = rows[:min(len(rows), unansweredWitnesses)]
	}
	return rows
}
