package storagetest

import (
	"fmt"
	"os"
	"testing"
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

// AzuriteOnly skips the rest of a test if STORAGETEST_SERVICE asks for the simulator. It is for tests of Azurite's own behaviour. All
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

func (s *sharedServices) getSimulator() (*Service, error) {
	s.simulatorOnce.Do(func() { s.simulator, s.simulatorErr = NewSimulator(nil) })
	return s.simulator, s.simulatorErr
}
