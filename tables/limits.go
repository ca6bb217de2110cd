package tables

import (
	"fmt"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// The limits of the service. Input over one of them causes ErrTooLarge before any request.
const (
	MaxProperties            = edm.MaxProperties  // 252 properties of an entity, including the library's own
	MaxEntitySize            = edm.MaxEntitySize  // 1 MiB: the bytes of an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // 32,768 UTF-16 code units of a string property (64 KiB)
	MaxBinarySize            = edm.MaxBinarySize  // 65,536 bytes of a binary property (64 KiB)
	MaxTransactionOperations = edm.MaxBatchOps    // 100 operations of an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // 4 MiB: the bytes of an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // 1,000 entities of a page
	MaxFilterComparisons     = edm.MaxComparisons // 15 comparisons of a filter

	// defaultConcurrency is the default of BulkOptions.Concurrency and ParallelOptions.Concurrency.
	defaultConcurrency = 8
	// batchOverhead is the number of bytes that an operation adds to a transaction besides its body: headers,
	// boundaries, and the address when every character of the keys is escaped.
	batchOverhead = 512
	// maxBulkBytes limits the bytes of a bulk write's transaction; the rest is for its own headers.
	maxBulkBytes = MaxTransactionSize - 1024
	// existingConcurrency is how many rows are read at once to find existing entities, in addition to the
	// transactions in flight.
	existingConcurrency = 4

	// maxSigned is the longest lifetime of a signed address, which is also the service's limit for a user delegation
	// key. An address signed with the account's key can be revoked only by regenerating that key.
	maxSigned = 7 * 24 * time.Hour

	// clockSkew is how much earlier than now a user delegation key is valid, for services whose clock is behind.
	clockSkew = 5 * time.Minute
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
