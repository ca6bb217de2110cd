package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	goroutines "github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestMain(m *testing.M) { goroutines.Main(m) }

// order has a unique index outside of its partition, and a value in a blob.
type order struct {
	tables.Meta
	Customer string
	Number   int
	Email    string
	Status   string
	Invoice  largeentities.Stream `table:",omitzero"`
}

type line struct {
	tables.Meta
	Customer string
	Order    int
	Number   int
	Article  string
}

// log collects lines.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watch is what a program has configured, and sees.
type watch struct {
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	meters *metric.MeterProvider
	log    *log
	gauges []metricdata.Metrics // while a worker ran
}

func newWatch() *watch {
	reader := metric.NewManualReader()
	return &watch{spans: tracetest.NewSpanRecorder(), reader: reader, meters: metric.NewMeterProvider(metric.WithReader(reader)), log: &log{}}
}

// account opens an account of the service with everything configured.
func (w *watch) account(t testing.TB, s *storagetest.Service) *tables.Account {
	t.Helper()
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions,
		MeterProvider: w.meters, TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(w.spans)),
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}))
}

// named returns the ended spans of a name.
func (w *watch) named(name string) []trace.ReadOnlySpan {
	return slices.DeleteFunc(slices.Clone(w.spans.Ended()), func(s trace.ReadOnlySpan) bool { return s.Name() != name })
}

// metrics are the metrics with data, by name.
func (w *watch) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	assert.Check(t, w.reader.Collect(context.Background(), &all))
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// sum returns the sum of a counter, or the number of values of a histogram, over the series that have all of these attributes, in pairs.
func (w *watch) sum(t testing.TB, name string, pairs ...string) (sum int64) {
	t.Helper()
	has := func(set attribute.Set) bool {
		for i := 0; i < len(pairs); i += 2 {
			if v, _ := set.Value(attribute.Key(pairs[i])); v.AsString() != pairs[i+1] {
				return false
			}
		}
		return true
	}
	switch data := w.metrics(t)[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			if has(p.Attributes) {
				sum += p.Value
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			if has(p.Attributes) {
				sum += int64(p.Count)
			}
		}
	}
	return sum
}

// shop is a store with orders and their lines.
type shop struct {
	store   *patterns.Store
	table   *tables.Table
	orders  *patterns.Repository[order]
	lines   *patterns.Repository[line]
	byEmail *interpartition.Unique[order, string]
	invoice *largeentities.Property[order]
}

const (
	ordersTable  = "Orders"
	emailsTable  = "OrdersByEmail"
	intentsQueue = "shop-intents"
	invoices     = "invoices"
)

// newShop opens the store. async leaves the calls of the handler for new orders to workers.
func newShop(t testing.TB, account *tables.Account, async bool) *shop {
	t.Helper()
	return newShopNamed(t, account, "", async)
}

// newShopNamed is newShop with a prefix of all names.
func newShopNamed(t testing.TB, account *tables.Account, prefix string, async bool) *shop {
	t.Helper()
	store := assert.Must[*patterns.Store](t)(patterns.Open("shop", &patterns.StoreOptions{Account: account, Prefix: prefix}))
	x := &shop{store: store, table: store.Table(ordersTable)}
	x.byEmail = interpartition.NewUnique("email", func(o *order) string { return o.Email },
		&interpartition.Options[order]{Table: store.Table(emailsTable)})
	x.invoice = largeentities.NewStream("Invoice", func(o *order) *largeentities.Stream { return &o.Invoice }, blobstorage.Open(store, invoices), nil)
	placed := eventual.OnCommit("placed", func(context.Context, eventual.Commit[order]) error { return nil }, nil)
	x.orders = assert.Must[*patterns.Repository[order]](t)(patterns.NewRepository(x.table, patterns.Schema[order]{Name: "orders", Prefix: "order", Key: func(o *order) tables.Key {
		return tables.Key{Partition: o.Customer, Row: compoundkey.Join("order", compoundkey.Int(o.Number, 6))}
	}}, append(harness.AsyncIf[order](async, placed), x.invoice, x.byEmail)...))
	x.lines = assert.Must[*patterns.Repository[line]](t)(patterns.NewRepository(x.table, patterns.Schema[line]{Name: "lines", Prefix: "line", Key: func(l *line) tables.Key {
		return tables.Key{Partition: l.Customer, Row: compoundkey.Join("line", compoundkey.Int(l.Order, 6), compoundkey.Int(l.Number, 3))}
	}}))
	return x
}

const (
	secretValue = "SECRETVALUE"
	secretKey   = "SECRETKEY"
)

// newOrder returns an order whose keys and values are known secrets.
func newOrder(number int, email string) *order {
	return &order{Customer: secretKey, Number: number, Email: secretKey + email, Status: secretValue,
		Invoice: largeentities.NewStreamBytes([]byte(strings.Repeat(secretValue, 20_000)), nil)}
}

// place is PlaceOrder: an order with two lines.
func (x *shop) place(ctx context.Context, number int, email string) error {
	tx := x.table.NewTransaction()
	x.orders.StageInsert(tx, newOrder(number, email))
	for i := range 2 {
		x.lines.StageInsert(tx, &line{Customer: secretKey, Order: number, Number: i, Article: secretValue})
	}
	_, err := tx.Commit(ctx)
	return err
}
