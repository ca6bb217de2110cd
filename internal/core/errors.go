package core

import (
	"cmp"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// outcomes names the kinds in spans, metrics and lines of the log.
var outcomes = map[error]string{
	entity.ErrUnknownOutcome: "unknown_outcome", entity.ErrDuplicate: "duplicate", entity.ErrMissingReference: "missing_reference",
	entity.ErrNotFound: telemetry.NotFound, entity.ErrExists: "exists", entity.ErrConflict: "conflict", entity.ErrTooLarge: "too_large",
	entity.ErrInvalid: "invalid", entity.ErrTableScan: "table_scan", entity.ErrMissingResource: "missing_resource",
	entity.ErrBeingDeleted: "being_deleted", entity.ErrRefused: "refused", entity.ErrDenied: "denied", entity.ErrUnavailable: "unavailable",
	entity.ErrGarbled: "garbled", entity.ErrWiring: "wiring",
}

// explain returns what telemetry reports about an error: its kind and where it happened, but none of its text.
func explain(err error) telemetry.Reason {
	r := telemetry.Reason{Outcome: "error"}
	if e := errs.Of(err); e != nil {
		r.Code, r.Pattern = e.Code, e.Pattern
		if rows.CheckTableName(e.Table) == nil {
			r.Table = e.Table // otherwise it may be a blob, whose name is input
		}
	}
	kind := entity.KindOf(err)
	switch {
	case kind != nil && outcomes[kind] != "":
		r.Outcome = outcomes[kind]
	case wire.HasEnded(err):
		r.Outcome = "cancelled"
	}
	return r
}

// ofRow reports whether an error is a problem of one row, which does not keep the other rows from the caller.
func ofRow(err error) bool { return errs.Of(err) != nil && errs.Of(err).OfRow }

// failure turns the error of an SDK call into an Error. The call must not have an unknown outcome: it is a read, or a
// write that got a response.
func failure(op, table string, key entity.Key, err error) error {
	if err == nil {
		return nil
	}
	e := &entity.Error{Op: op, Table: table, Key: key, Err: wire.Denied(wire.Redact(err))}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		e.Code, e.Kind = response.ErrorCode, refusal.Of(response.StatusCode, response.ErrorCode)
	}
	e.Kind = cmp.Or(refusal.WithoutResponse(err), e.Kind) // a response can be garbled and yet have a status
	return e
}

// ServiceError makes an Error of a failed request to the queue or the blob service, for packages that make such
// requests themselves. resource is the queue, the container or the blob. The kind follows from the response's error code. Without a response it
// is ErrUnavailable, ErrDenied if the credential gave no token, and nil if the context has ended. The caller decides whether an attempt
// may have been applied, and then sets ErrUnknownOutcome. Secrets in err are left out.
func ServiceError(op, resource string, err error) *entity.Error {
	e := &entity.Error{Op: op, Table: resource, Err: wire.Denied(wire.Redact(err))}
	var answer *azcore.ResponseError
	switch {
	case errors.As(err, &answer):
		e.Code, e.Kind = answer.ErrorCode, refusal.Of(answer.StatusCode, answer.ErrorCode)
	case errors.Is(err, kinds.ErrForeignClient):
		e.Kind = entity.ErrWiring
	default:
		e.Kind = refusal.WithoutResponse(err)
	}
	return e
}

// Failure makes an *Error of err, which must not be the error of a write with unknown outcome.
func Failure(err error) *entity.Error { return errs.Of(failure("", "", entity.Key{}, err)) }
