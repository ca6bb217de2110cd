// Package refusal maps a failed request to a kind of error: the status and the error code of the service's response, or, if there was no
// response, the reason for that.
package refusal

import (
	"errors"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Kinds holds the kinds of errors of package tables, which imports this package and so cannot be imported here.
type Kinds struct {
	NotFound, Exists, Conflict, TooLarge, Invalid, MissingResource, BeingDeleted, Denied, Unavailable, Garbled error
}

// WithoutResponse returns the kind of an error that contains no response of a service. It returns nil if the caller's context has ended,
// or a policy of the caller failed. For a write that may have been applied, the caller of WithoutResponse must replace Unavailable by
// the kind for an unknown outcome.
func (k *Kinds) WithoutResponse(err error) error {
	switch {
	case errors.Is(err, kinds.ErrCutOff), wire.IsForeign(err):
		return k.Garbled
	case wire.NoToken(err):
		return k.Denied
	case wire.Unreachable(err):
		return k.Unavailable
	}
	return nil
}

// OfTable returns the kind for status and code of a response of the table service.
func (k *Kinds) OfTable(status int, code string) error {
	switch code {
	case "TableAlreadyExists", "EntityAlreadyExists":
		return k.Exists
	case "UpdateConditionNotSatisfied", "ConditionNotMet":
		return k.Conflict
	case "ResourceNotFound", "EntityNotFound", "EntityDoesNotExist":
		return k.NotFound
	case "EntityTooLarge", "PropertyValueTooLarge", "RequestBodyTooLarge", "TooManyProperties", "ContentLengthExceeded", "KeyValueTooLarge":
		return k.TooLarge
	}
	kind := k.OfService(status, code)
	if status == http.StatusConflict && kind == k.Conflict {
		return k.Garbled // the row may exist, or the table may be being deleted: only the code would tell which, and it is missing or unknown
	}
	return kind
}

// OfService returns the kind for status and code of a response of the queue or the blob service.
func (k *Kinds) OfService(status int, code string) error {
	switch code { // codes that concern a table, queue or container as a whole
	case "TableNotFound", "QueueNotFound", "ContainerNotFound":
		return k.MissingResource
	case "TableBeingDeleted", "QueueBeingDeleted", "ContainerBeingDeleted":
		return k.BeingDeleted
	}
	switch {
	case status == http.StatusNotFound:
		return k.NotFound
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		return k.Conflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "InvalidAuthenticationInfo":
		return k.Denied
	case status == http.StatusRequestEntityTooLarge:
		return k.TooLarge
	case status == http.StatusBadRequest, status == http.StatusMethodNotAllowed, status == http.StatusUnsupportedMediaType,
		status == http.StatusNotImplemented:
		return k.Invalid
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return k.Unavailable
	}
	return k.Garbled // the services send no other status: a proxy did, or the endpoint is not a storage service
}
