package tables

import (
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The service's limits, checked before any request.
const (
	MaxProperties            = edm.MaxProperties  // custom properties an entity, the library's own among them
	MaxEntitySize            = edm.MaxEntitySize  // bytes an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // UTF-16 code units a string property
	MaxBinarySize            = edm.MaxBinarySize  // bytes a binary property
	MaxTransactionOperations = edm.MaxBatchOps    // operations an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // bytes an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // entities an answer to a query
	MaxFilterComparisons     = edm.MaxComparisons // comparisons a filter
)

// CheckReserved refuses the library's own names in what the caller gives.
func CheckReserved(_ rows.Pass, properties Properties) error {
	for i := range properties {
		if strings.HasPrefix(properties[i].Name, rows.Prefix) {
			return fmt.Errorf("property %s: names that begin with %s are reserved for the library; choose another name", properties[i].Name, rows.Prefix)
		}
	}
	return nil
}
