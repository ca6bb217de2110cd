// Package connection parses and checks how a program names a storage account: connection strings, account names and endpoints. It also
// signs addresses of blobs. Its errors name a setting and never its value, which may be a key.
package connection

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// The default account of Azurite and the older storage emulator. Its key is public.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Account is a parsed connection string; either Key or SAS is set.
type Account struct {
	Name, Key, SAS string
	Endpoints      Endpoints
}

// Parse reads a connection string.
func Parse(text string) (Account, error) {
	s, err := parse(text)
	if err != nil {
		return Account{}, err
	}
	a := Account{Name: s["accountname"], Key: s["accountkey"], SAS: s["sharedaccesssignature"]}
	if a.Endpoints, err = s.endpoints(); err != nil {
		return Account{}, err
	}
	switch {
	case a.Key != "" && a.SAS != "":
		return Account{}, errors.New("the connection string has both AccountKey and SharedAccessSignature; only one may be set")
	case a.Key != "" && a.Name == "":
		return Account{}, errors.New("the connection string has AccountKey without AccountName; set both")
	case a.Key == "" && a.SAS == "":
		return Account{}, errors.New("the connection string has neither AccountKey nor SharedAccessSignature nor UseDevelopmentStorage=true; set one of them")
	}
	return a, nil
}

// settings are the parts of a connection string. The names are in lower case, since services ignore their case.
type settings map[string]string

var knownSettings = map[string]bool{
	"accountname": true, "accountkey": true, "sharedaccesssignature": true, "defaultendpointsprotocol": true,
	"endpointsuffix": true, "tableendpoint": true, "queueendpoint": true, "blobendpoint": true, "fileendpoint": true,
	"tablesecondaryendpoint": true, "queuesecondaryendpoint": true, "blobsecondaryendpoint": true,
	"filesecondaryendpoint": true, "usedevelopmentstorage": true, "developmentstorageproxyuri": true,
}

func parse(text string) (settings, error) {
	s := settings{}
	if trimmed := strings.TrimSpace(text); strings.Trim(trimmed, "\"'") != trimmed {
		return nil, errors.New("the connection string is in quotation marks, which belong to it as the program sees it; remove them (docker --env-file and Kubernetes keep the quotes of NAME=\"value\")")
	}
	for i, part := range strings.Split(strings.TrimSpace(text), ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("part %d of the connection string is not name=value; is a semicolon or an equals sign missing?", i+1)
		}
		key := strings.ToLower(strings.TrimSpace(name))
		if !knownSettings[key] {
			return nil, fmt.Errorf("part %d of the connection string is an unknown setting; is a semicolon missing before it?", i+1)
		}
		if _, twice := s[key]; twice {
			return nil, fmt.Errorf("the connection string has %s twice; only one may be set", name)
		}
		s[key] = strings.TrimSpace(value)
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("the connection string is empty; copy it from the account's access keys in the portal")
	}
	return s, s.expandDevelopment()
}

// expandDevelopment replaces UseDevelopmentStorage=true by the settings that it stands for.
func (s settings) expandDevelopment() error {
	use, ok := s["usedevelopmentstorage"]
	if !ok {
		return nil
	}
	if !strings.EqualFold(use, "true") {
		return fmt.Errorf("UseDevelopmentStorage of the connection string has another value than true; set it to true or remove it")
	}
	if s["accountname"] != "" || s["accountkey"] != "" || s["sharedaccesssignature"] != "" {
		return fmt.Errorf("the connection string has UseDevelopmentStorage and also names an account; remove one of the two")
	}
	host := cmp.Or(strings.TrimSuffix(s["developmentstorageproxyuri"], "/"), "http://127.0.0.1")
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
			return e, fmt.Errorf("the AccountName of the connection string must have 3 to 63 letters, digits and hyphens; is a semicolon missing after it?")
		}
		scheme, suffix := cmp.Or(s["defaultendpointsprotocol"], "https"), cmp.Or(s["endpointsuffix"], "core.windows.net")
		if scheme != "https" && scheme != "http" {
			return e, fmt.Errorf("DefaultEndpointsProtocol of the connection string must be http or https")
		}
		if !hostName.MatchString(suffix) {
			return e, fmt.Errorf("the EndpointSuffix of the connection string must be the name of a host; is a semicolon missing after it?")
		}
		e = endpointsOf(scheme, name, suffix)
	}
	e.Table = cmp.Or(s["tableendpoint"], e.Table)
	e.Queue = cmp.Or(s["queueendpoint"], e.Queue)
	e.Blob = cmp.Or(s["blobendpoint"], e.Blob)
	if e.Table == "" {
		return e, fmt.Errorf("the connection string has neither AccountName nor TableEndpoint; set one of them")
	}
	return e, nil
}

// Endpoints are the addresses of an account's services.
type Endpoints struct {
	Table, Queue, Blob string
}

// PublicEndpoints returns the endpoints of an account in Azure's public cloud, or no endpoints if the name is illegal.
func PublicEndpoints(account string) Endpoints {
	if !IsAccountName(account) {
		return Endpoints{}
	}
	return endpointsOf("https", account, "core.windows.net")
}

// IsAccountName reports whether an account can have the name.
func IsAccountName(name string) bool { return accountName.MatchString(name) }

// The forms of the parts of an endpoint, which decides where requests and their signatures go. They exclude every
// character that would end a part. So they also detect a missing semicolon in a connection string, because the setting
// before it then contains the next setting, which may be the key.
var (
	accountName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{1,61}[A-Za-z0-9]$`)
	hostName     = regexp.MustCompile(`^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(:[0-9]{1,5})?$`)
	endpointPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]*)*$`)
)

// CheckEndpoint returns an error unless the address has the form of a service's address: scheme, host and at
// most a path. The error never shows the address, which may contain a key.
func CheckEndpoint(service, endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.User != nil, u.RawQuery != "", u.Fragment != "", u.RawPath != "",
		!endpointPath.MatchString(u.Path), !hostName.MatchString(u.Host) && net.ParseIP(u.Hostname()) == nil:
		return fmt.Errorf("the %s endpoint is not an http(s) address of a host and a path: it must look like https://contoso.%[1]s.core.windows.net", service)
	}
	return nil
}

// Identity returns the name of the account of a table endpoint: host in lower case, and path. It omits the port, since a local service has
// another port after each start, and the ending of the address of the account's secondary location; names of Cosmos DB accounts may have
// that ending themselves.
func Identity(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	host, path := strings.ToLower(u.Hostname()), strings.TrimSuffix(u.Path, "/")
	if IsCosmos(endpoint) {
		return host + path
	}
	if first, rest, more := strings.Cut(host, "."); more {
		host = strings.TrimSuffix(first, secondaryEnd) + "." + rest
	}
	return host + strings.TrimSuffix(path, secondaryEnd)
}

// secondaryEnd is the end of an account's name in the address of its secondary location.
const secondaryEnd = "-secondary"

// emulator has the ports of Azurite and the older emulator.
var emulator = map[string]bool{"10000": true, "10001": true, "10002": true}

// IsEmulator reports whether the host of an address, with its port, is where an emulator listens by default.
func IsEmulator(host string) bool {
	name, port, err := net.SplitHostPort(host)
	ip := net.ParseIP(name)
	return err == nil && emulator[port] && (name == "localhost" || ip != nil && ip.IsLoopback())
}

// CheckAccount returns an error for an address of an emulator that lacks the account's name, which other services have in their host.
func CheckAccount(service, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err == nil && IsEmulator(u.Host) && strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("the %s endpoint is one of an emulator, without an account; append its name: %s/%s", service, strings.TrimSuffix(endpoint, "/"), developmentAccount)
	}
	return nil
}

func endpointsOf(scheme, account, suffix string) Endpoints {
	return Endpoints{
		Table: scheme + "://" + account + ".table." + suffix,
		Queue: scheme + "://" + account + ".queue." + suffix,
		Blob:  scheme + "://" + account + ".blob." + suffix,
	}
}

// IsCosmos reports whether the address belongs to Cosmos DB for Table, by the same rule as the SDK.
func IsCosmos(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return strings.Contains(host, ".table.cosmosdb.") || strings.Contains(host, ".table.cosmos.") ||
		u.Hostname() == "localhost" && u.Port() == "8902"
}
