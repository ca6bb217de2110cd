package driver

import (
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FailedQuery returns a query of which Plan, and every method that would send it, returns err. A method that
// returns a query returns a FailedQuery if its pattern was not given to a repository, so that callers can
// chain methods without a nil check.
func FailedQuery[T any](err error) tables.Query[T] {
	return tables.QueryOf[T](rows.Open, &tables.Source{Err: err})
}
