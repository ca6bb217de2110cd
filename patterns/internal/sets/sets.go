// Package sets has what jobs that write entities in sets share.
package sets

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Ends reports whether the error of a set would be that of each smaller set too, so that the job ends.
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
