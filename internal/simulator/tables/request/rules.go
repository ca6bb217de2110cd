package simulator

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// The rules of this file need no state: they are held in front of a service that does not hold them, too.

// CheckTableName holds the rule for the name of a table: 3 to 63 letters and digits, a letter first, and not Tables.
func CheckTableName(name string) *Fault {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return refuse(http.StatusBadRequest, "InvalidResourceName", "The specifed resource name contains invalid characters.")
		}
	}
	if len(name) < 3 || len(name) > 63 {
		return refuse(http.StatusBadRequest, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
	}
	if SameName(name, "tables") {
		return faultInput("One of the request inputs is not valid.")
	}
	return nil
}

// CheckFilter parses a $filter and holds the rules for it.
func CheckFilter(text string) (odata.Expr, *Fault) {
	e, err := odata.Parse(text)
	if err != nil && odata.Unimplemented(text) {
		return nil, faultNotImplemented()
	}
	if err != nil {
		return nil, faultSyntax()
	}
	if n := odata.Comparisons(e); n > edm.MaxComparisons {
		return nil, faultInput(fmt.Sprintf("The filter has %d comparisons, more than the %d that are allowed.", n, edm.MaxComparisons))
	}
	return e, nil
}

func faultNotImplemented() *Fault {
	return refuse(http.StatusNotImplemented, "NotImplemented", "The requested operation is not implemented on the specified resource.")
}
