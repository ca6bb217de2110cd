package core

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
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Endpoints are the addresses of an account's services.
type Endpoints struct {
	Table, Queue, Blob string
}

// AccountEndpoints returns the endpoints of an account in Azure's public cloud.
func AccountEndpoints(account string) Endpoints {
	return Endpoints(connection.PublicEndpoints(account))
}

// AccountOptions are those of package tables, which describes them.
type AccountOptions struct {
	ClientOptions  azcore.ClientOptions
	Logger         *slog.Logger
	Identity       string
	LogKeys        bool
	MeterProvider  metric.MeterProvider
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
		return nil, errs.Wiringf("NewAccount", "", "the credential is nil; give one, such as azidentity.NewDefaultAzureCredential returns")
	}
	return build("NewAccount", Account{endpoints: endpoints, source: "token credential", token: true}, options, token)
}

// NewAccountWithSharedKey returns an account that uses the account's name and one of its keys, which is base64. Requests: 0.
func NewAccountWithSharedKey(endpoints Endpoints, name, key string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSharedKey"
	if !connection.IsAccountName(name) {
		return nil, errs.Wiringf(op, "", "the account's name has %d characters; it must have 3 to 63 letters, digits and hyphens", len(name))
	}
	credential, signer, err := connection.SharedKey(name, key)
	if err != nil {
		return nil, errs.Wiringf(op, "", "the key of account %q is not base64; give it as the portal shows it", name)
	}
	return build(op, Account{name: name, endpoints: endpoints, source: "shared key", signs: signer}, options, credential)
}

// NewAccountWithSAS returns an account that uses a shared access signature: the query string of a SAS address, with or without the
// question mark. Requests: 0.
func NewAccountWithSAS(endpoints Endpoints, sas string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSAS"
	credential, ok := connection.SAS(sas)
	if !ok {
		return nil, errs.Wiringf(op, "", "the shared access signature is not a query string with a parameter sig; give all that follows the question mark of its address")
	}
	return build(op, Account{endpoints: endpoints, source: "shared access signature"}, options, credential)
}

func build(op string, a Account, options *AccountOptions, credential connection.Credential) (*Account, error) {
	if a.endpoints.Table == "" {
		return nil, errs.Wiringf(op, "", "there is no table endpoint; give Endpoints.Table, or the name of an account to AccountEndpoints")
	}
	for service, endpoint := range map[string]*string{"table": &a.endpoints.Table, "queue": &a.endpoints.Queue, "blob": &a.endpoints.Blob} {
		if *endpoint == "" {
			continue
		}
		if err := connection.CheckEndpoint(service, *endpoint); err != nil {
			return nil, errs.Wiringf(op, "", "%w", err)
		}
		if err := connection.CheckAccount(service, *endpoint); err != nil {
			return nil, errs.Wiringf(op, "", "%w", err)
		}
		if a.token && !strings.HasPrefix(strings.ToLower(*endpoint), "https:") {
			return nil, errs.Wiringf(op, "", "the %s endpoint is an http address, and a token is sent over https only; use https, or another credential (an emulator over http takes a shared key)", service)
		}
		*endpoint = strings.TrimSuffix(*endpoint, "/")
	}
	a.cosmos = connection.IsCosmos(a.endpoints.Table)
	if options == nil {
		options = &AccountOptions{}
	}
	if options.MeterProvider != nil && fields.IsNil(options.MeterProvider) || options.TracerProvider != nil && fields.IsNil(options.TracerProvider) {
		return nil, errs.Wiringf(op, "", "AccountOptions.MeterProvider or TracerProvider is a nil pointer in an interface; give a provider, or leave the option out")
	}
	if options.TracerProvider != nil && !reflect.ValueOf(options.ClientOptions.TracingProvider).IsZero() {
		return nil, errs.Wiringf(op, "", "AccountOptions.TracerProvider and ClientOptions.TracingProvider are both set, and every request would have two spans; set only TracerProvider")
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
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	clients, err := credential.Clients(connection.Endpoints(a.endpoints), options.ClientOptions, a.telemetry)
	if err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
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
		return nil, errs.Wiringf(op, "", "%w", err)
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
		return nil, errs.Wiringf(op, "", "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_AUTH_MODE=login")
	case len(ways) > 1:
		return nil, errs.Wiringf(op, "", "%s are set; set only one of them", strings.Join(slices.Sorted(slices.Values(ways)), " and "))
	case text != "" && name != "":
		return nil, errs.Wiringf(op, "", "AZURE_STORAGE_CONNECTION_STRING and AZURE_STORAGE_ACCOUNT are set; set only one of them")
	case text == "" && name == "":
		return nil, errs.Wiringf(op, "", "%s is set without AZURE_STORAGE_ACCOUNT; set both", ways[0])
	}
	account, err := accountFromEnv(text, name, key, sas, options)
	if err != nil {
		return nil, err
	}
	account.name = max(account.name, name)
	account.source = ways[0] + " (" + account.source + ")"
	return account, nil
}

func accountFromEnv(text, name, key, sas string, options *AccountOptions) (*Account, error) {
	switch {
	case text != "":
		return NewAccountFromConnectionString(text, options)
	case key != "":
		return NewAccountWithSharedKey(AccountEndpoints(name), name, key, options)
	case sas != "":
		return NewAccountWithSAS(AccountEndpoints(name), sas, options)
	}
	credentialOptions := azidentity.DefaultAzureCredentialOptions{}
	if options != nil {
		credentialOptions.ClientOptions = options.ClientOptions
	}
	credential, err := azidentity.NewDefaultAzureCredential(&credentialOptions)
	if err != nil {
		return nil, errs.Wiringf("NewAccountFromEnv", "", "%w", err)
	}
	return NewAccount(AccountEndpoints(name), credential, options)
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
		return "", errs.Wiringf(op, "", "the account has no blob endpoint; give one in Endpoints")
	case a.signs == nil && !a.token:
		return "", errs.Wiringf(op, "", "an account made from a %s cannot sign; use one with a shared key or a token credential", a.source)
	case container == "" || blob == "":
		return "", errs.Invalidf(op, "the name of the container or of the blob is empty; both are needed")
	case !expiry.After(now) || expiry.After(now.Add(maxSigned)):
		return "", errs.Invalidf(op, "the expiry is %v from now; it must be more than 0 and at most %v", expiry.Sub(now).Round(time.Second), maxSigned)
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
		return "", errs.Invalid(op, wire.Redact(err))
	}
	return a.blobs.NewContainerClient(container).NewBlobClient(blob).URL() + "?" + query.Encode(), nil
}
