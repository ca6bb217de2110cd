package queues

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
)

// TestNeeds holds what each request asks of a signature, as the documents have it.
func TestNeeds(t *testing.T) {
	for request, want := range map[string]authorization.Need{
		"GET /?comp=list":                  "s l",
		"PUT /?comp=properties":            "s w",
		"GET /work?comp=acl":               "",
		"PUT /work?comp=acl":               "",
		"GET /work?comp=metadata":          "C r",
		"HEAD /work?comp=metadata":         "C r",
		"DELETE /work":                     "c d",
		"PUT /work":                        "c c|w",
		"PUT /work?comp=metadata":          "c w",
		"POST /work/messages":              "O a",
		"PUT /work/messages/1":             "O u",
		"DELETE /work/messages/1":          "O p",
		"DELETE /work/messages":            "o d",
		"GET /work/messages":               "O p",
		"GET /work/messages?peekonly=true": "O r",
	} {
		method, target, _ := strings.Cut(request, " ")
		u := assert.Must[*url.URL](t)(url.Parse("http://contoso" + target))
		assert.Equal(t, needs(&http.Request{Method: method, URL: u}), want, "the needs of %s", request)
	}
}
