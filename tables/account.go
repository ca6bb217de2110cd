package tables

import (
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Endpoints are the addresses of an account's services, such as https://contoso.table.core.windows.net. Table is
// needed always, Queue and Blob by the patterns that say so.
type Endpoints struct {
	Table, Queue, Blob string
}

// AccountEndpoints returns the endpoints of an account in Azure's public cloud. An account's name has 3 to 63 letters, digits and
// hyphens; for anything else the endpoints are empty, and every NewAccount function refuses them.
func AccountEndpoints(account string) Endpoints {
	return Endpoints(connection.PublicEndpoints(account))
}

// AccountOptions are the options of the NewAccount functions; nil is the same as the zero value.
type AccountOptions struct {
	// ClientOptions go to the SDK's clients: retries, transport, tracing, cloud. The retry rule set here is the one
	// rule for every request of every pattern. Policies are kept. An attempt that a per-retry policy ends with an error,
	// without passing it on, counts as never sent.
	ClientOptions azcore.ClientOptions
	// Logger gets what goes wrong although the caller is told nil, such as an effect in another partition that failed
	// after its change was made. Lines hold tables, patterns, ids and the texts of errors, which name keys; they never hold
	// values or secrets. Nil is slog.Default(), since nobody else would see these failures; use slog.DiscardHandler for none.
	Logger *slog.Logger
}

// Account gives tables, and the SDK's clients for the same account. It is safe for concurrent use.
type Account struct {
	name      string
	source    string
	endpoints Endpoints
	cosmos    bool
	tables    *aztables.ServiceClient
	queues    *azqueue.ServiceClient
	blobs     *blobservice.Client
	log       *slog.Logger      // nil for slog.Default()
	signs     connection.Signer // nil without a shared key
	token     bool              // made from a token credential
}

// NewAccount uses a token credential, such as one of azidentity. It makes no request.
func NewAccount(endpoints Endpoints, credential azcore.TokenCredential, options *AccountOptions) (*Account, error) {
	if isNil(credential) {
		return nil, Invalidf("NewAccount", "the credential is nil")
	}
	return build("NewAccount", Account{endpoints: endpoints, source: "token credential", token: true}, options, clientMakers{
		tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
			return aztables.NewServiceClient(u, credential, o)
		},
		queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
			return azqueue.NewServiceClient(u, credential, o)
		},
		blobs: func(u string, o *blobservice.ClientOptions) (*blobservice.Client, error) {
			return blobservice.NewClient(u, credential, o)
		},
	})
}

// NewAccountWithSharedKey uses the account's name and one of its keys. It makes no request.
func NewAccountWithSharedKey(endpoints Endpoints, name, key string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSharedKey"
	if !connection.IsAccountName(name) {
		return nil, Invalidf(op, "the account's name has %d characters; it must have 3 to 63 letters, digits and hyphens", len(name))
	}
	tableKey, err := aztables.NewSharedKeyCredential(name, key)
	if err != nil {
		return nil, Invalidf(op, "the key of account %q is not base64", name)
	}
	queueKey, err := azqueue.NewSharedKeyCredential(name, key)
	if err != nil {
		return nil, Invalidf(op, "the key of account %q is not base64", name)
	}
	blobKey, err := blobservice.NewSharedKeyCredential(name, key)
	if err != nil {
		return nil, Invalidf(op, "the key of account %q is not base64", name)
	}
	return build(op, Account{name: name, endpoints: endpoints, source: "shared key", signs: connection.SignerOf(blobKey)}, options, clientMakers{
		tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
			return aztables.NewServiceClientWithSharedKey(u, tableKey, o)
		},
		queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
			return azqueue.NewServiceClientWithSharedKeyCredential(u, queueKey, o)
		},
		blobs: func(u string, o *blobservice.ClientOptions) (*blobservice.Client, error) {
			return blobservice.NewClientWithSharedKeyCredential(u, blobKey, o)
		},
	})
}

// NewAccountWithSAS uses a shared access signature: the query string of a SAS address, with or without the question
// mark. It makes no request.
func NewAccountWithSAS(endpoints Endpoints, sas string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSAS"
	sas = strings.TrimPrefix(sas, "?")
	if query, err := url.ParseQuery(sas); err != nil || query.Get("sig") == "" {
		return nil, Invalidf(op, "the shared access signature has no sig, or is not a query string")
	}
	signed := func(u string) string { return strings.TrimSuffix(u, "/") + "/?" + sas }
	return build(op, Account{endpoints: endpoints, source: "shared access signature"}, options, clientMakers{
		tables: func(u string, o *aztables.ClientOptions) (*aztables.ServiceClient, error) {
			return aztables.NewServiceClientWithNoCredential(signed(u), o)
		},
		queues: func(u string, o *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
			return azqueue.NewServiceClientWithNoCredential(signed(u), o)
		},
		blobs: func(u string, o *blobservice.ClientOptions) (*blobservice.Client, error) {
			return blobservice.NewClientWithNoCredential(signed(u), o)
		},
	})
}

// clientMakers make the SDK's clients of one kind of credential.
type clientMakers struct {
	tables func(string, *aztables.ClientOptions) (*aztables.ServiceClient, error)
	queues func(string, *azqueue.ClientOptions) (*azqueue.ServiceClient, error)
	blobs  func(string, *blobservice.ClientOptions) (*blobservice.Client, error)
}

func build(op string, a Account, options *AccountOptions, make clientMakers) (*Account, error) {
	if a.endpoints.Table == "" {
		return nil, Invalidf(op, "there is no table endpoint; give Endpoints.Table, or the name of an account to AccountEndpoints")
	}
	for service, endpoint := range map[string]*string{"table": &a.endpoints.Table, "queue": &a.endpoints.Queue, "blob": &a.endpoints.Blob} {
		if *endpoint == "" {
			continue
		}
		if err := connection.CheckEndpoint(service, *endpoint); err != nil {
			return nil, Invalid(op, err)
		}
		*endpoint = strings.TrimSuffix(*endpoint, "/")
	}
	a.cosmos = connection.IsCosmos(a.endpoints.Table)
	if options != nil {
		a.log = options.Logger
	}
	client := clientOptions(options, wire.Paths{})
	var err error
	if a.tables, err = make.tables(a.endpoints.Table, &aztables.ClientOptions{ClientOptions: clientOptions(options, wire.Paths{Tables: true})}); err != nil {
		return nil, Invalid(op, wire.Redact(err))
	}
	if a.endpoints.Queue != "" {
		if a.queues, err = make.queues(a.endpoints.Queue, &azqueue.ClientOptions{ClientOptions: client}); err != nil {
			return nil, Invalid(op, wire.Redact(err))
		}
	}
	if a.endpoints.Blob != "" {
		if a.blobs, err = make.blobs(a.endpoints.Blob, &blobservice.ClientOptions{ClientOptions: client}); err != nil {
			return nil, Invalid(op, wire.Redact(err))
		}
	}
	return &a, nil
}

// clientOptions adds the library's policies to a copy of the caller's options.
func clientOptions(options *AccountOptions, paths wire.Paths) azcore.ClientOptions {
	var client azcore.ClientOptions
	if options != nil {
		client = options.ClientOptions
	}
	client.PerCallPolicies = slices.Concat(client.PerCallPolicies, []policy.Policy{wire.Caller{}, paths})
	client.PerRetryPolicies = slices.Concat([]policy.Policy{wire.Observer{}}, client.PerRetryPolicies, []policy.Policy{lease.Policy{}, wire.Sender{}})
	if client.Transport != nil {
		client.Transport = wire.Transport{Inner: client.Transport}
	}
	if !reflect.ValueOf(client.TracingProvider).IsZero() {
		client.TracingProvider = wire.HideKeys(client.TracingProvider)
	} else {
		client.TracingProvider = tracing.Provider{}
	}
	return client
}

// isNil reports whether v is nil, or a nil pointer, such as that of a field that nobody has set.
func isNil(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}

// Name returns the account's name where the credential tells it, else "".
func (a *Account) Name() string { return a.name }

// Source says what the account was made from, without any secret: "shared key", "AZURE_STORAGE_CONNECTION_STRING ...".
func (a *Account) Source() string { return a.source }

// Endpoints returns the addresses in use, without any secret.
func (a *Account) Endpoints() Endpoints { return a.endpoints }

// IsCosmos reports whether the tables are Cosmos DB's: the same interface, but queries come back in no key order.
func (a *Account) IsCosmos() bool { return a.cosmos }

// Logger returns AccountOptions.Logger, or slog.Default() as it is now where that is nil.
func (a *Account) Logger() *slog.Logger {
	if a.log == nil {
		return slog.Default()
	}
	return a.log
}

// TableService gives back the SDK's client for the table service.
func (a *Account) TableService() *aztables.ServiceClient { return a.tables }

// QueueService gives back the SDK's client for the queue service, nil without a queue endpoint.
func (a *Account) QueueService() *azqueue.ServiceClient { return a.queues }

// BlobService gives back the SDK's client for the blob service, nil without a blob endpoint.
func (a *Account) BlobService() *blobservice.Client { return a.blobs }

// Queue returns the SDK's client for one queue, nil without a queue endpoint.
func (a *Account) Queue(name string) *azqueue.QueueClient {
	if a.queues == nil {
		return nil
	}
	return a.queues.NewQueueClient(name)
}

// Container returns the SDK's client for one blob container, nil without a blob endpoint.
func (a *Account) Container(name string) *container.Client {
	if a.blobs == nil {
		return nil
	}
	return a.blobs.NewContainerClient(name)
}

// String names account and endpoint, never a credential.
func (a *Account) String() string { return fmt.Sprintf("%s (%s)", a.endpoints.Table, a.source) }

// LogValue is String for log/slog.
func (a *Account) LogValue() slog.Value { return slog.StringValue(a.String()) }
