package eventual

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// What can go wrong with a queue as such, for errors.Is. All other kinds are those of package patterns.
var (
	// ErrQueueNotFound: a storage queue, or the container of the large bodies, is not there; Create makes them.
	ErrQueueNotFound = errors.New("queue not found")
	// ErrQueueBeingDeleted: a queue or container of this name was dropped; the name is taken for some 40 seconds or more.
	ErrQueueBeingDeleted = errors.New("queue is being deleted")
)

// invalidf is the error of bad input, before any request.
func invalidf(op, queue, format string, args ...any) error {
	return &patterns.Error{Op: op, Table: queue, Index: -1, Kind: patterns.ErrInvalid, Err: fmt.Errorf(format, args...)}
}

func tooLargef(op, queue, format string, args ...any) error {
	return &patterns.Error{Op: op, Table: queue, Index: -1, Kind: patterns.ErrTooLarge, Err: fmt.Errorf(format, args...)}
}

// failure turns the error of a request that changes nothing, or whose outcome does not matter, into a patterns.Error.
func failure(op, resource string, err error) error {
	if err == nil {
		return nil
	}
	e := &patterns.Error{Op: op, Table: resource, Index: -1, Err: wire.Redact(err)}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		e.Code = answer.ErrorCode
		e.Kind = kindOf(answer.StatusCode, e.Code)
	}
	return e
}

// writeFailure is failure for a write: where an attempt may have been applied, that is the kind.
func writeFailure(op, resource string, err error, ex *wire.Exchange) error {
	if err == nil {
		return nil
	}
	e := failure(op, resource, err)
	if ex.Lost() || ex.EarlierUnknown() {
		e.(*patterns.Error).Kind = patterns.ErrUnknownOutcome
	}
	return e
}

// kindOf translates status and code of an answer; nil for what has no meaning of its own.
func kindOf(status int, code string) error {
	switch code {
	case "QueueNotFound", "ContainerNotFound":
		return ErrQueueNotFound
	case "QueueBeingDeleted", "ContainerBeingDeleted":
		return ErrQueueBeingDeleted
	case "QueueAlreadyExists", "ContainerAlreadyExists", "BlobAlreadyExists":
		return patterns.ErrExists
	case "MessageTooLarge", "RequestBodyTooLarge":
		return patterns.ErrTooLarge
	}
	switch {
	case status == http.StatusNotFound:
		return patterns.ErrNotFound
	case status == http.StatusConflict:
		return patterns.ErrConflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return patterns.ErrDenied
	case status == http.StatusBadRequest:
		return patterns.ErrInvalid
	case status == http.StatusRequestEntityTooLarge:
		return patterns.ErrTooLarge
	case status == http.StatusTooManyRequests, status >= 500:
		return patterns.ErrUnavailable
	}
	return nil
}

// hasCode reports whether err is an answer of the service with one of these codes.
func hasCode(err error, codes ...string) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.ErrorCode == code {
			return true
		}
	}
	return false
}

// isStatus reports whether err is an answer of the service with this status. Answers to HEAD carry no code.
func isStatus(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}
