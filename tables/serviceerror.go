package tables

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// ServiceError is what a failed request to the queue or the blob service is in the words of this package, for packages
// that make such requests themselves. resource is the queue, the container or the blob. The kind is the one that the status
// of the answer stands for, nil for an answer without a meaning of its own, and where there was none. Whether an attempt
// may have been applied is the caller's to judge. Secrets in err are left out.
func ServiceError(op, resource string, err error) *Error {
	e := &Error{Op: op, Table: resource, Err: wire.Redact(err)}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		e.Code, e.Kind = answer.ErrorCode, refusals.OfService(answer.StatusCode, answer.ErrorCode)
	}
	return e
}
