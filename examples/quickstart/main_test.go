package main

import (
	"context"
	"log"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/patterns"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The program of README.md runs as often as you like.
func Example() {
	for range 2 {
		if err := run(context.Background(), &patterns.StoreOptions{Account: harness.ExampleAccount()}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// found Sales 223
	// found Sales 223
}
