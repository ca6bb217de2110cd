// Package refusal maps the status and the error code of a service's response to a kind of error.
package refusal

import "net/http"

// Kinds holds the errors that the caller uses as kinds. OfTable and OfService return one of them.
type Kinds struct {
	NotFound, Exists, Conflict, TooLarge, Invalid, MissingResource, BeingDeleted, Denied, Unavailable, Garbled error
}

// OfTable returns the kind for status and code of a response of the table service; nil if no kind corresponds
// to them.
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

// ofAny translates the responses that have the same meaning for all three services. It returns nil for any other response.
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
	return nil
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
