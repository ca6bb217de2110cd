package highvolumedelete

import (
	"errors"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// The causes for which this package refuses a write. The error has kind tables.ErrInvalid, and nothing was
// written.
var (
	// ErrLate: the entity's period ended longer ago than Schema.Late allows, or its table was dropped or is
	// being dropped. If an earlier attempt got no response and arrives late, it finds no table, or its row is
	// dropped with the table.
	ErrLate = errors.New("the period is closed")
	// ErrEarly: the entity's period is further ahead than Schema.Early allows.
	ErrEarly = errors.New("the period is too far in the future")
)

// noTable reports whether the period's own table does not exist: it was not created yet, or it was dropped.
// It returns false for other tables of a pattern. A 404 response without a code counts as a missing table.
func noTable(err error, table string) bool {
	var e *tables.Error
	if !errors.As(err, &e) || e.Table != table {
		return false
	}
	return errors.Is(err, tables.ErrMissingResource) || beingDeleted(err) || e.Code == codeTableNotFound ||
		errors.Is(err, tables.ErrNotFound) && e.Code == "" && e.Err != nil
}

// The service's codes for a table that does not exist. An error of kind ErrUnknownOutcome also has one of
// these codes, if an earlier attempt may still arrive.
const (
	codeTableNotFound = "TableNotFound"
	codeBeingDeleted  = "TableBeingDeleted"
)

// beingDeleted reports whether the service is deleting the table.
func beingDeleted(err error) bool {
	var e *tables.Error
	return errors.Is(err, tables.ErrBeingDeleted) || errors.As(err, &e) && e.Code == codeBeingDeleted
}

// listFailure converts the error of a request that lists tables.
func listFailure(err error) error {
	e := tables.ServiceError("List", "", err)
	if e.Code == "" && strings.Contains(err.Error(), "unmarshalling type") { // the SDK returns this error for a damaged response
		e.Kind = tables.ErrGarbled
	}
	return e
}
