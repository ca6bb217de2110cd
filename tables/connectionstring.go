package tables

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// The account that Azurite and the older storage emulator know by default. Its key is public.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// NewAccountFromConnectionString reads an Azure Storage connection string in any of its forms: account name and key,
// shared access signature, custom endpoints, UseDevelopmentStorage=true. It makes no request. Errors name the setting
// that is wrong and never its value.
func NewAccountFromConnectionString(connectionString string, options *AccountOptions) (*Account, error) {
	const op = "NewAccountFromConnectionString"
	settings, err := parseConnectionString(connectionString)
	if err != nil {
		return nil, Invalid(op, err)
	}
	endpoints, err := settings.endpoints()
	if err != nil {
		return nil, Invalid(op, err)
	}
	name, key, sas := settings["accountname"], settings["accountkey"], settings["sharedaccesssignature"]
	switch {
	case key != "" && sas != "":
		return nil, Invalidf(op, "it has both AccountKey and SharedAccessSignature")
	case key != "" && name == "":
		return nil, Invalidf(op, "it has AccountKey without AccountName")
	case key != "":
		return NewAccountWithSharedKey(endpoints, name, key, options)
	case sas != "":
		account, err := NewAccountWithSAS(endpoints, sas, options)
		if err == nil {
			account.name = name
		}
		return account, err
	}
	return nil, Invalidf(op, "it has neither AccountKey nor SharedAccessSignature nor UseDevelopmentStorage=true")
}

// settings are the parts of a connection string; their names in lower case, since services ignore it.
type settings map[string]string

var knownSettings = map[string]bool{
	"accountname": true, "accountkey": true, "sharedaccesssignature": true, "defaultendpointsprotocol": true,
	"endpointsuffix": true, "tableendpoint": true, "queueendpoint": true, "blobendpoint": true, "fileendpoint": true,
	"tablesecondaryendpoint": true, "queuesecondaryendpoint": true, "blobsecondaryendpoint": true,
	"filesecondaryendpoint": true, "usedevelopmentstorage": true, "developmentstorageproxyuri": true,
}

func parseConnectionString(text string) (settings, error) {
	s := settings{}
	for i, part := range strings.Split(strings.TrimSpace(text), ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("its part %d is not name=value", i+1)
		}
		key := strings.ToLower(strings.TrimSpace(name))
		if !knownSettings[key] {
			return nil, fmt.Errorf("its part %d is no known setting", i+1)
		}
		if _, twice := s[key]; twice {
			return nil, fmt.Errorf("it has %s twice", name)
		}
		s[key] = strings.TrimSpace(value)
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	return s, s.expandDevelopment()
}

// expandDevelopment spells UseDevelopmentStorage=true out.
func (s settings) expandDevelopment() error {
	use, ok := s["usedevelopmentstorage"]
	if !ok {
		return nil
	}
	if !strings.EqualFold(use, "true") {
		return fmt.Errorf("UseDevelopmentStorage can only be true")
	}
	if s["accountname"] != "" || s["accountkey"] != "" || s["sharedaccesssignature"] != "" {
		return fmt.Errorf("UseDevelopmentStorage does not go with an account of its own")
	}
	host := strings.TrimSuffix(s["developmentstorageproxyuri"], "/")
	if host == "" {
		host = "http://127.0.0.1"
	}
	s["accountname"], s["accountkey"] = developmentAccount, developmentKey
	for service, port := range map[string]string{"blobendpoint": "10000", "queueendpoint": "10001", "tableendpoint": "10002"} {
		if s[service] == "" {
			s[service] = host + ":" + port + "/" + developmentAccount
		}
	}
	return nil
}

func (s settings) endpoints() (Endpoints, error) {
	var e Endpoints
	if name := s["accountname"]; name != "" {
		if !accountName.MatchString(name) {
			return e, fmt.Errorf("its AccountName is not 3 to 63 letters, digits and hyphens; is a semicolon missing behind it?")
		}
		scheme, suffix := s["defaultendpointsprotocol"], s["endpointsuffix"]
		if scheme == "" {
			scheme = "https"
		}
		if scheme != "https" && scheme != "http" {
			return e, fmt.Errorf("DefaultEndpointsProtocol is neither http nor https")
		}
		if suffix == "" {
			suffix = "core.windows.net"
		}
		if !hostName.MatchString(suffix) {
			return e, fmt.Errorf("its EndpointSuffix is not the name of a host; is a semicolon missing behind it?")
		}
		e = endpointsOf(scheme, name, suffix)
	}
	for target, value := range map[*string]string{&e.Table: s["tableendpoint"], &e.Queue: s["queueendpoint"], &e.Blob: s["blobendpoint"]} {
		if value != "" {
			*target = value
		}
	}
	if e.Table == "" {
		return e, fmt.Errorf("it has neither AccountName nor TableEndpoint")
	}
	return e, nil
}

// NewAccountFromEnv looks for an account in the environment, in the variables that Azure's command line uses:
//
//	AZURE_STORAGE_CONNECTION_STRING
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_SAS_TOKEN
//	AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_AUTH_MODE=login: azidentity's DefaultAzureCredential
//
// More than one way at once is ErrInvalid, since guessing could write to the wrong account. Account.Source says what
// was chosen.
func NewAccountFromEnv(options *AccountOptions) (*Account, error) {
	const op = "NewAccountFromEnv"
	connection, name := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), os.Getenv("AZURE_STORAGE_ACCOUNT")
	key, sas, login := os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN"), os.Getenv("AZURE_STORAGE_AUTH_MODE") == "login"
	var ways []string
	for way, set := range map[string]bool{"AZURE_STORAGE_CONNECTION_STRING": connection != "", "AZURE_STORAGE_KEY": key != "",
		"AZURE_STORAGE_SAS_TOKEN": sas != "", "AZURE_STORAGE_AUTH_MODE=login": login} {
		if set {
			ways = append(ways, way)
		}
	}
	switch {
	case len(ways) == 0:
		return nil, Invalidf(op, "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_AUTH_MODE=login")
	case len(ways) > 1:
		return nil, Invalidf(op, "%s are set; only one may be", strings.Join(slices.Sorted(slices.Values(ways)), " and "))
	case connection != "" && name != "":
		return nil, Invalidf(op, "AZURE_STORAGE_CONNECTION_STRING and AZURE_STORAGE_ACCOUNT are set; only one may be")
	case connection == "" && name == "":
		return nil, Invalidf(op, "%s needs AZURE_STORAGE_ACCOUNT", ways[0])
	}
	account, err := accountFromEnv(connection, name, key, sas, options)
	if err != nil {
		return nil, err
	}
	account.name = max(account.name, name)
	account.source = ways[0] + " (" + account.source + ")"
	return account, nil
}

func accountFromEnv(connection, name, key, sas string, options *AccountOptions) (*Account, error) {
	switch {
	case connection != "":
		return NewAccountFromConnectionString(connection, options)
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
		return nil, Invalid("NewAccountFromEnv", err)
	}
	return NewAccount(AccountEndpoints(name), credential, options)
}
