package tables

import (
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The limits of the service. Input over one of them is ErrTooLarge before any request.
const (
	MaxProperties            = edm.MaxProperties  // properties of an entity, including the library's own
	MaxEntitySize            = edm.MaxEntitySize  // bytes of an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // UTF-16 code units of a string property
	MaxBinarySize            = edm.MaxBinarySize  // bytes of a binary property
	MaxTransactionOperations = edm.MaxBatchOps    // operations of an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // bytes of an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // entities of a page
	MaxFilterComparisons     = edm.MaxComparisons // CheckReserved refuses property names of the library among the caller's properties.
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
