package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

const connectionVariable = storagetest.ConnectionStringVariable

// place is the storage service that a run works on.
type place struct {
	connection string
	options    azcore.ClientOptions
	emulator   string              // "azurite" or "simulator"; empty for an account
	outside    bool                // it is outside of this process, so that others reach it
	lasts      bool                // what a run makes is there until it is dropped
	now        func() time.Time    // the service's clock where it is not the time of day: a simulator's
	pass       func(time.Duration) // waits; a simulator's clock stands still by itself
	leave      func() error        // ends what the program has started
}

// findPlace takes what the environment asks for: a simulator, an account, or else an Azurite of the program's own.
func findPlace(ctx context.Context, o options, p *progress) (*place, error) {
	simulated, err := storagetest.Simulated()
	if err != nil {
		return nil, err
	}
	connection := os.Getenv(connectionVariable)
	switch {
	case connection != "" && !simulated:
		return &place{connection: connection, outside: true, lasts: true, pass: time.Sleep, leave: func() error { return nil }}, nil
	case o.keep:
		return nil, fmt.Errorf("-keep needs an account in %s: what ends with the program keeps nothing", connectionVariable)
	case simulated:
		s, err := storagetest.NewSimulator(nil)
		if err != nil {
			return nil, err
		}
		return &place{connection: s.ConnectionString, options: s.ClientOptions, emulator: "simulator", now: s.Clock.Now,
			pass: func(d time.Duration) { time.Sleep(d); s.Clock.Advance(d) }, leave: func() error { return nil }}, nil
	}
	server, err := storagetest.StartAzurite(ctx, &storagetest.AzuriteOptions{Progress: p.say})
	if err != nil {
		return nil, err
	}
	return &place{connection: server.ConnectionString(), options: server.Service().ClientOptions, emulator: "azurite", outside: true, pass: time.Sleep, leave: server.Stop}, nil
}
