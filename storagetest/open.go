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

// ServiceVariable chooses the service of [Open]: "simulator", or "azurite" (the default).
const ServiceVariable = "STORAGETEST_SERVICE"

// Open returns the service of a whole test suite: Azurite or, with STORAGETEST_SERVICE=simulator, a simulator that all tests of this binary share.
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

// OpenShared is [Open] without a testing.TB. It ignores AZURE_STORAGE_CONNECTION_STRING, as [Shared] does.
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

// Simulated reports whether STORAGETEST_SERVICE asks for the simulator. An unknown value is an error, so that a suite never runs on another service
// than requested.
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

// AzuriteOnly skips a test if STORAGETEST_SERVICE asks for the simulator: for Azurite's own behaviour, and for tests that kill processes. All
// others call Open.
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

// ConnectionStringVariable names an account to test on in place of Azurite.
const ConnectionStringVariable = "AZURE_STORAGE_CONNECTION_STRING"

// Azurite returns the account of AZURE_STORAGE_CONNECTION_STRING, if that is set, else an Azurite that all tests of this binary share. If neither
// is available, it fails the test with a message that says what to install; it never skips a test.
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

// Shared returns the Azurite of this test binary without a testing.TB, for Example functions and TestMain. It ignores
// AZURE_STORAGE_CONNECTION_STRING: nothing would delete their resources from an account.
func Shared() (*Service, error) {
	server, err := shared.get(nil)
	if err != nil {
		return nil, err
	}
	return server.service, nil
}

// shared holds the process's Azurite. It is the only variable of the package: it must live as long as the test binary, without a TestMain.
var shared sharedServices

type sharedServices struct {
	once   sync.Once
	server *AzuriteServer
	err    error

	simulatorOnce sync.Once
	simulator     *Service
	simulatorErr  error
}

// get starts Azurite on the first call. All later calls get the error of a failed start, since further attempts would only cost time.
func (s *sharedServices) get(progress func(message string)) (*AzuriteServer, error) {
	s.once.Do(func() {
		// Not t.Context(): the server outlives the test that starts it.
		s.server, s.err = StartAzurite(context.Background(), &AzuriteOptions{Progress: progress})
	})
	return s.server, s.err
}

func (s *sharedServices) getSimulator() (*Service, error) {
	s.simulatorOnce.Do(func() { s.simulator, s.simulatorErr = NewSimulator(nil) })
	return s.simulator, s.simulatorErr
}

// dialAll fails a test at once if Azurite has died, and not only after the client's retries.
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
