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

// OneGet lets a process get messages once: to all further gets the answer is that there are none. In a walk, one life of a
// worker is one message then, and all that it would do afterwards is what its next life does, without the polls in between
// that find nothing, of which every order would be walked.
func OneGet(s *storagetest.Service) *storagetest.Service {
	once := *s
	once.ClientOptions.PerCallPolicies = append(slices.Clone(s.ClientOptions.PerCallPolicies), new(onlyGet))
	return &once
}

// onlyGet is the policy of OneGet. Renewals go through it as well.
type onlyGet struct{ done atomic.Bool }

// Do is policy.Policy.
func (g *onlyGet) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method != http.MethodGet || !strings.HasSuffix(raw.URL.Path, "/messages") || !g.done.Swap(true) {
		return req.Next()
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: raw,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(`<QueueMessagesList />`))}, nil
}
