// Package kinds has the kinds of errors, and ensures that an error matches only one: an error that has a kind hides the kinds of its
// causes.
package kinds

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// The kinds. Package tables describes them.
var (
	ErrUnknownOutcome   = errors.New("unknown whether applied")
	ErrNotFound         = errors.New("not found")
	ErrMissingReference = errors.New("an entity that this one refers to does not exist")
	ErrExists           = errors.New("already exists")
	ErrConflict         = errors.New("changed by another writer")
	ErrDuplicate        = errors.New("index key is taken")
	ErrTooLarge         = errors.New("too large")
	ErrInvalid          = errors.New("invalid")
	ErrWiring           = errors.New("wrong use of the library")
	ErrTableScan        = errors.New("would scan the table")
	ErrMissingResource  = errors.New("missing table, queue or container")
	ErrBeingDeleted     = errors.New("being deleted")
	ErrRefused          = errors.New("refused in the present state of the resource")
	ErrDenied           = errors.New("access denied")
	ErrUnavailable      = errors.New("service unavailable")
	ErrGarbled          = errors.New("unreadable response or stored data")

	// all lists the kinds; Of prefers earlier ones.
	all = []error{ErrUnknownOutcome, ErrNotFound, ErrMissingReference, ErrExists, ErrConflict, ErrDuplicate, ErrTooLarge, ErrInvalid, ErrWiring, ErrTableScan, ErrMissingResource, ErrBeingDeleted, ErrRefused, ErrDenied, ErrUnavailable, ErrGarbled}
)

// ErrCutOff is the cause of an error, and no kind: a response is truncated or cannot be parsed, so the outcome of a write is unknown.
var ErrCutOff = errors.New("the response is cut off or was changed on its way")

// ErrForeign is the cause of an error, and no kind: a response is a redirect, or is from another host than the one that was asked.
var ErrForeign = errors.New("the response is not from the endpoint")

// Of returns the kind of err, nil for none. Joined errors can match several kinds; then Of returns the one that is listed first.
func Of(err error) error {
	first := len(all)
	visit(err, &first)
	if first == len(all) {
		return nil
	}
	return all[first]
}

// visit lowers first to the index of the first kind that err matches. It visits each cause once for all kinds, while errors.Is
// would search all causes again for each kind.
func visit(err error, first *int) {
	if err == nil {
		return
	}
	is, _ := err.(interface{ Is(error) bool })
	for i, kind := range all[:*first] {
		if err == kind || is != nil && is.Is(kind) {
			*first = i
			break
		}
	}
	switch causes := err.(type) {
	case interface{ Unwrap() error }:
		visit(causes.Unwrap(), first)
	case interface{ Unwrap() []error }:
		for _, cause := range causes.Unwrap() {
			visit(cause, first)
		}
	}
}

// Check returns an error if err matches more than one kind. Each error of an errors.Join may have a kind of its own.
func Check(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && fmt.Sprintf("%T", err) == "*errors.joinError" {
		var wrong []error
		for _, one := range joined.Unwrap() {
			wrong = append(wrong, Check(one))
		}
		return errors.Join(wrong...)
	}
	var matched []error
	for _, kind := range all {
		if errors.Is(err, kind) {
			matched = append(matched, kind)
		}
	}
	if len(matched) > 1 {
		return fmt.Errorf("an error must have one kind, and this one matches %q: %v", matched, err)
	}
	return nil
}

// Hide returns an error that matches all errors that the cause matches, except the kinds.
func Hide(cause error) error { return hidden{cause} }

// hidden has no Unwrap, so errors.Is and errors.As can only ask its methods.
type hidden struct{ cause error }

// Error returns the text of the cause.
func (h hidden) Error() string { return h.cause.Error() }

// Is reports whether the cause matches target. It returns false for every kind.
func (h hidden) Is(target error) bool {
	return !slices.Contains(all, target) && errors.Is(h.cause, target)
}

// As finds whatever errors.As finds in the cause.
func (h hidden) As(target any) bool { return errors.As(h.cause, target) }

// Brief returns the text of an error, or "" for nil. For a response of the service it returns only the status, because the
// SDK's text has many lines.
func Brief(err error) string {
	var response *azcore.ResponseError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &response):
		text := fmt.Sprintf("status %d", response.StatusCode)
		if why := (interface{ Reason() string })(nil); errors.As(err, &why) && why.Reason() != "" {
			text += ": " + why.Reason()
		}
		return text
	}
	return err.Error()
}

// ErrForeignClient means that blobstorage.Container did not make the client. Requests of another client are not recorded, and are sent even
// after the lease of an intent is lost.
var ErrForeignClient = errors.New("the container's client was not made by blobstorage.Container; use that")
