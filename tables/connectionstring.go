package tables

import (
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/tablepatterns/tablepatterns/internal/connection"
)

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
		return nil, Wiringf("NewAccountFromEnv", "", "%w", err)
	}
	return NewAccount(AccountEndpoints(name), credential, options)
}
