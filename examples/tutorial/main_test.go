package main

import (
	"context"
	"log"
	"os"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// The output stands in docs/tutorial/README.md.
func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// row email_jonesj@contoso.com has jonesj@contoso.com
	// row empid_000223 has jonesj@contoso.com
	// found Jones
	// row email_june@contoso.com has june@contoso.com
	// row empid_000223 has june@contoso.com
	// the second employee is refused, since the email is taken
}
