package blobs

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
		"GET /?comp=list":                        "s l",
		"GET /c?restype=container&comp=acl":      "",
		"GET /c?restype=container&comp=list":     "C l",
		"GET /c?restype=container":               "c r",
		"DELETE /c?restype=container":            "c d",
		"PUT /c?restype=container":               "c c|w",
		"PUT /c?restype=container&comp=metadata": "c w",
		"GET /c/b":                               "O r",
		"HEAD /c/b":                              "O r",
		"DELETE /c/b":                            "O d",
		"PUT /c/b?comp=appendblock":              "O a|w",
		"PUT /c/b":                               "O c|w",
		"PUT /c/b?comp=block":                    "O c|w",
		"PUT /c/b?comp=metadata":                 "O w",
	} {
		method, target, _ := strings.Cut(request, " ")
		u := assert.Must[*url.URL](t)(url.Parse("http://contoso" + target))
		assert.Equal(t, needs(&http.Request{Method: method, URL: u}), want, "the needs of %s", request)
	}
}
