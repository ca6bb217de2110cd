package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
)

// SimulatorOptions are the options of [Simulator]; nil is the same as the zero value.
type SimulatorOptions struct {
	// Account is the account's name; empty is contoso.
	Account string
	// Start is the initial time of the clock; zero is a fixed time, the same in every run.
	Start time.Time
	// Seed determines all random choices of Chaos.
	Seed uint64
	// TableDeletion is how long the name of a dropped table stays taken; zero means 40 s; if it is negative,
	// the name is free at once.
	TableDeletion time.Duration
	// Chaos is the initial chaos; [Service.SetChaos] changes it.
	Chaos Chaos
}

// Simulator returns a storage account in memory, fresh and empty: tables, queues and blobs behind the SDK's
// transport, with the service's rules, limits, error codes and signatures, and with a clock that the test sets. It
// needs no Node, no network and no clean-up, and answers in microseconds. Clients must be made with the service's
// ClientOptions; with these the SDK retries a failed request three times, almost at once.
func Simulator(t testing.TB, options *SimulatorOptions) *Service {
	t.Helper()
	s, err := NewSimulator(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewSimulator does what [Simulator] does, for code that has no testing.TB, such as Example functions and
// experiments.
func NewSimulator(options *SimulatorOptions) (*Service, error) {
	if options == nil {
		options = &SimulatorOptions{}
	}
	sim, err := simulator.New(simulator.Options{
		Account: options.Account, Start: options.Start, Seed: options.Seed, TableDeletion: options.TableDeletion, Chaos: environment.Chaos(options.Chaos),
	})
	if err != nil {
		return nil, fmt.Errorf("storagetest: %w", err)
	}
	return OverSimulator(sim), nil
}

// OverSimulator returns the Service of a simulator. It is for packages of this module that make the simulator
// themselves. Programs cannot call it: its argument is of an internal type. They call [NewSimulator].
func OverSimulator(sim *simulator.Simulator) *Service {
	s := &Service{
		AccountName:   sim.Account(),
		AccountKey:    sim.Key(),
		TableEndpoint: sim.TableEndpoint(),
		QueueEndpoint: sim.QueueEndpoint(),
		BlobEndpoint:  sim.BlobEndpoint(),
		Clock:         &Clock{sim.Clock()},
		sim:           sim,
	}
	s.setConnectionString()
	s.ClientOptions.Transport = sim
	return s.WithRetries(3)
}

// SetChaos changes the simulator's [Chaos], from the next request on. On any other service it panics, so that
// a test that needs chaos cannot pass without chaos.
func (s *Service) SetChaos(c Chaos) {
	if s.sim == nil {
		panic("storagetest: SetChaos is for the simulator; use Faulty on other services")
	}
	s.sim.SetChaos(environment.Chaos(c))
}

// Wait lets time pass on the service: it advances a simulator's clock at once, and sleeps for other services. So a
// test that waits for a message to become visible again can run on both.
func (s *Service) Wait(d time.Duration) {
	if s.Clock != nil {
		s.Clock.Advance(d)
		return
	}
	time.Sleep(d)
}
