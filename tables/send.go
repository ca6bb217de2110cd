package tables

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/submission"
)

// reply is a submission.Reply with an *Error as its error.
type reply struct {
	etags   []azcore.ETag
	err     *Error // nil on success
	unknown bool   // no response that can be trusted
	earlier bool   // an attempt before the one with the response may have been applied
}

// send makes the one request of a write, and lets the SDK repeat it.
func (t *Table) send(ctx context.Context, enc *encoded) reply {
	answer := t.target().Send(ctx, enc.operations, enc.writeID)
	r := reply{etags: answer.ETags, unknown: answer.Unknown, earlier: answer.Earlier}
	switch {
	case answer.Err == nil:
	case answer.Refused != nil:
		f := answer.Refused
		r.err = &Error{Change: f.Index + 1, Code: f.Code, Kind: refusals.OfTable(f.Status, f.Code), Err: answer.Err}
		if f.Index >= 0 {
			r.err.Key = Key{enc.operations[f.Index].Address.PartitionKey, enc.operations[f.Index].Address.RowKey}
		}
	case len(enc.operations) == 1:
		r.err = writeFailure(answer.Err, Key{enc.operations[0].Address.PartitionKey, enc.operations[0].Address.RowKey})
	default:
		r.err = writeFailure(answer.Err, Key{})
	}
	return r
}

func (t *Table) target() submission.Target {
	return submission.Target{Client: t.client, Endpoint: t.account.endpoints.Table, Cosmos: t.account.cosmos}
}

// measure returns the number of bytes of the request's body, and which rows carry the write ID. It returns an error if the writes are
// too large for one transaction. It sends nothing.
func (t *Table) measure(writes []RawWrite) (body int, marked []bool, e *Error) {
	enc, e := encode(t.name, writes, rowwriter.AnyWriteID)
	if e != nil {
		return 0, nil, e
	}
	body, err := t.target().Size(enc.operations, enc.writeID)
	if err != nil {
		return 0, nil, Invalid("", err)
	}
	return body, enc.marked, nil
}

// writeFailure is failure for a write. The caller replaces its kind by ErrUnknownOutcome if the write may have been applied.
func writeFailure(err error, key Key) *Error {
	if _, ok := errors.AsType[*edm.SizeError](err); ok {
		return Invalid("", err)
	}
	return asError(failure("", "", key, err))
}
