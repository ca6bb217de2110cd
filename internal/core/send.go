package core

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// sent is the outcome of a request as far as the service's response shows it.
type sent struct {
	etags   []azcore.ETag
	refused *entity.Error // nil on success; its cause is of kind kinds.ErrCutOff for an invalid response
	unknown bool          // the last attempt may have been applied: its response is missing, invalid, or does not show the outcome
	earlier bool          // an attempt before the last one may have been applied
}

const (
	jsonContent = "application/json"
	stubEntity  = `{"PartitionKey":"` + wire.StubKey + `","RowKey":"` + wire.StubKey + `"}`
)

// send makes the one request of a write, and lets the SDK repeat it.
func (t *Table) send(ctx context.Context, r *request, once bool) sent {
	ex := wire.Exchange{Body: r.body.Body, ContentType: jsonContent, Once: once}
	var err error
	var etags []string
	if len(r.writes) == 1 {
		err = t.sendRow(wire.With(ctx, &ex), &ex, r)
		etags = []string{ex.Header.Get("ETag")}
	} else {
		ex.ContentType, ex.Table = r.body.ContentType(), t.name
		stub := []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: []byte(stubEntity)}}
		_, err = t.client.SubmitTransaction(wire.With(ctx, &ex), stub, nil)
	}
	out := sent{earlier: ex.EarlierUnknown()}
	if err != nil {
		out.refused, out.unknown = writeFailure(err), ex.Lost()
		return out
	}
	if len(r.writes) > 1 {
		answer, err := wire.ParseBatchAnswer(ex.Header.Get("Content-Type"), ex.Answer, len(r.writes))
		if err != nil {
			out.refused, out.unknown = writeFailure(err), true
			return out
		}
		if f := answer.Failure; f != nil {
			out.refused, out.unknown = r.refusal(f), wire.OutcomeOfStatus(f.Status, f.Code) == wire.OutcomeUnknown
			return out
		}
		etags = answer.ETags
	}
	out.etags = make([]azcore.ETag, len(etags))
	for i, etag := range etags {
		if r.writes[i].Verb != wire.VerbDelete && !wire.IsETag(etag) {
			// The response was damaged on its way; the caller must read the rows to find out the outcome.
			out.etags, out.refused, out.unknown = nil, writeFailure(rowreader.Garbled(rowreader.ErrNoETag)), true
			return out
		}
		out.etags[i] = azcore.ETag(etag)
	}
	return out
}

// sendRow writes a single row.
func (t *Table) sendRow(ctx context.Context, ex *wire.Exchange, r *request) (err error) {
	w := &r.writes[0]
	address := t.address(w)
	var ifMatch *azcore.ETag
	if w.IfMatch != "" {
		ifMatch = &w.IfMatch
	}
	switch w.Verb {
	case wire.VerbInsert:
		ex.NoContent = true
		_, err = t.client.AddEntity(ctx, []byte(stubEntity), nil)
	case wire.VerbDelete:
		ex.Entity, ex.Body = &address, nil
		_, err = t.client.DeleteEntity(ctx, wire.StubKey, wire.StubKey, &aztables.DeleteEntityOptions{IfMatch: ifMatch})
	default:
		ex.Entity = &address
		mode := aztables.UpdateModeReplace
		if w.Verb == wire.VerbMerge {
			mode = aztables.UpdateModeMerge
		}
		if ifMatch == nil {
			_, err = t.client.UpsertEntity(ctx, []byte(stubEntity), &aztables.UpsertEntityOptions{UpdateMode: mode})
		} else {
			_, err = t.client.UpdateEntity(ctx, []byte(stubEntity), &aztables.UpdateEntityOptions{IfMatch: ifMatch, UpdateMode: mode})
		}
	}
	return err
}

// refusal returns the error of a transaction that the service refused.
func (r *request) refusal(f *wire.BatchFailure) *entity.Error {
	e := &entity.Error{Change: f.Index + 1, Code: f.Code, Kind: refusal.Of(f.Status, f.Code), Err: responseError(f)}
	if f.Index >= 0 {
		e.Key = r.writes[f.Index].Key
	}
	return e
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

// witnesses chooses the rows to read after a lost response: rows that have the write ID if the write was applied. The row of the
// refused operation, counted from 1, comes first, then inserted rows, which other writers overwrite least. After a refusal it
// chooses all rows, since another writer may have overwritten any of them.
func (r *request) witnesses(refused int, unanswered bool) []int {
	rank := func(i int) int {
		switch {
		case i+1 == refused:
			return 0
		case r.writes[i].Verb == wire.VerbInsert:
			return 1
		}
		return 2
	}
	var chosen []int
	for i, carries := range r.carries {
		if carries {
			chosen = append(chosen, i)
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return rank(a) - rank(b) })
	if unanswered {
		chosen = chosen[:min(len(chosen), unansweredWitnesses)]
	}
	return chosen
}
