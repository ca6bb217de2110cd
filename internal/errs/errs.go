// Package errs makes the errors that the library finds before any request: one form for all packages.
package errs

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// Invalid returns the error for bad input that was found before any request: ErrInvalid, or ErrTooLarge if
// err says that a limit of the service is exceeded. If err already has a kind, the result has that kind, even
// ErrNotFound; to get ErrInvalid anyway, wrap err with %v.
func Invalid(op string, err error) *entity.Error {
	kind := entity.ErrInvalid
	if _, ok := errors.AsType[*edm.SizeError](err); ok {
		kind = entity.ErrTooLarge
	}
	if of := entity.KindOf(err); of != nil {
		kind = of
	}
	return &entity.Error{Op: op, Kind: kind, Err: err}
}

// Invalidf formats a text and returns the error that Invalid returns for it.
func Invalidf(op, format string, args ...any) *entity.Error {
	return Invalid(op, fmt.Errorf(format, args...))
}

// InvalidIn is Invalidf with Error.Table set to resource: the name of a table, queue, container or blob, or
// "".
func InvalidIn(op, resource, format string, args ...any) *entity.Error {
	e := Invalidf(op, format, args...)
	e.Table = resource
	return e
}

// Wiringf returns the error for a wrong program or configuration that was found before any request. Its kind
// is ErrWiring, whatever the cause. resource is a table, queue, container or blob, or "".
func Wiringf(op, resource, format string, args ...any) *entity.Error {
	return &entity.Error{Op: op, Table: resource, Kind: entity.ErrWiring, Err: fmt.Errorf(format, args...)}
}

// Of returns the *entity.Error in err, nil for none.
func Of(err error) *entity.Error {
	var e *entity.Error
	errors.As(err, &e)
	return e
}

// Amend returns a copy of err that edit has changed, or err itself if it is no *entity.Error. It does not change an *entity.Error that err
// wraps.
func Amend(err error, edit func(*entity.Error)) error {
	e, ok := err.(*entity.Error)
	if !ok {
		return err
	}
	amended := *e
	edit(&amended)
	return &amended
}

// Loggable returns the key, or the zero Key if the key is illegal, since an illegal key could be a whole document.
func Loggable(key entity.Key) entity.Key {
	if rows.CheckKeys(key.Partition, key.Row) != nil {
		return entity.Key{}
	}
	return key
}
