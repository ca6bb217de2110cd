package driver

import (
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Invalid returns the error for bad input that was found before any request: ErrInvalid, or ErrTooLarge if err says that a limit of the
// service is exceeded. If err already has a kind, the result has that kind. So the errors of a pattern have the form of all others.
func Invalid(op string, err error) *tables.Error { return errs.Invalid(op, err) }

// Wiringf returns the error for a wrong program or configuration that was found before any request: ErrWiring. resource is a table,
// queue, container or blob, or "".
func Wiringf(op, resource, format string, args ...any) *tables.Error {
	return errs.Wiringf(op, resource, format, args...)
}
