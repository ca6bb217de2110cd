package connection

import (
	"context"
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
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Credential makes the SDK's clients with one kind of credential.
type Credential struct {
	tables func(string, *aztables.ClientOptions) (*aztables.ServiceClient, error)
	queues func(string, *azqueue.ClientOptions) (*azqueue.ServiceClient, error)
	blobs  func(string, *service.ClientOptions) (*service.Client, error)
}

// Token returns a Credential that uses a token credential. ok is false if the credential is nil or a nil
// pointer, for example in a field that was never set.
func Token(credential azcore.TokenCredential) (c Credential, ok bool) {
	if fields.IsNil(credential) {
		return c, false
	}
	credential = wire.Tokens{Credential: credential}
	return Credential{
		tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
			return aztables.NewServiceClient(u, credential, o)
		},
		queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
			return azqueue.NewServiceClient(u, credential, o)
		},
		blobs: func(u string, o *service.ClientOptions) (*service.Client, error) {
			return service.NewClient(u, credential, o)
		},
	}, true
}

// SharedKey returns a Credential that uses an account's name and key, and a Signer with the same key.
func SharedKey(name, key string) (Credential, Signer, error) {
	tableKey, err := aztables.NewSharedKeyCredential(name, key)
	if err != nil {
		return Credential{}, nil, err
	}
	queueKey, err := azqueue.NewSharedKeyCredential(name, key)
	if err != nil {
		return Credential{}, nil, err
	}
	blobKey, err := service.NewSharedKeyCredential(name, key)
	if err != nil {
		return Credential{}, nil, err
	}
	return Credential{
			tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
				return aztables.NewServiceClientWithSharedKey(u, tableKey, o)
			},
			queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
				return azqueue.NewServiceClientWithSharedKeyCredential(u, queueKey, o)
			},
			blobs: func(u string, o *service.ClientOptions) (*service.Client, error) {
				return service.NewClientWithSharedKeyCredential(u, blobKey, o)
			},
		}, func(values sas.BlobSignatureValues) (sas.QueryParameters, error) {
			return values.SignWithSharedKey(blobKey)
		}, nil
}

// SAS returns a Credential that uses a shared access signature. ok is false if the text is not a shared
// access signature.
func SAS(signature string) (c Credential, ok bool) {
	signature = strings.TrimPrefix(signature, "?")
	if query, err := url.ParseQuery(signature); err != nil || query.Get("sig") == "" {
		return c, false
	}
	signed := func(u string) string { return strings.TrimSuffix(u, "/") + "/?" + signature }
	return Credential{
		tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
			return aztables.NewServiceClientWithNoCredential(signed(u), o)
		},
		queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
			return azqueue.NewServiceClientWithNoCredential(signed(u), o)
		},
		blobs: func(u string, o *service.ClientOptions) (*service.Client, error) {
			return service.NewClientWithNoCredential(signed(u), o)
		},
	}, true
}

// Clients are the SDK's clients for the services of one account, nil for a service without endpoint.
type Clients struct {
	Tables *aztables.ServiceClient
	Queues *azqueue.ServiceClient
	Blobs  *service.Client
}

// Clients makes the clients for the endpoints, with the caller's options.
func (c Credential) Clients(endpoints Endpoints, options azcore.ClientOptions, signals *telemetry.Telemetry) (clients Clients, err error) {
	if options.Transport == nil {
		options.Transport = transport()
	}
	instrumented := func(name, endpoint string, paths wire.Paths) azcore.ClientOptions {
		u, err := url.Parse(endpoint)
		if err != nil {
			u = &url.URL{} // ignore the error: the client's constructor returns the same error
		}
		return signals.Instrument(clientOptions(options, paths, name == "blobs"), name, u.Path)
	}
	tables := aztables.ClientOptions{ClientOptions: instrumented("tables", endpoints.Table, wire.Paths{Tables: true})}
	if clients.Tables, err = c.tables(endpoints.Table, &tables); err != nil {
		return Clients{}, wire.Redact(err)
	}
	if endpoints.Queue != "" {
		if clients.Queues, err = c.queues(endpoints.Queue, &azqueue.ClientOptions{ClientOptions: instrumented("queues", endpoints.Queue, wire.Paths{})}); err != nil {
			return Clients{}, wire.Redact(err)
		}
	}
	if endpoints.Blob != "" {
		if clients.Blobs, err = c.blobs(endpoints.Blob, &service.ClientOptions{ClientOptions: instrumented("blobs", endpoints.Blob, wire.Paths{})}); err != nil {
			return Clients{}, wire.Redact(err)
		}
	}
	return clients, nil
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

// Signer signs an address of a blob. It is a function because package fmt can print a credential in a field of an Account, and
// never prints what a function has captured.
type Signer func(sas.BlobSignatureValues) (sas.QueryParameters, error)

// Delegated signs with a user delegation key, which it requests with a client that was made from a token
// credential. Requests: 1.
func Delegated(ctx context.Context, client *service.Client, from, to time.Time) (Signer, error) {
	start, end := from.Format(sas.TimeFormat), to.Format(sas.TimeFormat)
	credential, err := client.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
	if err != nil {
		return nil, err
	}
	return func(values sas.BlobSignatureValues) (sas.QueryParameters, error) {
		return values.SignWithUserDelegation(credential)
	}, nil
}
