// Package connection parses and checks how a program names a storage account: connection strings, account names and endpoints. It also
// signs addresses of blobs. Its errors name a setting and never its value, which may be a key.
package connection

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

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

// A setting that becomes a part of an endpoint decides where requests and their signatures go, so it must not
// contain characters that would end that part. The check also finds a connection string that lacks a
// semicolon: then one of these settings contains the key.
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
