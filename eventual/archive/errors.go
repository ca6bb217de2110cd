package archive

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// invalidf is the error of bad input, before any request.
func invalidf(op, resource, format string, args ...any) error {
	return &tables.Error{Op: op, Table: resource, Kind: tables.ErrInvalid, Err: fmt.Errorf(format, args...)}
}

// failure turns the error of a request about a blob into a tables.Error. It gives no kind to a condition that did not hold: the caller
// knows which condition that was.
func failure(op, name string, err error) error {
	e := tables.ServiceError(op, name, err)
	switch {
	case e.Code == "BlobAlreadyExists":
		e.Kind = tables.ErrExists
	case e.Code == "RequestBodyTooLarge":
		e.Kind = tables.ErrTooLarge
	case wire.IsStatus(err, http.StatusPreconditionFailed):
		e.Kind = nil
	}
	return e
}
