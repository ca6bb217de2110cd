package tables

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	blobcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Endpoints are the addresses of an account's services, such as https://contoso.table.core.windows.net. Table is required; Queue and
// Blob are needed only for patterns that use queues or blobs.
type Endpoints struct {
	Table, Queue, Blob string
}

// AccountEndpoints returns the endpoints of an account in Azure's public cloud. An account's name has 3 to 63 letters, digits and
// hyphens; for any other name the endpoints are empty, and every NewAccount function returns ErrWiring for them.
func AccountEndpoints(account string) Endpoints {
	return Endpoints(connection.PublicEndpoints(account))
}

// AccountOptions are the options of the NewAccount functions; nil is the same as the zero value.
type AccountOptions struct {
	// ClientOptions are passed to the SDK's clients: retries, transport, policies, tracing, cloud. Retry applies to every request of
	// every pattern. If a per-retry policy returns an error without calling the next policy, the attempt counts as not sent.
	ClientOptions azcore.ClientOptions
	// Logger gets the failures that no caller sees, such as an effect in another partition that failed after its change
	// was committed, and what workers log. Lines contain the names of tables and patterns, IDs and the texts of errors.
	// They contain no values and no secrets, and keys only if LogKeys is set. Lines of one kind about one table or
	// queue are limited to 20 at once and 1 a second; the next line says how many were suppressed. The default is
	// slog.Default(); use slog.DiscardHandler for no log.
	Logger *slog.Logger
	// Identity is the account's name in what the library authenticates: seals and data keys of package encryption,
	// signed messages, and the owners of blobs. What somebody has copied from an account with another identity is
	// refused. The default is the table endpoint without scheme, port and "-secondary", in lower case, such as
	// contoso.table.core.windows.net. Set the same Identity in all programs if they reach the account by several
	// addresses, or set that of the original account if its data were restored or copied here. Never change it while
	// the data exist.
	Identity string
	// LogKeys keeps the keys of entities in logged error texts. By default the library removes everything in double quotes, since
	// keys are often personal data.
	LogKeys bool
	// MeterProvider gets the metrics of operations, of requests to tables, queues and blobs, and of workers; nil means none.
	// docs/reference/observability.md lists them.
	MeterProvider metric.MeterProvider
	// TracerProvider gets a span for each operation, for each attempt of a request to tables, queues and blobs, and for
	// each delivery that a worker handles; nil means none. Messages then carry the trace of their sender, to which the
	// worker's span is linked. These spans replace those of the SDK, so ClientOptions.TracingProvider must be zero:
	// setting both causes ErrWiring.
	TracerProvider trace.TracerProvider
}

// Account is a storage account: it makes Table handles and the SDK's clients. It is safe for concurrent use.
type Account struct {
	name      string
	source    string
	identity  string
	endpoints Endpoints
	cosmos    bool
	tables    *aztables.ServiceClient
	queues    *azqueue.ServiceClient
	blobs     *blobservice.Client
	signs     connection.Signer // nil without a shared key
	token     bool              // made from a token credential
	log       *slog.Logger      // nil for slog.Default()
	telemetry *telemetry.Telemetry
}

// NewAccount returns an account that uses a token credential, such as one of package azidentity. Requests: 0.
func NewAccount(endpoints Endpoints, credential azcore.TokenCredential, options *AccountOptions) (*Account, error) {
	token, ok := connection.Token(credential)
	if !ok {
		return nil, Wiringf("NewAccount", "", "the credential is nil; give one, such as azidentity.NewDefaultAzureCredential returns")
	}
	return build("NewAccount", Account{endpoints: endpoints, source: "token credential", token: true}, options, token)
}

// NewAccountWithSharedKey returns an account that uses the account's name and one of its keys, which is base64. Requests: 0.
func NewAccountWithSharedKey(endpoints Endpoints, name, key string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSharedKey"
	if !connection.IsAccountName(name) {
		return nil, Wiringf(op, "", "the account's name has %d characters; it must have 3 to 63 letters, digits and hyphens", len(name))
	}
	credential, signer, err := connection.SharedKey(name, key)
	if err != nil {
		return nil, Wiringf(op, "", "the key of account %q is not base64; give it as the portal shows it", name)
	}
	return build(op, Account{name: name, endpoints: endpoints, source: "shared key", signs: signer}, options, credential)
}

// NewAccountWithSAS returns an account that uses a shared access signature: the query string of a SAS address, with or without the
// question mark. Requests: 0.
func NewAccountWithSAS(endpoints Endpoints, sas string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSAS"
	credential, ok := connection.SAS(sas)
	if !ok {
		return nil, Wiringf(op, "", "the shared access signature is not a query string with a parameter sig; give all that follows the question mark of its address")
	}
	return build(op, Account{endpoints: endpoints, source: "shared access signature"}, options, credential)
}

func build(op string, a Account, options *AccountOptions, credential connection.Credential) (*Account, error) {
	if a.endpoints.Table == "" {
		return nil, Wiringf(op, "", "there is no table endpoint; give Endpoints.Table, or the name of an account to AccountEndpoints")
	}
	for service, endpoint := range map[string]*string{"table": &a.endpoints.Table, "queue": &a.endpoints.Queue, "blob": &a.endpoints.Blob} {
		if *endpoint == "" {
			continue
		}
		if err := connection.CheckEndpoint(service, *endpoint); err != nil {
			return nil, Wiringf(op, "", "%w", err)
		}
		*endpoint = strings.TrimSuffix(*endpoint, "/")
	}
	a.cosmos = connection.IsCosmos(a.endpoints.Table)
	if options == nil {
		options = &AccountOptions{}
	}
	if options.MeterProvider != nil && fields.IsNil(options.MeterProvider) || options.TracerProvider != nil && fields.IsNil(options.TracerProvider) {
		return nil, Wiringf(op, "", "AccountOptions.MeterProvider or TracerProvider is a nil pointer in an interface; give a provider, or leave the option out")
	}
	if options.TracerProvider != nil && !reflect.ValueOf(options.ClientOptions.TracingProvider).IsZero() {
		return nil, Wiringf(op, "", "AccountOptions.TracerProvider and ClientOptions.TracingProvider are both set, and every request would have two spans; set only TracerProvider")
	}
	a.identity = cmp.Or(options.Identity, connection.Identity(a.endpoints.Table))
	a.log = options.Logger
	system := "azure.table_storage"
	if a.cosmos {
		system = "azure.cosmosdb"
	}
	var err error
	a.telemetry, err = telemetry.New(telemetry.Options{Meters: options.MeterProvider, Tracers: options.TracerProvider, Logger: options.Logger, Keys: options.LogKeys,
		System: system, Explain: explain})
	if err != nil {
		return nil, Wiringf(op, "", "%w", err)
	}
	clients, err := credential.Clients(connection.Endpoints(a.endpoints), options.ClientOptions, a.telemetry)
	if err != nil {
		return nil, Wiringf(op, "", "%w", err)
	}
	a.tables, a.queues, a.blobs = clients.Tables, clients.Queues, clients.Blobs
	return &a, nil
}

// Name returns the account's name, "" if the account was made without a name, for example from a token credential.
func (a *Account) Name() string { return a.name }

// Identity returns AccountOptions.Identity, or its default. It is "" for a nil account.
func (a *Account) Identity() string {
	if a == nil {
		return ""
	}
	return a.identity
}

// Source says what the account was made from, without secrets: "shared key", "AZURE_STORAGE_CONNECTION_STRING ...".
func (a *Account) Source() string { return a.source }

// Endpoints returns the addresses in use, without secrets.
func (a *Account) Endpoints() Endpoints { return a.endpoints }

// IsCosmos reports whether the endpoint belongs to Azure Cosmos DB for Table, whose queries return rows in no order.
// It is false for a nil account.
func (a *Account) IsCosmos() bool { return a != nil && a.cosmos }

// Logger returns AccountOptions.Logger, or the current slog.Default() if that is nil.
func (a *Account) Logger() *slog.Logger {
	if a.log == nil {
		return slog.Default()
	}
	return a.log
}

// TableService returns the SDK's client for the table service.
func (a *Account) TableService() *aztables.ServiceClient { return a.tables }

// QueueService returns the SDK's client for the queue service, nil without a queue endpoint.
func (a *Account) QueueService() *azqueue.ServiceClient { return a.queues }

// BlobService returns the SDK's client for the blob service, nil without a blob endpoint.
func (a *Account) BlobService() *blobservice.Client { return a.blobs }

// Queue returns the SDK's client for one queue, nil without a queue endpoint.
func (a *Account) Queue(name string) *azqueue.QueueClient {
	if a.queues == nil {
		return nil
	}
	return a.queues.NewQueueClient(name)
}

// Container returns the SDK's client for one blob container, nil without a blob endpoint.
func (a *Account) Container(name string) *blobcontainer.Client {
	if a.blobs == nil {
		return nil
	}
	return a.blobs.NewContainerClient(name)
}

// String returns the table endpoint and Source, never a credential.
func (a *Account) String() string { return fmt.Sprintf("%s (%s)", a.endpoints.Table, a.source) }

// LogValue returns the text of String, for log/slog.
func (a *Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// NewAccountFromConnectionString reads an Azure Storage connection string in any of its forms: account name and key,
// shared access signature, custom endpoints, UseDevelopmentStorage=true. Errors name the setting
// that is wrong and never its value. Requests: 0.
func NewAccountFromConnectionString(connectionString string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountFromConnectionString"
	parsed, err := connection.Parse(connectionString)
	if err != nil {
		return nil, Wiringf(op, "", "%w", err)
	}
	if parsed.Key != "" {
		return NewAccountWithSharedKey(Endpoints(parsed.Endpoints), parsed.Name, parsed.Key, options)
	}
	account, err := NewAccountWithSAS(Endpoints(parsed.Endpoints), parsed.SAS, options)
	if err == nil {
		account.name = parsed.Name
	}
	return account, err
}

// NewAccountFromEnv returns the account that the environment names, in the variables of Azure's command line. One of these must be set:
//
//	AZURE_STORAGE_CONNECTION_STRING
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_SAS_TOKEN
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_AUTH_MODE=login: azidentity's DefaultAzureCredential
//
// It returns ErrWiring if more than one of them is set, since a guess could write to the wrong account. Account.Source says which one
// was used. Requests: 0.
func NewAccountFromEnv(options *AccountOptions) (*Account, error) {
	const op = "NewAccountFromEnv"
	text, name := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), os.Getenv("AZURE_STORAGE_ACCOUNT")
	key, sas, login := os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN"), os.Getenv("AZURE_STORAGE_AUTH_MODE") == "login"
	var ways []string
	for way, set := range map[string]bool{"AZURE_STORAGE_CONNECTION_STRING": text != "", "AZURE_STORAGE_KEY": key != "",
		"AZURE_STORAGE_SAS_TOKEN": sas != "", "AZURE_STORAGE_AUTH_MODE=login": login} {
		if set {
			ways = append(ways, way)
		}
	}
	switch {
	case len(ways) == 0:
		return nil, Wiringf(op, "", "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_AUTH_MODE=login")
	case len(ways) > 1:
		return nil, Wiringf(op, "", "%s are set; set only one of them", strings.Join(slices.Sorted(slices.Values(ways)), " and "))
	case text != "" && name != "":
		return nil, Wiringf(op, "", "AZURE_STORAGE_CONNECTION_STRING and AZURE_STORAGE_ACCOUNT are set; set only one of them")
	case text == "" && name == "":
		return nil, Wiringf(op, "", "%s is set without AZURE_STORAGE_ACCOUNT; set both", ways[0])
	}
	var account *Account
	var err error
	switch {
	case text != "":
		account, err = NewAccountFromConnectionString(text, options)
	case key != "":
		account, err = NewAccountWithSharedKey(AccountEndpoints(name), name, key, options)
	case sas != "":
		account, err = NewAccountWithSAS(AccountEndpoints(name), sas, options)
	default:
		credentialOptions := azidentity.DefaultAzureCredentialOptions{}
		if options != nil {
			credentialOptions.ClientOptions = options.ClientOptions
		}
		credential, failed := azidentity.NewDefaultAzureCredential(&credentialOptions)
		if failed != nil {
			return nil, Wiringf(op, "", "%w", failed)
		}
		account, err = NewAccount(AccountEndpoints(name), credential, options)
	}
	if err != nil {
		return nil, err
	}
	account.name = max(account.name, name)
	account.source = ways[0] + " (" + account.source + ")"
	return account, nil
}

// SignBlob returns an address under which anybody can read one blob of the account, and nothing else, until expiry: a
// shared access signature. expiry is at most 7 days from now. The address is a secret: do not log it. It works over
// https only, unless the account's own endpoint is http. An account with a shared key signs with that key. An account
// with a token credential signs with a user delegation key; its credential needs the role Storage Blob Delegator. An
// account that was made from a shared access signature cannot sign: SignBlob returns ErrWiring.
//
// Requests: 0; with a token credential 1.
func (a *Account) SignBlob(ctx context.Context, container, blob string, expiry time.Time) (string, error) {
	const (
		op = "SignBlob"
		// maxSigned is the service's limit for a user delegation key. SignBlob also applies it to addresses signed with
		// the account's key, since only regenerating that key revokes them.
		maxSigned = 7 * 24 * time.Hour
		clockSkew = 5 * time.Minute // the user delegation key is valid from this long ago, for services whose clock is behind
	)
	now := time.Now()
	switch {
	case a.blobs == nil:
		return "", Wiringf(op, "", "the account has no blob endpoint; give one in Endpoints")
	case a.signs == nil && !a.token:
		return "", Wiringf(op, "", "an account made from a %s cannot sign; use one with a shared key or a token credential", a.source)
	case container == "" || blob == "":
		return "", Invalidf(op, "the name of the container or of the blob is empty; both are needed")
	case !expiry.After(now) || expiry.After(now.Add(maxSigned)):
		return "", Invalidf(op, "the expiry is %v from now; it must be more than 0 and at most %v", expiry.Sub(now).Round(time.Second), maxSigned)
	}
	values := blobsas.BlobSignatureValues{ContainerName: container, BlobName: blob, ExpiryTime: expiry.UTC(),
		Permissions: (&blobsas.BlobPermissions{Read: true}).String()}
	if u, err := url.Parse(a.endpoints.Blob); err != nil || strings.EqualFold(u.Scheme, "https") {
		values.Protocol = blobsas.ProtocolHTTPS
	}
	sign := a.signs
	if sign == nil {
		var err error
		values.StartTime = now.Add(-clockSkew).UTC()
		if sign, err = connection.Delegated(ctx, a.blobs, values.StartTime, values.ExpiryTime); err != nil {
			return "", ServiceError(op, container, err)
		}
	}
	query, err := sign(values)
	if err != nil {
		return "", Invalid(op, wire.Redact(err))
	}
	return a.blobs.NewContainerClient(container).NewBlobClient(blob).URL() + "?" + query.Encode(), nil
}
