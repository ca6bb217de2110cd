package storagetest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// RequestCounter counts the requests of a client, including retries, so that a test can limit what an operation costs: as a policy for
// ClientOptions.PerRetryPolicies or as an [Injector] that injects nothing, not both. First(counter, faults) counts what faults sees. The zero value
// is ready. It is safe for concurrent use.
type RequestCounter struct {
	mu    sync.Mutex
	total int
	calls map[counted]int
}

type counted struct {
	service StorageService
	kind    Kind
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
	if c.calls == nil {
		c.calls = map[counted]int{}
	}
	c.calls[counted{call.Service, call.Kind}]++
	return nil
}

// String lists the counts, sorted: "3 requests: table GetEntity 1, table InsertEntity 2".
func (c *RequestCounter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := make([]string, 0, len(c.calls))
	for _, of := range slices.SortedFunc(maps.Keys(c.calls), func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.kind, b.kind))
	}) {
		parts = append(parts, fmt.Sprintf("%s %s %d", cmp.Or(of.service, "unknown"), of.kind, c.calls[of]))
	}
	switch c.total {
	case 0:
		return "no requests"
	case 1:
		return "1 request: " + parts[0]
	}
	return fmt.Sprintf("%d requests: %s", c.total, strings.Join(parts, ", "))
}

// Count returns the number of requests since the last Reset.
func (c *RequestCounter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// CountOf returns the number of requests of one kind since the last Reset.
func (c *RequestCounter) CountOf(kind Kind) int {
	return c.Kinds()[kind]
}

// Kinds returns the number of requests of each kind since the last Reset.
func (c *RequestCounter) Kinds() map[Kind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := map[Kind]int{}
	for of, n := range c.calls {
		kinds[of.kind] += n
	}
	return kinds
}

// Reset sets the count to zero and returns the previous count.
func (c *RequestCounter) Reset() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.total
	c.total, c.calls = 0, nil
	return n
}

// ClientOptions are for a client whose requests the counter counts.
func (c *RequestCounter) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{PerRetryPolicies: []policy.Policy{c}}
}
