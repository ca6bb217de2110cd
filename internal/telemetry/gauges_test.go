package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// TestGaugesAreForgotten: the value of a gauge is emitted until its owner forgets it. Of two owners the one that has observed last counts, and
// the other one's value is there when that one is gone.
func TestGaugesAreForgotten(t *testing.T) {
	w := newWatch()
	signals := assert.Must[*telemetry.Telemetry](t)(telemetry.New(telemetry.Options{Meters: w.meters}))
	value := func() any {
		data, ok := w.metrics(t)["tablepatterns.queue.messages"].Data.(metricdata.Gauge[float64])
		if !ok || len(data.DataPoints) != 1 {
			return data.DataPoints
		}
		return data.DataPoints[0].Value
	}
	observe := func(owner string, v float64) {
		t.Helper()
		assert.Check(t, signals.Observe(owner, telemetry.QueueMessages, v, telemetry.AttrQueue, "work"))
	}
	for round := range 2 {
		observe("a", 1)
		observe("b", 2)
		if v := value(); v != 2.0 {
			t.Errorf("round %d: %v, want the newest", round, v)
		}
		observe("a", 3)
		if v := value(); v != 3.0 {
			t.Errorf("round %d: %v, want the newest", round, v)
		}
		assert.Check(t, signals.Forget("a"))
		if v := value(); v != 2.0 {
			t.Errorf("round %d: %v, want the value of the other owner", round, v)
		}
		assert.Check(t, signals.Forget("b"), signals.Forget("b"))
		if m, there := w.metrics(t)["tablepatterns.queue.messages"]; there {
			t.Errorf("round %d: a gauge without owner is emitted: %v", round, m)
		}
	}
}
