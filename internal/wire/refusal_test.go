package wire

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestRefusalLosesItsSignature(t *testing.T) {
	const body = `<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>The MAC signature found in the HTTP request ` +
		`'c2VjcmV0K3NpZ25hdHVyZQ==' is not the same as any computed signature.</AuthenticationErrorDetail></Error>`
	resp, err := withoutSecrets(&http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil)
	assert.Check(t, err)
	left := assert.Must[[]byte](t)(io.ReadAll(resp.Body))
	if strings.Contains(string(left), "c2VjcmV0") || !strings.Contains(string(left), "AuthenticationFailed") {
		t.Fatalf("left is %s", left)
	}
}
