package request

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// The rules of this file are stateless. Package screen also checks them, in front of a service that does not
// check them itself.

// CheckTableName checks the name of a table: 3 to 63 letters and digits, beginning with a letter, and not Tables.
func CheckTableName(name string) *protocol.Fault {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return protocol.Refuse(http.StatusBadRequest, "InvalidResourceName", "The specifed resource name contains invalid characters.")
		}
	}
	if len(name) < 3 || len(name) > 63 {
		return protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
	}
	if protocol.SameName(name, "tables") {
		return protocol.InvalidInput("One of the request inputs is not valid.")
	}
	return nil
}

// checkFilter parses a $filter and checks the rules for it.
func checkFilter(text string) (odata.Expr, *protocol.Fault) {
	e, err := odata.Parse(text)
	if err != nil && odata.Unimplemented(text) {
		return nil, notImplemented()
	}
	if err != nil {
		return nil, protocol.InvalidSyntax()
	}
	if n := odata.Comparisons(e); n > edm.MaxComparisons {
		return nil, protocol.InvalidInput(fmt.Sprintf("The filter has %d comparisons, more than the %d that are allowed.", n, edm.MaxComparisons))
	}
	return e, nil
}

func notImplemented() *protocol.Fault {
	return protocol.Refuse(http.StatusNotImplemented, "NotImplemented", "The requested operation is not implemented on the specified resource.")
}
