package storagetest

import (
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// RequestCounter counts the requests that a client sends, repetitions included, so that a test can hold an operation to
// what it may cost. It is a policy for ClientOptions.PerRetryPolicies. The zero value is ready, and it is safe for
// concurrent use.
type RequestCounter struct {
	n atomic.Int64
}

// Do counts a request and lets it go on.
func (c *RequestCounter) Do(req *policy.Request) (*http.Response, error) {
	c.n.Add(1)
	return req.Next()
}

// Count returns the number of requests so far.
func (c *RequestCounter) Count() int { return int(c.n.Load()) }

// Reset begins to count from zero and returns the number of requests before.
func (c *RequestCounter) Reset() int { return int(c.n.Swap(0)) }

// ClientOptions returns options for a client whose requests the counter counts.
func (c *RequestCounter) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{PerRetryPolicies: []policy.Policy{c}}
}
