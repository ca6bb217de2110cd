package tables_test

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// dropped is a processor that keeps no span.
type dropped struct{}

func (dropped) OnStart(context.Context, trace.ReadWriteSpan) {}
func (dropped) OnEnd(trace.ReadOnlySpan)                     {}
func (dropped) Shutdown(context.Context) error               { return nil }
func (dropped) ForceFlush(context.Context) error             { return nil }

// BenchmarkRatioTelemetry compares operations with nothing configured, with the bare SDK, and with meters and a tracer that records every
// span, by turns, in processor time.
func BenchmarkRatioTelemetry(b *testing.B) {
	s := newSides(b)
	account := assert.Must[*tables.Account](b)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: benchURL}, "contoso", benchKey, &tables.AccountOptions{
		ClientOptions: azcore.ClientOptions{Transport: s.canned}, MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
		TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(dropped{}))}))
	watched := *s
	watched.ours = assert.Must[*tables.Rows[benchEmployee]](b)(tables.RowsOf[benchEmployee](account.Table("Employees")))
	for name, of := range map[string]func(*sides) []harness.Contender{
		"get": (*sides).getContenders, "upsert": (*sides).upsertContenders, "page": (*sides).pageContenders,
	} {
		b.Run(name, func(b *testing.B) {
			off, on := of(s), of(&watched)
			off[0].Name, on[0].Name = "off", "configured"
			harness.Ratios(b, append([]harness.Contender{off[0], on[0]}, off[1:]...))
		})
	}
}
