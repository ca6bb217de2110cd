package storagetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
)

// Service is a storage service to test against. Its fields are what a client needs to connect; its methods return
// unique names for tables, queues and containers, so that tests do not interfere.
//
// Printing a Service shows its endpoints only: the connection string and the key stay out of test logs.
type Service struct {
	// ConnectionString is for the table, queue and blob services, with the account's key or a shared access
	// signature.
	ConnectionString string
	// AccountName is empty if the connection string holds a shared access signature and no account.
	AccountName string
	// AccountKey is empty if the connection string holds a shared access signature.
	AccountKey string

	// TableEndpoint, QueueEndpoint and BlobEndpoint are the services' addresses, without a trailing slash. An
	// address that the connection string does not contain is empty.
	TableEndpoint, QueueEndpoint, BlobEndpoint string

	// ClientOptions are the options with which to make clients: they contain the transport to the simulator,
	// the transport that enforces Azure's rules in front of Azurite ([Strict]), or faults. A client without
	// them reaches Azurite without these rules, and cannot reach the simulator.
	ClientOptions azcore.ClientOptions

	// Clock is the simulator's time; nil for every other service.
	Clock *Clock

	sim *simulator.Simulator
	// keep is set for an account that outlives the tests: resources named by a test are deleted when the test ends.
	keep bool
}

// String names the service by its table endpoint, without secrets.
func (s *Service) String() string {
	return "storage service at " + s.TableEndpoint
}

// GoString returns the text of String, so that %#v shows no secret either.
func (s *Service) GoString() string {
	return s.String()
}

// The account that every Azurite knows, as published in its documentation; its key is public.
const (
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// newAzuriteService describes an Azurite whose three services listen at the given base addresses.
func newAzuriteService(a addresses) *Service {
	s := &Service{
		AccountName:   azuriteAccount,
		AccountKey:    azuriteKey,
		TableEndpoint: a.Table + "/" + azuriteAccount,
		QueueEndpoint: a.Queue + "/" + azuriteAccount,
		BlobEndpoint:  a.Blob + "/" + azuriteAccount,
	}
	s.setConnectionString()
	s.ClientOptions.Transport = newStrict(newHTTPClient(), newLocator(s))
	return s
}

// setConnectionString writes the connection string of a service whose other fields are set.
func (s *Service) setConnectionString() {
	s.ConnectionString = "DefaultEndpointsProtocol=http;AccountName=" + s.AccountName + ";AccountKey=" + s.AccountKey +
		";BlobEndpoint=" + s.BlobEndpoint + ";QueueEndpoint=" + s.QueueEndpoint + ";TableEndpoint=" + s.TableEndpoint + ";"
}

// newAccountService describes the account of a connection string. Its errors name the setting that is wrong and never
// a value, since the string holds a key.
func newAccountService(connectionString string) (*Service, error) {
	settings := map[string]string{}
	for part := range strings.SplitSeq(connectionString, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, errors.New("connection string: a setting has no '='; each must be name=value")
		}
		settings[name] = value
	}
	if strings.EqualFold(settings["UseDevelopmentStorage"], "true") {
		s := newAzuriteService(addresses{
			Blob: "http://127.0.0.1:10000", Queue: "http://127.0.0.1:10001", Table: "http://127.0.0.1:10002",
		})
		s.keep = true
		return s, nil
	}
	if settings["AccountKey"] == "" && settings["SharedAccessSignature"] == "" {
		return nil, errors.New("connection string: neither AccountKey nor SharedAccessSignature is set; set one of them")
	}
	s := &Service{
		ConnectionString: connectionString,
		AccountName:      settings["AccountName"],
		AccountKey:       settings["AccountKey"],
		TableEndpoint:    endpoint(settings, "TableEndpoint", "table"),
		QueueEndpoint:    endpoint(settings, "QueueEndpoint", "queue"),
		BlobEndpoint:     endpoint(settings, "BlobEndpoint", "blob"),
		keep:             true,
	}
	if s.TableEndpoint == "" {
		return nil, errors.New("connection string: neither TableEndpoint nor AccountName is set; set one of them")
	}
	return s, nil
}

// endpoint returns the address of a service: from the settings, or derived from the account's name.
func endpoint(settings map[string]string, name, service string) string {
	if e := settings[name]; e != "" {
		return strings.TrimRight(e, "/")
	}
	if settings["AccountName"] == "" {
		return ""
	}
	protocol, suffix := settings["DefaultEndpointsProtocol"], settings["EndpointSuffix"]
	if protocol == "" {
		protocol = "https"
	}
	if suffix == "" {
		suffix = "core.windows.net"
	}
	return fmt.Sprintf("%s://%s.%s.%s", protocol, settings["AccountName"], service, suffix)
}
