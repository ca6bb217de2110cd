package wire

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRefusalLosesItsSignature(t *testing.T) {
	const body = `<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>The MAC signature found in the HTTP request ` +
		`'c2VjcmV0K3NpZ25hdHVyZQ==' is not the same as any computed signature.</AuthenticationErrorDetail></Error>`
	resp, err := withoutSecrets(&http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	left, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(left), "c2VjcmV0") || !strings.Contains(string(left), "AuthenticationFailed") {
		t.Fatalf("left is %s", left)
	}
}
