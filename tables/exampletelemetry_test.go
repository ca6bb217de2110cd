package tables_test

import (
	"fmt"
	"log"
	"log/slog"

	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Everything that is made from the account logs, measures and traces by its options.
func ExampleAccountOptions() {
	logger, meterProvider, tracerProvider := slog.Default(), metric.NewMeterProvider(), trace.NewTracerProvider() // the program's own
	options := &tables.AccountOptions{
		Logger:         logger,         // default slog.Default()
		MeterProvider:  meterProvider,  // default none: no metrics
		TracerProvider: tracerProvider, // default none: no spans
	}
	account, err := tables.NewAccountFromConnectionString("UseDevelopmentStorage=true", options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(account.Name())
	// Output: devstoreaccount1
}
