package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

const connectionVariable = storagetest.ConnectionStringVariable

// place is the storage service that a run works on.
type place struct {
	connection string
	options    azcore.ClientOptions
	emulator   string              // "azurite" or "simulator"; empty for an account
	chosen     string              // why this service, where the program has chosen it
	proxy      string              // by which other processes reach a simulator
	lasts      bool                // what a run makes is there until it is dropped
	now        func() time.Time    // the service's clock where it is not the time of day: a simulator's
	pass       func(time.Duration) // waits; a simulator's clock stands still by itself
	leave      func() error        // ends what the program has started
}

// findPlace takes the service that -service names. Its default is an account if there is one in the environment, else an Azurite of the
// program's own, or a simulator where there is no Node.js to run Azurite.
func findPlace(ctx context.Context, o options, p *progress) (*place, error) {
	service, chosen, connection := o.service, "", os.Getenv(connectionVariable)
	if service == "" {
		simulated, err := storagetest.Simulated()
		if err != nil {
			return nil, err
		}
		service, chosen = defaultService(simulated, connection != "")
	}
	if o.keep && service != "account" {
		return nil, fmt.Errorf("-keep needs an account in %s: what ends with the program keeps nothing", connectionVariable)
	}
	switch service {
	case "account":
		if connection == "" {
			return nil, fmt.Errorf("-service account needs a connection string in %s", connectionVariable)
		}
		return &place{connection: connection, lasts: true, pass: time.Sleep, leave: func() error { return nil }}, nil
	case "azurite":
		server, err := storagetest.StartAzurite(ctx, &storagetest.AzuriteOptions{Progress: p.say})
		if err != nil {
			return nil, err
		}
		return &place{connection: server.ConnectionString(), options: server.Service().ClientOptions, emulator: service, pass: time.Sleep, leave: server.Stop}, nil
	}
	at, err := newSimulator()
	if err == nil && o.chaos {
		err = at.serve()
	}
	if err == nil {
		at.chosen = chosen
	}
	return at, err
}

// defaultService is the service where -service names none.
func defaultService(simulated, account bool) (service, chosen string) {
	switch {
	case simulated:
		return "simulator", ""
	case account:
		return "account", ""
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "simulator", "There is no " + tool + " on PATH to run Azurite, so this runs on the simulator, in memory."
		}
	}
	return "azurite", ""
}

func newSimulator() (*place, error) {
	s, err := storagetest.NewSimulator(nil)
	if err != nil {
		return nil, err
	}
	return simulated(s), nil
}

// simulated is a simulator's place. Its clock goes on while the program waits.
func simulated(s *storagetest.Service) *place {
	return &place{connection: s.ConnectionString, options: s.ClientOptions, emulator: "simulator", now: s.Clock.Now,
		pass: func(d time.Duration) { time.Sleep(d); s.Clock.Advance(d) }, leave: func() error { return nil }}
}

// transport lets an HTTP proxy send requests by a transport of the SDK.
type transport struct{ policy.Transporter }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.Do(r) }

// serve lets worker processes reach the simulator: by an HTTP proxy on the loopback interface, which hands each request to the simulator,
// whatever host it names.
func (at *place) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	relay := &httputil.ReverseProxy{
		Transport: transport{at.options.Transport},
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.RawQuery = r.In.URL.RawQuery },
		// The client sees a connection that breaks off.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{Handler: relay, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	at.proxy = "http://" + listener.Addr().String()
	leave := at.leave
	at.leave = func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return errors.Join(err, leave())
	}
	return nil
}
