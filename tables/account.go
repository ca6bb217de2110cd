package tables

import (
	"log/slog"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tablepatterns/tablepatterns/internal/core"
)

// Endpoints are the addresses of an account's services, such as https://contoso.table.core.windows.net. Table is required; Queue and
// Blob are needed only for patterns that use queues or blobs.
type Endpoints struct {
	Table, Queue, Blob string
}

// AccountEndpoints returns the endpoints of an account in Azure's public cloud. An account's name has 3 to 63 letters, digits and
// hyphens; for any other name the endpoints are empty, and every NewAccount function returns ErrWiring for them.
func AccountEndpoints(account string) Endpoints {
	return Endpoints(core.AccountEndpoints(account))
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
	// Credential is what NewAccountFromEnv uses with AZURE_STORAGE_AUTH_MODE=login, such as the result of
	// azidentity.NewDefaultAzureCredential. This module does not import azidentity, so that only programs that use it link it. The
	// other functions ignore Credential.
	Credential azcore.TokenCredential
}

// options are the options of the constructors for the core.
func (o *AccountOptions) core() *core.AccountOptions { return (*core.AccountOptions)(o) }

// Account is a storage account: it makes Table handles. Package blobs makes the SDK's clients for its blobs, and package eventual its
// queues. It is safe for concurrent use.
type Account core.Account

func (a *Account) core() *core.Account { return (*core.Account)(a) }

// NewAccount returns an account that uses a token credential, such as one of package azidentity. Requests: 0.
func NewAccount(endpoints Endpoints, credential azcore.TokenCredential, options *AccountOptions) (*Account, error) {
	account, err := core.NewAccount(core.Endpoints(endpoints), credential, options.core())
	return (*Account)(account), err
}

// NewAccountWithSharedKey returns an account that uses the account's name and one of its keys, which is base64. Requests: 0.
func NewAccountWithSharedKey(endpoints Endpoints, name, key string, options *AccountOptions) (*Account, error) {
	account, err := core.NewAccountWithSharedKey(core.Endpoints(endpoints), name, key, options.core())
	return (*Account)(account), err
}

// NewAccountWithSAS returns an account that uses a shared access signature: the query string of a SAS address, with or without the
// question mark. Requests: 0.
func NewAccountWithSAS(endpoints Endpoints, sas string, options *AccountOptions) (*Account, error) {
	account, err := core.NewAccountWithSAS(core.Endpoints(endpoints), sas, options.core())
	return (*Account)(account), err
}

// NewAccountFromConnectionString reads an Azure Storage connection string in any of its forms: account name and key,
// shared access signature, custom endpoints, UseDevelopmentStorage=true. Errors name the setting
// that is wrong and never its value. Requests: 0.
func NewAccountFromConnectionString(connectionString string, options *AccountOptions) (*Account, error) {
	account, err := core.NewAccountFromConnectionString(connectionString, options.core())
	return (*Account)(account), err
}

// NewAccountFromEnv returns the account that the environment names, in the variables of Azure's command line. One of these must be set:
//
//	AZURE_STORAGE_CONNECTION_STRING
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_SAS_TOKEN
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_AUTH_MODE=login: AccountOptions.Credential
//
// It returns ErrWiring if more than one of them is set, since a guess could write to the wrong account. Account.Source says which one
// was used. Requests: 0.
func NewAccountFromEnv(options *AccountOptions) (*Account, error) {
	account, err := core.NewAccountFromEnv(options.core())
	return (*Account)(account), err
}

// Name returns the account's name, "" if the account was made without a name, for example from a token credential.
func (a *Account) Name() string { return a.core().Name() }

// Identity returns AccountOptions.Identity, or its default. It is "" for a nil account.
func (a *Account) Identity() string { return a.core().Identity() }

// Source says what the account was made from, without secrets: "shared key", "AZURE_STORAGE_CONNECTION_STRING ...".
func (a *Account) Source() string { return a.core().Source() }

// Endpoints returns the addresses in use, without secrets.
func (a *Account) Endpoints() Endpoints { return Endpoints(a.core().Endpoints()) }

// IsCosmos reports whether the endpoint belongs to Azure Cosmos DB for Table, whose queries return rows in no order.
// It is false for a nil account.
func (a *Account) IsCosmos() bool { return a.core().IsCosmos() }

// Logger returns AccountOptions.Logger, or the current slog.Default() if that is nil.
func (a *Account) Logger() *slog.Logger { return a.core().Logger() }

// TableService returns the SDK's client for the table service.
func (a *Account) TableService() *aztables.ServiceClient { return a.core().TableService() }

// String returns the table endpoint and Source, never a credential.
func (a *Account) String() string { return a.core().String() }

// LogValue returns the text of String, for log/slog.
func (a *Account) LogValue() slog.Value { return a.core().LogValue() }
