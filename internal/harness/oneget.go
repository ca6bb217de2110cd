package harness

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// OneGet lets a process get messages once; further gets return none. In a walk, each run of a worker then
// handles one message. That makes the walk smaller, since no poll between two messages finds nothing.
func OneGet(s *storagetest.Service) *storagetest.Service {
	once := *s
	once.ClientOptions.PerCallPolicies = append(slices.Clone(s.ClientOptions.PerCallPolicies), new(onlyGet))
	return &once
}

// onlyGet is the policy of OneGet. It does not affect renewals.
type onlyGet struct{ done atomic.Bool }

// Do implements policy.Policy.
func (g *onlyGet) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method != http.MethodGet || !strings.HasSuffix(raw.URL.Path, "/messages") || !g.done.Swap(true) {
		return req.Next()
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: raw,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(`<QueueMessagesList />`))}, nil
}
