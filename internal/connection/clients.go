package connection

import (
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Secret is what an account authenticates its requests with: a token credential, a name and a key, or a shared access signature.
type Secret struct {
	Token          azcore.TokenCredential
	Name, Key, SAS string
}

// Token returns the Secret of a token credential. ok is false if the credential is nil or a nil pointer, for example in a field that
// was never set.
func Token(credential azcore.TokenCredential) (s Secret, ok bool) {
	if fields.IsNil(credential) {
		return s, false
	}
	return Secret{Token: wire.Tokens{Credential: credential}}, true
}

// SAS returns the Secret of a shared access signature. ok is false if the text is not one.
func SAS(signature string) (s Secret, ok bool) {
	signature = strings.TrimPrefix(signature, "?")
	if query, err := url.ParseQuery(signature); err != nil || query.Get("sig") == "" {
		return s, false
	}
	return Secret{SAS: signature}, true
}

// Signed returns an endpoint with the shared access signature.
func (s Secret) Signed(endpoint string) string {
	return strings.TrimSuffix(endpoint, "/") + "/?" + s.SAS
}

// Link makes the SDK's clients for the services of one account. It is a function because package fmt can print a credential in a field
// of an Account, and never prints what a function has captured.
type Link func(name, endpoint string) (Secret, azcore.ClientOptions)

// NewLink returns a Link that uses the secret and the caller's options. All clients share one transport.
func NewLink(s Secret, options azcore.ClientOptions, signals *telemetry.Telemetry) Link {
	if options.Transport == nil {
		options.Transport = transport()
	}
	return func(name, endpoint string) (Secret, azcore.ClientOptions) {
		u, err := url.Parse(endpoint)
		if err != nil {
			u = &url.URL{} // ignore the error: the client's constructor returns the same error
		}
		return s, signals.Instrument(clientOptions(options, wire.Paths{Tables: name == Tables}, name == Blobs), name, u.Path)
	}
}

// The names of the services, for a Link.
const (
	Tables = "tables"
	Queues = "queues"
	Blobs  = "blobs"
)

// Tables makes the client of the table service.
func (l Link) Tables(endpoint string) (client *aztables.ServiceClient, err error) {
	s, options := l(Tables, endpoint)
	o := &aztables.ClientOptions{ClientOptions: options}
	switch {
	case s.Token != nil:
		client, err = aztables.NewServiceClient(endpoint, s.Token, o)
	case s.Key != "":
		var key *aztables.SharedKeyCredential
		if key, err = aztables.NewSharedKeyCredential(s.Name, s.Key); err == nil {
			client, err = aztables.NewServiceClientWithSharedKey(endpoint, key, o)
		}
	default:
		client, err = aztables.NewServiceClientWithNoCredential(s.Signed(endpoint), o)
	}
	return client, wire.Redact(err)
}

// transport returns what sends the requests of an account whose options have no transport. It has the settings of the SDK's, which the SDK
// does not export.
func transport() policy.Transporter {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 10,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
}

// clientOptions adds the library's policies to the caller's options.
func clientOptions(client azcore.ClientOptions, paths wire.Paths, blobs bool) azcore.ClientOptions {
	client.PerCallPolicies = slices.Concat(client.PerCallPolicies, []policy.Policy{wire.Caller{Paths: paths}})
	client.PerRetryPolicies = slices.Concat([]policy.Policy{wire.Observer{}}, client.PerRetryPolicies, []policy.Policy{lease.Policy{}})
	client.Transport = wire.Bounded{Inner: wire.NewTransport(client.Transport, IsEmulator), Blobs: blobs}
	if !reflect.ValueOf(client.TracingProvider).IsZero() {
		client.TracingProvider = wire.HideKeys(client.TracingProvider)
	} else {
		client.TracingProvider = tracing.Provider{}
	}
	return client
}
