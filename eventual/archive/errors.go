package archive

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

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
