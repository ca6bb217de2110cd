package main

import (
	"context"
	"log"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The program of README.md runs as often as you like.
func Example() {
	for range 2 {
		if err := run(context.Background(), harness.ExampleAccount()); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// found Sales 223
	// found Sales 223
}
