package wire

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

type readsKey struct{}

// CountReads returns a context whose reads of tables are counted, and the count. The pipeline counts, so that the code that reads need
// not know.
func CountReads(ctx context.Context) (context.Context, *atomic.Int64) {
	reads := new(atomic.Int64)
	return context.WithValue(ctx, readsKey{}, reads), reads
}

// countRead counts a call that reads, however often the SDK repeats it.
func countRead(req *policy.Request) {
	if req.Raw().Method != http.MethodGet {
		return
	}
	if reads, ok := req.Raw().Context().Value(readsKey{}).(*atomic.Int64); ok {
		reads.Add(1)
	}
}
