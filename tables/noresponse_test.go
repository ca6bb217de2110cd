package tables_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// noTokens is a credential that gives no token.
type noTokens struct{ err error }

func (c noTokens) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, c.err
}

// refusingPolicy fails every call with an error, or none if it is nil.
type refusingPolicy struct{ err error }

func (p refusingPolicy) Do(req *policy.Request) (*http.Response, error) {
	if p.err != nil {
		return nil, p.err
	}
	return req.Next()
}

// TestNoResponse: an operation without a response has a kind, too: ErrUnavailable if the network failed and nothing was applied,
// ErrDenied if the credential gave no token. It has none if the caller's context has ended or a policy of the caller failed.
func TestNoResponse(t *testing.T) {
	loginFailed, ofPolicy := errors.New("az login was never called"), errors.New("the policy refuses")
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	for name, c := range map[string]struct {
		credential, transport, policy error
		read, write, cause            error
	}{
		"connection refused": {transport: dial, read: tables.ErrUnavailable, write: tables.ErrUnavailable, cause: dial},
		"connection reset":   {transport: reset, read: tables.ErrUnavailable, write: tables.ErrUnknownOutcome, cause: reset},
		"cut off":            {transport: io.ErrUnexpectedEOF, read: tables.ErrUnavailable, write: tables.ErrUnknownOutcome, cause: io.ErrUnexpectedEOF},
		"no token":           {credential: loginFailed, read: tables.ErrDenied, write: tables.ErrDenied, cause: loginFailed},
		"no token in time":   {credential: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		"context":            {policy: context.Canceled, cause: context.Canceled},
		"policy":             {policy: ofPolicy, cause: ofPolicy},
	} {
		options := azcore.ClientOptions{
			Retry: policy.RetryOptions{MaxRetries: -1},
			Transport: harness.Transport(func(req *http.Request) (*http.Response, error) {
				if c.transport != nil {
					return nil, c.transport
				}
				return harness.Reply(req, http.StatusTeapot, ""), nil
			}),
			PerCallPolicies: []policy.Policy{refusingPolicy{c.policy}},
		}
		endpoints := tables.AccountEndpoints("contoso")
		account := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(endpoints, "contoso", someKey, &tables.AccountOptions{ClientOptions: options}))
		if c.credential != nil {
			account = assert.Must[*tables.Account](t)(tables.NewAccount(endpoints, noTokens{c.credential}, &tables.AccountOptions{ClientOptions: options}))
		}
		table := account.Table("Contoso")
		x := table.NewTransaction()
		x.Insert(harness.Bag("p", "r", "ours"))
		x.Insert(harness.Bag("p", "s", "ours"))
		_, committed := x.Commit(t.Context())
		_, read := table.Entities().Get(t.Context(), tables.Key{Partition: "p", Row: "r"})
		_, queried := table.Entities().Query().AllowTableScan().Page(t.Context(), "")
		_, ofQueue := eventual.QueueService(account).NewQueueClient("orders").GetProperties(t.Context(), nil)
		_, ofBlobs := blobstorage.Container(account, "orders").GetProperties(t.Context(), nil)
		for call, err := range map[string]error{"Get": read, "Page": queried, "queue": core.ServiceError("Get", "orders", ofQueue), "container": core.ServiceError("Get", "orders", ofBlobs)} {
			if harness.OneKind(t, err); tables.KindOf(err) != c.read || !errors.Is(err, c.cause) {
				t.Errorf("%s: %s: %v has the kind %v, want %v", name, call, err, tables.KindOf(err), c.read)
			}
		}
		for call, err := range map[string]error{"Insert": table.Entities().Insert(t.Context(), harness.Bag("p", "r", "ours")), "Commit": committed, "Create": table.Create(t.Context())} {
			if harness.OneKind(t, err); tables.KindOf(err) != c.write || !errors.Is(err, c.cause) {
				t.Errorf("%s: %s: %v has the kind %v, want %v", name, call, err, tables.KindOf(err), c.write)
			}
		}
	}
}
