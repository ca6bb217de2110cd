package driver

import (
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FailedQuery returns a query of which Plan, and every method that would send it, returns err. A pattern's method that returns a query
// returns this one if the pattern was not given to a repository, so that its callers can chain.
func FailedQuery[T any](err error) tables.Query[T] {
	return tables.QueryOf[T](rows.Open, &tables.Source{Err: err})
}
