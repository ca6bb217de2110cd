package tables

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// ServiceError makes an Error of a failed request to the queue or the blob service, for packages that make such
// requests themselves. resource is the queue, the container or the blob. The kind follows from the response's status. Without a response it
// is ErrUnavailable, ErrDenied if the credential gave no token, and nil if the context has ended. The caller decides whether an attempt
// may have been applied, and then sets ErrUnknownOutcome. Secrets in err are left out.
func ServiceError(op, resource string, err error) *Error {
	e := &Error{Op: op, Table: resource, Err: wire.Redact(err)}
	var answer *azcore.ResponseError
	switch {
	case errors.As(err, &answer):
		e.Code, e.Kind = answer.ErrorCode, refusals.OfService(answer.StatusCode, answer.ErrorCode)
	case errors.Is(err, blobio.ErrForeignClient):
		e.Kind = ErrWiring
	default:
		e.Kind = refusals.WithoutResponse(err)
	}
	return e
}
