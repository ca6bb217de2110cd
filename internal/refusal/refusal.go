// Package refusal maps a failed request to a kind of error: the status and the error code of the service's response, or, if there was no
// response, the reason for that.
package refusal

import (
	"errors"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Kinds holds the kinds of errors of package tables, which imports this package and so cannot be imported here.
type Kinds struct {
	NotFound, Exists, Conflict, TooLarge, Invalid, MissingResource, BeingDeleted, Denied, Unavailable, Garbled error
}

// WithoutResponse returns the kind of an error that contains no response of a service. It returns nil if the error is from the caller: the
// caller's context has ended, or a policy of the caller failed. The request must be one that did not change anything, or the caller of
// WithoutResponse must replace Unavailable by the kind for an unknown outcome.
func (k *Kinds) WithoutResponse(err error) error {
	switch {
	case errors.Is(err, wire.ErrGarbled):
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
	if kind := k.ofResource(code); kind != nil {
		return kind
	}
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
	switch status {
	case http.StatusNotFound:
		return k.NotFound
	case http.StatusConflict:
		return k.Garbled // a 409 means that the row exists or that the table is being deleted; only the code distinguishes the two, and it is missing or unknown
	case http.StatusPreconditionFailed:
		return k.Conflict
	}
	return k.ofAny(status, code)
}

// ofResource returns the kind for a code that concerns a table, queue or container as a whole, or nil for any
// other code.
func (k *Kinds) ofResource(code string) error {
	switch code {
	case "TableNotFound", "QueueNotFound", "ContainerNotFound":
		return k.MissingResource
	case "TableBeingDeleted", "QueueBeingDeleted", "ContainerBeingDeleted":
		return k.BeingDeleted
	}
	return nil
}

// ofAny translates the responses that have the same meaning for all three services. The services do not send other statuses, so any other
// response comes from a proxy, or the endpoint is not a storage service.
func (k *Kinds) ofAny(status int, code string) error {
	switch {
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
	return k.Garbled
}

// OfService returns the kind for status and code of a response of the queue or the blob service, for which
// the status is enough.
func (k *Kinds) OfService(status int, code string) error {
	if kind := k.ofResource(code); kind != nil {
		return kind
	}
	switch status {
	case http.StatusNotFound:
		return k.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return k.Conflict
	}
	return k.ofAny(status, code)
}
