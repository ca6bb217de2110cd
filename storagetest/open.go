package storagetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"
)

// ServiceVariable is the environment variable that chooses the service of [Open]: "simulator", or "azurite" (the
// default).
const ServiceVariable = "STORAGETEST_SERVICE"

// Open returns the service on which a whole test suite runs: Azurite or, with STORAGETEST_SERVICE=simulator, a simulator that all
// tests of this test binary share and that needs neither Node nor a network.
func Open(t testing.TB) *Service {
	t.Helper()
	simulated, err := Simulated()
	if err != nil {
		t.Fatal(err)
	}
	if !simulated {
		return Azurite(t)
	}
	s, err := shared.getSimulator()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// OpenShared is [Open] for code that has no testing.TB. It ignores AZURE_STORAGE_CONNECTION_STRING, as [Shared] does.
func OpenShared() (*Service, error) {
	simulated, err := Simulated()
	switch {
	case err != nil:
		return nil, err
	case simulated:
		return shared.getSimulator()
	}
	return Shared()
}

// Simulated reports whether STORAGETEST_SERVICE asks for the simulator. Any other value than "simulator",
// "azurite" and "" is an error, so that a suite never runs on another service than the requested one.
func Simulated() (bool, error) {
	switch value := os.Getenv(ServiceVariable); value {
	case "", "azurite":
		return false, nil
	case "simulator":
		return true, nil
	default:
		return false, fmt.Errorf("storagetest: %s is %q; it must be azurite or simulator", ServiceVariable, value)
	}
}

// AzuriteOnly skips the rest of a test if STORAGETEST_SERVICE asks for the simulator. It is for tests of Azurite's own behaviour, and for those that kill processes. All
// other tests call Open.
func AzuriteOnly(t testing.TB) {
	t.Helper()
	simulated, err := Simulated()
	if err != nil {
		t.Fatal(err)
	}
	if simulated {
		t.Skipf("storagetest: this is about Azurite, and %s=simulator", ServiceVariable)
	}
}

// ConnectionStringVariable is the environment variable that names an account to test on in place of Azurite.
const ConnectionStringVariable = "AZURE_STORAGE_CONNECTION_STRING"

// Azurite returns a service for tests: the account of AZURE_STORAGE_CONNECTION_STRING if that is set, else an
// Azurite that all tests of this test binary share and that ends with it. If neither is available, it fails
// the test with a message that says what to install; it never skips a test.
func Azurite(t testing.TB) *Service {
	t.Helper()
	if cs := os.Getenv(ConnectionStringVariable); cs != "" {
		s, err := newAccountService(cs)
		if err != nil {
			t.Fatalf("storagetest: %s: %v", ConnectionStringVariable, err)
		}
		return s
	}
	server, err := shared.get(func(message string) { t.Log(message) })
	if err != nil {
		t.Fatalf("storagetest: %v", err)
	}
	if err := dialAll(server.service); err != nil {
		t.Fatalf("storagetest: Azurite, which was running, is gone; its last words are on standard error: %v", err)
	}
	return server.service
}

// Shared returns the Azurite that Azurite(t) gives to the tests of this test binary, for code that has no
// testing.TB: Example functions and TestMain. It ignores AZURE_STORAGE_CONNECTION_STRING, since nothing would
// delete their resources from an account.
func Shared() (*Service, error) {
	server, err := shared.get(nil)
	if err != nil {
		return nil, err
	}
	return server.service, nil
}

// shared holds the process's Azurite. It is the only variable of the package: it must live as long as the
// test binary, and the package needs no TestMain.
var shared sharedServices

type sharedServices struct {
	once   sync.Once
	server *AzuriteServer
	err    error

	simulatorOnce sync.Once
	simulator     *Service
	simulatorErr  error
}

// get starts the process's Azurite on the first call. If the start fails, it returns the same error to all
// later calls, since further attempts would only cost time.
func (s *sharedServices) get(progress func(message string)) (*AzuriteServer, error) {
	s.once.Do(func() {
		// Do not use t.Context(): the server outlives the test that happens to start it.
		s.server, s.err = StartAzurite(context.Background(), &AzuriteOptions{Progress: progress})
	})
	return s.server, s.err
}

func (s *sharedServices) getSimulator() (*Service, error) {
	s.simulatorOnce.Do(func() { s.simulator, s.simulatorErr = NewSimulator(nil) })
	return s.simulator, s.simulatorErr
}

// dialAll connects to each of the three services once, so that a test that starts after Azurite has died
// fails at once and not only after the client's retries.
func dialAll(s *Service) error {
	for _, endpoint := range []string{s.TableEndpoint, s.QueueEndpoint, s.BlobEndpoint} {
		u, err := url.Parse(endpoint)
		if err != nil {
			return err
		}
		conn, err := net.DialTimeout("tcp", u.Host, 5*time.Second)
		if err != nil {
			return err
		}
		conn.Close()
	}
	return nil
}
