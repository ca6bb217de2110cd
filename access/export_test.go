package access

import (
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Refusal is why the client of a token would not send a request, or nil.
func Refusal(t Token, req *policy.Request) error {
	endpoint, err := url.Parse(t.endpoint)
	if err != nil {
		return err
	}
	if r := (&guard{token: t, prefix: endpoint.Path + "/"}).check(req); r != nil {
		return r
	}
	return nil
}
