package storagetest

import (
	"maps"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// RequestCounter counts the requests that a client sends, including retries, so that a test can limit what an
// operation may cost. It is a policy for ClientOptions.PerRetryPolicies. The zero value is ready, and it is safe for
// concurrent use.
//
// It is also an [Injector] that injects nothing: First(counter, faults) counts the calls that the injector faults
// sees. Use it as a policy or as an injector, not as both.
type RequestCounter struct {
	mu    sync.Mutex
	total int
	kinds map[Kind]int
}

// Do counts a request and passes it on.
func (c *RequestCounter) Do(req *policy.Request) (*http.Response, error) {
	c.Inject(describe(locator{}, req.Raw()))
	return req.Next()
}

// Inject counts a call and injects no fault.
func (c *RequestCounter) Inject(call Call) Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	if c.kinds == nil {
		c.kinds = map[Kind]int{}
	}
	c.kinds[call.Kind]++
	return nil
}

// String returns a fixed text.
func (c *RequestCounter) String() string { return "(RequestCounter)" }

// Count returns the number of requests so far.
func (c *RequestCounter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// CountOf returns the number of requests of one kind so far.
func (c *RequestCounter) CountOf(kind Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind]
}

// Kinds returns the number of requests of each kind so far.
func (c *RequestCounter) Kinds() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := maps.Clone(c.kinds)
	if kinds == nil {
		kinds = map[Kind]int{}
	}
	return kinds
}

// Reset sets the count to zero and returns the previous count.
func (c *RequestCounter) Reset() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.total
	c.total, c.kinds = 0, nil
	return n
}

// ClientOptions returns options for a client whose requests the counter counts.
func (c *RequestCounter) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{PerRetryPolicies: []policy.Policy{c}}
}
