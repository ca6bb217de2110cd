// Package sets has functions that changes and jobs share if they write entities in sets.
package sets

import (
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Ends reports whether every smaller set would fail with the same error, so that the job must end.
func Ends(err error) bool {
	return errors.Is(err, tables.ErrUnavailable) || errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrMissingResource)
}

// Code returns the service's code of an error, "" if it has none.
func Code(err error) string {
	if e, ok := errors.AsType[*tables.Error](err); ok {
		return e.Code
	}
	return ""
}

// Lost reports whether a write was not applied because a concurrent writer came first: a row has changed, appeared or disappeared.
func Lost(err error) bool {
	return slices.Contains([]error{tables.ErrConflict, tables.ErrExists, tables.ErrNotFound}, tables.KindOf(err))
}
