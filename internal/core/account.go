package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
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
	Credential     azcore.TokenCredential
}

// Account is a storage account: it makes Table handles and links the SDK's clients. It is safe for concurrent use.
type Account struct {
	name      string
	source    string
	identity  string
	endpoints Endpoints
	cosmos    bool
	tables    *aztables.ServiceClient
	link      connection.Link
	others    *sync.Map    // from the name of another service to its client
	log       *slog.Logger // nil for slog.Default()
	telemetry *telemetry.Telemetry
}

// NewAccount returns an account that uses a token credential, such as one of package azidentity. Requests: 0.
func NewAccount(endpoints Endpoints, credential azcore.TokenCredential, options *AccountOptions) (*Account, error) {
	secret, ok := connection.Token(credential)
	if !ok {
		return nil, errs.Wiringf("NewAccount", "", "the credential is nil; give one, such as azidentity.NewDefaultAzureCredential returns")
	}
	return build("NewAccount", &Account{endpoints: endpoints, source: "token credential"}, options, secret)
}

// NewAccountWithSharedKey returns an account that uses the account's name and one of its keys, which is base64. Requests: 0.
func NewAccountWithSharedKey(endpoints Endpoints, name, key string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSharedKey"
	if !connection.IsAccountName(name) {
		return nil, errs.Wiringf(op, "", "the account's name has %d characters; it must have 3 to 63 letters, digits and hyphens", len(name))
	}
	if _, err := aztables.NewSharedKeyCredential(name, key); err != nil {
		return nil, errs.Wiringf(op, "", "the key of account %q is not base64; give it as the portal shows it", name)
	}
	return build(op, &Account{name: name, endpoints: endpoints, source: "shared key"}, options, connection.Secret{Name: name, Key: key})
}

// NewAccountWithSAS returns an account that uses a shared access signature: the query string of a SAS address, with or without the
// question mark. Requests: 0.
func NewAccountWithSAS(endpoints Endpoints, sas string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountWithSAS"
	secret, ok := connection.SAS(sas)
	if !ok {
		return nil, errs.Wiringf(op, "", "the shared access signature is not a query string with a parameter sig; give all that follows the question mark of its address")
	}
	return build(op, &Account{endpoints: endpoints, source: "shared access signature"}, options, secret)
}

func build(op string, a *Account, options *AccountOptions, secret connection.Secret) (*Account, error) {
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
		if secret.Token != nil && !strings.HasPrefix(strings.ToLower(*endpoint), "https:") {
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
	a.others, a.link = &sync.Map{}, connection.NewLink(secret, options.ClientOptions, a.telemetry)
	if a.tables, err = a.link.Tables(a.endpoints.Table); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	return a, nil
}

// Client returns the account's client of another service, nil for an account without that endpoint. open makes it at the first call, so
// that a program links the SDK's packages of the services that it uses, and no others. NewAccount has refused all that open could fail for.
func Client[C any](a *Account, service, endpoint string, open func(endpoint string, secret connection.Secret, options azcore.ClientOptions) (*C, error)) *C {
	if a == nil || a.link == nil || endpoint == "" {
		return nil
	}
	if client, ok := a.others.Load(service); ok {
		return client.(*C)
	}
	secret, options := a.link(service, endpoint)
	made, err := open(endpoint, secret, options)
	if err != nil {
		return nil
	}
	client, _ := a.others.LoadOrStore(service, made) // of concurrent callers, all get the first one's
	return client.(*C)
}

// Secret returns what the account authenticates its requests with, for signatures of addresses.
func (a *Account) Secret() connection.Secret {
	secret, _ := a.link(connection.Tables, a.endpoints.Table)
	return secret
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
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_AUTH_MODE=login: AccountOptions.Credential
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
	if options == nil || fields.IsNil(options.Credential) {
		return nil, errs.Wiringf("NewAccountFromEnv", "", "AZURE_STORAGE_AUTH_MODE=login needs a credential; set AccountOptions.Credential, for example to that of azidentity.NewDefaultAzureCredential")
	}
	return NewAccount(AccountEndpoints(name), options.Credential, options)
}
