package eventual

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

func tooLargef(op, queue, format string, args ...any) error {
	return &tables.Error{Op: op, Table: queue, Kind: tables.ErrTooLarge, Err: fmt.Errorf(format, args...)}
}

// failure makes a tables.Error of a failed request, which must be a read or a write whose outcome does not
// matter.
func failure(op, resource string, err error) error {
	if err == nil {
		return nil
	}
	e := tables.ServiceError(op, resource, err)
	if kind := kindOf(e.Code); kind != nil {
		e.Kind = kind
	} else if wire.IsStatus(err, http.StatusPreconditionFailed) {
		e.Kind = nil // only the caller knows which condition failed
	}
	return e
}

// writeFailure converts the error of a write as failure does, but with the kind ErrUnknownOutcome if an attempt may have been applied.
func writeFailure(op, resource string, err error, ex *wire.Exchange) error {
	if err == nil {
		return nil
	}
	e := failure(op, resource, err)
	if ex.Lost() || ex.EarlierUnknown() {
		e.(*tables.Error).Kind = tables.ErrUnknownOutcome
	}
	return e
}

// kindOf returns the kind of a service code that says more than the HTTP status; for other codes it returns
// nil.
func kindOf(code string) error {
	switch code {
	case "QueueAlreadyExists", "ContainerAlreadyExists", "BlobAlreadyExists":
		return tables.ErrExists
	case "MessageTooLarge", "RequestBodyTooLarge":
		return tables.ErrTooLarge
	}
	return nil
}
