package wire

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

type readsKey struct{}

// CountReads returns a context in which the policies count read requests to tables, and the counter. The code
// that makes the requests need not count them.
func CountReads(ctx context.Context) (context.Context, *atomic.Int64) {
	reads := new(atomic.Int64)
	return context.WithValue(ctx, readsKey{}, reads), reads
}

// countRead counts a call that reads, once regardless of how often the SDK repeats it.
func countRead(req *policy.Request) {
	if req.Raw().Method != http.MethodGet {
		return
	}
	if reads, ok := req.Raw().Context().Value(readsKey{}).(*atomic.Int64); ok {
		reads.Add(1)
	}
}
