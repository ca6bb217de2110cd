package storagetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
)

// Service is a storage service to test against: what a client needs to connect, and unique names, so that tests do not interfere. Printing it shows
// no connection string or key.
type Service struct {
	// ConnectionString is for all three services, with the account's key or a shared access signature.
	ConnectionString string
	// AccountName is empty for a shared access signature without an account.
	AccountName string
	// AccountKey is empty for a shared access signature.
	AccountKey string

	// TableEndpoint, QueueEndpoint and BlobEndpoint have no trailing slash, and are empty if the connection string lacks them.
	TableEndpoint, QueueEndpoint, BlobEndpoint string

	// ClientOptions are for clients: they have the transport to the simulator, Azure's rules in front of Azurite ([Strict]), or faults. Without
	// them a client reaches Azurite without these rules, and no simulator.
	ClientOptions azcore.ClientOptions

	// Clock is the simulator's time; nil for every other service.
	Clock *Clock

	sim *simulator.Simulator
	// keep is set for an account that outlives the tests: their resources are then deleted.
	keep bool
}

// String names the service by its table endpoint, without secrets.
func (s *Service) String() string { return "storage service at " + s.TableEndpoint }

// GoString is String, so that %#v shows no secret either.
func (s *Service) GoString() string { return s.String() }

// The account of every Azurite; its key is public.
const (
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

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

func (s *Service) setConnectionString() {
	s.ConnectionString = "DefaultEndpointsProtocol=http;AccountName=" + s.AccountName + ";AccountKey=" + s.AccountKey +
		";BlobEndpoint=" + s.BlobEndpoint + ";QueueEndpoint=" + s.QueueEndpoint + ";TableEndpoint=" + s.TableEndpoint + ";"
}

// newAccountService names in its errors the wrong setting and never a value, since the string holds a key.
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

// endpoint is in the settings, or derived from the account's name.
func endpoint(settings map[string]string, name, service string) string {
	if e := settings[name]; e != "" {
		return strings.TrimRight(e, "/")
	}
	if settings["AccountName"] == "" {
		return ""
	}
	return fmt.Sprintf("%s://%s.%s.%s", cmp.Or(settings["DefaultEndpointsProtocol"], "https"), settings["AccountName"], service,
		cmp.Or(settings["EndpointSuffix"], "core.windows.net"))
}

// WithTransport returns the same service with the transport that wrap returns for the present one.
func (s *Service) WithTransport(wrap func(inner policy.Transporter) policy.Transporter) *Service {
	inner := s.ClientOptions.Transport
	if inner == nil {
		inner = http.DefaultClient
	}
	wrapped := *s
	wrapped.ClientOptions.Transport = wrap(inner)
	return &wrapped
}

// Faulty returns the same service for one client process whose calls meet the injector's faults, and a record of these calls. Clients of s itself
// meet none, so a test can write through the faulty service and read through s:
//
//	faulty, calls := s.Faulty(storagetest.OnIndex(1, storagetest.LostAnswer))
func (s *Service) Faulty(injector Injector) (*Service, *Faults) {
	var faults *Faults
	front := func(inner policy.Transporter) policy.Transporter {
		faults = NewFaults(inner, injector)
		faults.locate = newLocator(s)
		return faults
	}
	faulty := s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		if gate, ok := inner.(interface {
			Behind(wrap func(policy.Transporter) policy.Transporter) policy.Transporter
		}); ok {
			return gate.Behind(front)
		}
		return front(inner)
	})
	return faulty, faults
}

// WithRetries returns the same service, where the SDK repeats a failed request up to n times, almost at once; 0 is never.
func (s *Service) WithRetries(n int32) *Service {
	again := *s
	again.ClientOptions.Retry = policy.RetryOptions{MaxRetries: -1}
	if n > 0 {
		again.ClientOptions.Retry = policy.RetryOptions{MaxRetries: n, RetryDelay: time.Microsecond, MaxRetryDelay: time.Millisecond}
	}
	return &again
}

// CallNamer returns a function for your own transports and policies, which names the call of a request. Send the request that it returns, since it
// reads the body of a transaction.
func (s *Service) CallNamer() func(req *http.Request) (Call, *http.Request, error) {
	return newLocator(s).call
}

// maxName leaves room, of the 63 characters allowed, for derived names such as that of a poison queue.
const maxName = 50

// TableName returns a unique table name of at most 50 letters and digits that begins with the test's name; it creates no table. On an account of
// AZURE_STORAGE_CONNECTION_STRING, such a table is deleted when the test ends.
func (s *Service) TableName(t testing.TB) string {
	t.Helper()
	name := uniqueName(t.Name())
	s.deleteAtEnd(t, name, func(ctx context.Context) error {
		client, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, nil)
		if err != nil {
			return err
		}
		_, err = client.DeleteTable(ctx, name, nil)
		return err
	})
	return name
}

// QueueName is [Service.TableName] for a queue, in lower case.
func (s *Service) QueueName(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(uniqueName(t.Name()))
	s.deleteAtEnd(t, name, func(ctx context.Context) error {
		client, err := azqueue.NewServiceClientFromConnectionString(s.ConnectionString, nil)
		if err != nil {
			return err
		}
		_, err = client.DeleteQueue(ctx, name, nil)
		return err
	})
	return name
}

// ContainerName is [Service.TableName] for a blob container, in lower case.
func (s *Service) ContainerName(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(uniqueName(t.Name()))
	s.deleteAtEnd(t, name, func(ctx context.Context) error {
		client, err := azblob.NewClientFromConnectionString(s.ConnectionString, nil)
		if err != nil {
			return err
		}
		_, err = client.DeleteContainer(ctx, name, nil)
		return err
	})
	return name
}

// uniqueName adds 64 random bits, not a counter: test binaries can share an account, where the name of a deleted table stays taken for a while.
func uniqueName(name string) string {
	var random [8]byte
	rand.Read(random[:]) // never fails
	suffix := hex.EncodeToString(random[:])

	b := make([]byte, 0, maxName)
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if len(b) == 0 && !letter {
			b = append(b, 'T') // as a table's name must
		}
		if letter || '0' <= c && c <= '9' {
			b = append(b, c)
		}
		if len(b) == maxName-len(suffix) {
			break
		}
	}
	if len(b) == 0 {
		b = append(b, 'T')
	}
	return string(b) + suffix
}

const cleanupTime = 30 * time.Second

// deleteAtEnd deletes on an account that outlives the test. A failure is only logged, since the test has finished its checks.
func (s *Service) deleteAtEnd(t testing.TB, name string, del func(context.Context) error) {
	if !s.keep {
		return // this Azurite ends with the test binary
	}
	t.Cleanup(func() {
		// t.Context() is cancelled when clean-up functions run.
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		if reason := failure(del(ctx)); reason != "" {
			t.Logf("storagetest: %q is left on the account: %s", name, reason)
		}
	})
}

// failure returns why a deletion failed, or "". It omits the error's text, which can contain a shared access signature.
func failure(err error) string {
	var answer *azcore.ResponseError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return ""
	case errors.As(err, &answer):
		return "the service answered " + http.StatusText(answer.StatusCode) + " " + answer.ErrorCode
	default:
		return "the request got no answer"
	}
}
