package storagetest_test

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// answers is a service inside the test that answers with one status after the other.
type answers []int

func (a *answers) Do(req *http.Request) (*http.Response, error) {
	status := (*a)[0]
	*a = (*a)[1:]
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After-Ms": {"1"}}, Body: http.NoBody, Request: req}, nil
}

func TestRequestCounterCountsEveryAttempt(t *testing.T) {
	var counter storagetest.RequestCounter
	options := counter.ClientOptions()
	options.Transport = &answers{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK, http.StatusOK}
	pipeline := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &options)
	call := func() {
		t.Helper()
		req, err := runtime.NewRequest(t.Context(), http.MethodGet, "http://service.test")
		check(t, err)
		resp, err := pipeline.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
	}
	call()
	if n := counter.Count(); n != 3 {
		t.Fatalf("a call that is answered at its third attempt counts as %d requests", n)
	}
	if n := counter.Reset(); n != 3 || counter.Count() != 0 {
		t.Fatalf("reset from %d to %d", n, counter.Count())
	}
	call()
	assert.Equal(assert.Fatal(t), counter.Count(), 1, "one request")
}
