package tables

import (
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The limits of the service. Input over one of them is ErrTooLarge before any request.
const (
	MaxProperties            = edm.MaxProperties  // 252 properties of an entity, including the library's own
	MaxEntitySize            = edm.MaxEntitySize  // 1 MiB: the bytes of an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // 32,768 UTF-16 code units of a string property (64 KiB)
	MaxBinarySize            = edm.MaxBinarySize  // 65,536 bytes of a binary property (64 KiB)
	MaxTransactionOperations = edm.MaxBatchOps    // 100 operations of an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // 4 MiB: the bytes of an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // 1,000 entities of a page
	MaxFilterComparisons     = edm.MaxComparisons // 15 comparisons of a filter
)

// CheckReserved returns an error if the caller's properties have a name that is reserved for the library.
func CheckReserved(_ rows.Pass, properties Properties) error {
	for i := range properties {
		if strings.HasPrefix(properties[i].Name, rows.Prefix) {
			return fmt.Errorf("property %s: names that begin with %s are reserved for the library; choose another name", properties[i].Name, rows.Prefix)
		}
	}
	return nil
}
