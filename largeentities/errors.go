package largeentities

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fault makes an error of this package. blob is the blob's name, "" if there is none.
func fault(op, blob string, kind error, format string, args ...any) *tables.Error {
	return &tables.Error{Op: op, Table: blob, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// failure makes the error of a request to the blob service that is made before any pointer to the blob
// exists. Such a request has no effect on the entity, so its outcome is never reported as unknown.
func failure(op, blob string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*tables.Error](err); ok {
		return err
	}
	e := tables.ServiceError(op, blob, err)
	switch {
	case wire.HasCode(err, "ContainerNotFound"): // leave the kind ErrMissingResource
	case wire.IsStatus(err, http.StatusNotFound):
		e.Kind = tables.ErrConflict
	case wire.IsStatus(err, http.StatusRequestedRangeNotSatisfiable):
		e.Kind = tables.ErrGarbled
	}
	return e
}

// isRefused reports whether a condition of the request was not met.
func isRefused(err error) bool {
	return wire.IsStatus(err, http.StatusConflict) || wire.IsStatus(err, http.StatusPreconditionFailed)
}

// gone returns the error of a reader whose blob was deleted or replaced.
func gone(op, blob string) error {
	return fault(op, blob, tables.ErrConflict, "the blob was deleted or replaced since the entity was read; read the entity again")
}

func garbled(op, blob, format string, args ...any) error {
	return fault(op, blob, tables.ErrGarbled, format, args...)
}
