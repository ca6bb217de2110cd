package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// labelled is an entity with a number.
type labelled struct {
	tables.Meta
	ID int
}

// everything does what emits every span and metric.
func everything(t *testing.T, w *watch) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	x := newShop(t, w.account(t, s), false)
	assert.Check(t, x.store.Create(ctx), x.place(ctx, 1, "june"))
	stale := assert.Must[*order](t)(x.orders.Get(ctx, x.orders.KeyOf(newOrder(1, ""))))
	found := assert.Must[*order](t)(x.byEmail.Get(ctx, secretKey+"june"))
	_, err := found.Invoice.Download(ctx, discard{}, nil)
	assert.Check(t, err)
	for _, err := range x.orders.Query().Partition(secretKey).All(ctx) {
		assert.Check(t, err)
	}
	found.Status = "sent"
	assert.Check(t, x.orders.Replace(ctx, found))
	harness.WantKind(t, x.orders.Replace(ctx, stale), tables.ErrConflict)
	harness.WantKind(t, x.place(ctx, 1, "june"), tables.ErrExists)
	assert.Check(t, harness.Clean(ctx, x.orders.Verify, nil))
	assert.Check(t, harness.Settle(ctx, x.store))
	marksLeft(t, w, s)
	messages(t, w, s)
	faults(t, w, s)
	failedEffect(t, w, s)
	unmatchedRows(t, w, s)
	leasedBlob(t, w, s)
}

// leasedBlob sweeps a blob that no entity points at, and on which another program holds a lease.
func leasedBlob(t *testing.T, w *watch, s *storagetest.Service) {
	ctx, x := t.Context(), newShop(t, w.account(t, s), false)
	assert.Check(t, x.place(ctx, 7, "leased"), harness.Settle(ctx, x.store))
	_, err := x.table.Client().DeleteEntity(ctx, secretKey, x.orders.KeyOf(newOrder(7, "")).Row, nil)
	assert.Check(t, err)
	for b, err := range blobio.List(ctx, blobstorage.Open(x.store, invoices), "", container.ListBlobsInclude{}) {
		assert.Check(t, err)
		_, err = assert.Must[*lease.BlobClient](t)(lease.NewBlobClient(blobstorage.Open(x.store, invoices).NewBlobClient(*b.Name), nil)).AcquireLease(ctx, -1, nil)
		assert.Check(t, err)
	}
	s.Wait(24 * time.Hour)
	report, err := x.invoice.Sweep(ctx, nil)
	if assert.Check(t, err); report.Failed != 1 || report.Young != 0 || report.Deleted != 0 {
		t.Errorf("%+v", report)
	}
	harness.WantKind(t, report.LastFailure, tables.ErrRefused)
}

// unmatchedRows asks whether a store is ready whose schema fits no row of its table.
func unmatchedRows(t *testing.T, w *watch, s *storagetest.Service) {
	store := assert.Must[*patterns.Store](t)(patterns.Open("unmatched", &patterns.StoreOptions{Account: w.account(t, s)}))
	table := store.Table("Unmatched")
	assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(table, patterns.Schema[labelled]{Prefix: "label",
		Key: func(l *labelled) tables.Key { return tables.Key{Partition: secretKey, Row: fmt.Sprint("label_", l.ID)} }}))
	assert.Check(t, store.Create(t.Context()), table.Entities().Insert(t.Context(), harness.Bag(secretKey, "O-1", secretValue)))
	assert.Check(t, store.Ready(t.Context()), store.Ready(t.Context()))
	assert.Equal(t, strings.Count(w.log.String(), "event=rows_unmatched"), 1, "times rows_unmatched is logged: %s", w.log)
}

// failedEffect inserts an entity whose list of members is in a table that is missing.
func failedEffect(t *testing.T, w *watch, s *storagetest.Service) {
	ctx := t.Context()
	store := assert.Must[*patterns.Store](t)(patterns.Open("missing", &patterns.StoreOptions{Account: w.account(t, s)}))
	members := relationships.NewMembers("members", store.Table("Missing"), func(*labelled) (tables.Key, bool) { return tables.Key{Partition: "labels", Row: "all"}, true })
	repo := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(store.Table("Sources"), patterns.Schema[labelled]{
		Key: func(l *labelled) tables.Key { return tables.Key{Partition: secretKey, Row: fmt.Sprint("row", l.ID)} }}, members))
	assert.Check(t, store.Create(ctx), store.Table("Missing").Drop(ctx), repo.Insert(ctx, &labelled{ID: 1}), harness.Settle(ctx, store))
	if w.sum(t, "tablepatterns.effects.failed", telemetry.AttrTable, "Missing", telemetry.AttrOutcome, "missing_resource") != 1 || !strings.Contains(w.log.String(), "event=effect_failed") {
		t.Errorf("the effect that failed is not told: %s", w.log)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// marksLeft inserts an entity whose copy in another table can be marked but not settled.
func marksLeft(t *testing.T, w *watch, s *storagetest.Service) {
	var marked atomic.Bool
	faulty, _ := s.WithRetries(-1).Faulty(storagetest.If(func(c storagetest.Call) bool {
		return strings.HasPrefix(c.Resource, "Labels") && c.Writes() && c.Kind != storagetest.CreateTable && marked.Swap(true)
	}, storagetest.Always(storagetest.Before500)))
	store := assert.Must[*patterns.Store](t)(patterns.Open("left", &patterns.StoreOptions{Account: w.account(t, faulty)}))
	index := interpartition.NewIndex("label", func(l *labelled) compoundkey.Part { return compoundkey.Int(l.ID, 4) }, &interpartition.Options[labelled]{Table: store.Table("Labels")})
	repo := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(store.Table("Labelled"), patterns.Schema[labelled]{
		Key: func(l *labelled) tables.Key { return tables.Key{Partition: secretKey, Row: fmt.Sprint("row", l.ID)} }}, index))
	assert.Check(t, store.Create(t.Context()), repo.Insert(t.Context(), &labelled{ID: 1}), harness.Settle(t.Context(), store))
	if w.sum(t, "tablepatterns.marks_left", telemetry.AttrTable, "Labels") != 1 || !strings.Contains(w.log.String(), "event=marks_left") {
		t.Errorf("the copy that stays marked is not told: %s", w.log)
	}
}

// messages sends messages, handles one, loses the lease of another, and polls a queue that is gone.
func messages(t *testing.T, w *watch, s *storagetest.Service) {
	q := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account(t, s), "work", nil))
	assert.Check(t, q.Create(t.Context()))
	assert.Must[string](t)(q.Send(t.Context(), "fine", secretValue, nil))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(q, map[string]eventual.Handler{
		"fine": func(context.Context, *eventual.Message) error { return nil },
		"lost": func(ctx context.Context, m *eventual.Message) error {
			return m.Steps(ctx, eventual.Step{Name: "clear", Do: func(ctx context.Context) error { // the message is gone when the step is to be noted
				_, err := eventual.QueueService(q.Account()).NewQueueClient("work").ClearMessages(ctx, nil)
				return err
			}}, eventual.Step{Name: "never", Do: func(context.Context) error { return nil }})
		},
	}, nil))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until) && (w.metrics(t)["tablepatterns.queue.poisoned"].Data == nil || worker.Stats().Handled == 0); {
		time.Sleep(time.Millisecond)
	}
	for _, m := range telemetry.Metrics() {
		if m.Kind == telemetry.Gauge {
			w.gauges = append(w.gauges, w.metrics(t)[m.Name])
		}
	}
	cancel()
	assert.Check(t, <-ended)
	for _, m := range w.gauges {
		if _, there := w.metrics(t)[m.Name]; there || m.Name == "" {
			t.Errorf("the gauge %q was not there while the worker ran, or is there after it has ended", m.Name)
		}
	}
	assert.Must[string](t)(q.Send(t.Context(), "lost", nil, nil))
	assert.Check(t, assert.Err(worker.Drain(t.Context())), q.Drop(t.Context()))
	assert.Error(t, assert.Err(worker.Drain(t.Context())), "a poll of a queue that is gone has no error")
}

// faults throttles a request, and loses the response to another.
func faults(t *testing.T, w *watch, s *storagetest.Service) {
	for _, fault := range []storagetest.Mode{storagetest.Throttled, storagetest.LostAnswer} {
		faulty, _ := s.WithRetries(1).Faulty(storagetest.On(storagetest.InsertEntity, storagetest.Once(fault)))
		bags := w.account(t, faulty).Table(ordersTable).Entities()
		assert.Check(t, bags.Insert(t.Context(), harness.Bag(secretKey, fmt.Sprint(fault), secretValue)))
	}
}

// TestAllSignals: what a scenario emits is declared, and all that is declared is emitted by it. No signal holds a key or a value.
func TestAllSignals(t *testing.T) {
	w := newWatch()
	everything(t, w)
	emitted := w.metrics(t)
	for _, m := range w.gauges {
		emitted[m.Name] = m
	}
	for _, m := range telemetry.Metrics() {
		got, ok := emitted[m.Name]
		if !ok {
			t.Errorf("metric %s is not emitted", m.Name)
			continue
		}
		if got.Unit != m.Unit || got.Description != m.Description {
			t.Errorf("metric %s: %q, %q", m.Name, got.Unit, got.Description)
		}
		delete(emitted, m.Name)
	}
	for name := range emitted {
		t.Errorf("metric %s is not declared", name)
	}
	declared := map[string]bool{}
	for _, span := range telemetry.Spans() {
		declared[span.Name+" "+span.Kind] = false
	}
	for _, span := range w.spans.Ended() {
		form := ""
		switch {
		case attributeOf(span, telemetry.AttrService) != "":
			form = "{method} {resource}"
			table, resource := attributeOf(span, telemetry.AttrTable), attributeOf(span, telemetry.AttrResource)
			switch {
			case attributeOf(span, telemetry.AttrService) != "tables", resource == "Tables":
				if table != "" {
					t.Errorf("span %s of no table names table %q", span.Name(), table)
				}
			case resource == "$batch" && table == "", resource != "$batch" && table != resource:
				t.Errorf("span %s names table %q", span.Name(), table)
			}
		case attributeOf(span, telemetry.AttrContainer) != "":
			form = "{verb} {container}"
		case attributeOf(span, telemetry.AttrQueue) != "":
			form = attributeOf(span, telemetry.AttrQueueVerb) + " {queue}"
		case attributeOf(span, telemetry.AttrTable) != "":
			form = "{verb} {table}"
		}
		form += " " + span.SpanKind().String()
		if _, ok := declared[form]; !ok {
			t.Errorf("span %s is not declared as %q", span.Name(), form)
		}
		declared[form] = true
	}
	for form, seen := range declared {
		if !seen {
			t.Errorf("no span %s", form)
		}
	}
	for _, want := range []struct {
		metric string
		pairs  []string
	}{
		{"db.client.operation.duration", []string{telemetry.AttrTable, ordersTable, telemetry.AttrVerb, "Replace", telemetry.AttrOutcome, "conflict"}},
		{"tablepatterns.request.retries", []string{telemetry.AttrService, "tables"}},
		{"tablepatterns.resources.missing", []string{telemetry.AttrResource, "Missing"}},
	} {
		if w.sum(t, want.metric, want.pairs...) == 0 {
			t.Errorf("%s has nothing for %v", want.metric, want.pairs)
		}
	}
	noSecrets(t, w)
}

// noSecrets looks for the known key and value in all that was emitted.
func noSecrets(t *testing.T, w *watch) {
	t.Helper()
	texts := []string{w.log.String()}
	for _, span := range w.spans.Ended() {
		texts = append(texts, fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status()))
	}
	for name, m := range w.metrics(t) {
		texts = append(texts, name+series(m))
	}
	for _, m := range w.gauges {
		texts = append(texts, m.Name+series(m))
	}
	for _, text := range texts {
		if strings.Contains(text, secretKey) || strings.Contains(text, secretValue) {
			t.Errorf("a key or a value is in: %.500s", text)
		}
	}
	if len(texts) < 50 || len(texts[0]) == 0 {
		t.Errorf("%d texts, %d characters of log: nothing was watched", len(texts), len(texts[0]))
	}
}

func series(m metricdata.Metrics) string {
	text := ""
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			text += " " + p.Attributes.Encoded(nil)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			text += " " + p.Attributes.Encoded(nil)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			text += " " + p.Attributes.Encoded(nil)
		}
	}
	return text
}

// TestMissingTableIsTold: an index whose table nobody has created is an error of Ready, and a line and a metric at the first write, which
// name the index's table and not the repository's.
func TestMissingTableIsTold(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	x := newShop(t, w.account(t, s), false)
	assert.Check(t, x.store.Create(ctx), x.store.Table(emailsTable).Drop(ctx))
	if err := x.store.Ready(ctx); !errors.Is(err, tables.ErrMissingResource) && (err == nil || !strings.Contains(err.Error(), emailsTable)) {
		t.Errorf("Ready: %v", err)
	}
	before := w.sum(t, "tablepatterns.resources.missing", telemetry.AttrResource, emailsTable)
	err := x.place(ctx, 1, "june")
	assert.Check(t, harness.Settle(ctx, x.store))
	t.Log(err)
	if w.sum(t, "tablepatterns.resources.missing", telemetry.AttrResource, emailsTable) <= before || w.sum(t, "tablepatterns.resources.missing", telemetry.AttrResource, ordersTable) != 0 {
		t.Error("the metric does not name the index's table")
	}
	line := regexp.MustCompile(`level=ERROR msg=.*event=resource_missing .*resource=` + emailsTable + `\b`)
	if !line.MatchString(w.log.String()) || strings.Contains(w.log.String(), "resource="+ordersTable+"\n") {
		t.Errorf("log: %s", w.log)
	}
	noKeys := regexp.MustCompile(secretKey + "|" + secretValue)
	if noKeys.MatchString(w.log.String()) {
		t.Errorf("a key or value is logged: %s", w.log)
	}
}

// TestMissingTableThatIsExpected: a read of a period without a table logs and counts no missing table.
func TestMissingTableThatIsExpected(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	account := w.account(t, s)
	type login struct {
		tables.Meta
		User string
		At   time.Time
	}
	logins := assert.Must[*highvolumedelete.Tables[login]](t)(highvolumedelete.New(account, highvolumedelete.Schema[login]{Name: "Logins", Time: func(l *login) time.Time { return l.At },
		Open: func(table *tables.Table) (*patterns.Repository[login], error) {
			return patterns.NewRepository(table, patterns.Schema[login]{Key: func(l *login) tables.Key { return tables.Key{Partition: l.User, Row: "login"} }})
		}}))
	now := time.Now().UTC().Truncate(time.Microsecond)
	_, err := logins.Get(ctx, now.AddDate(0, 0, -2), tables.Key{Partition: "june", Row: "login"})
	harness.WantKind(t, err, tables.ErrNotFound)
	assert.Check(t, logins.Insert(ctx, &login{User: "june", At: now}))
	for _, err := range logins.Between(ctx, now.AddDate(0, 0, -2), now.Add(time.Hour), &highvolumedelete.ReadOptions[login]{Partitions: []string{"june"}}) {
		assert.Check(t, err)
	}
	if n := w.sum(t, "tablepatterns.resources.missing"); n != 0 || strings.Contains(w.log.String(), "resource_missing") {
		t.Errorf("%d are missing; log: %s", n, w.log)
	}
}

// TestLinesAreLimited: a line that repeats is written 20 times, and the next one tells how many were left out.
func TestLinesAreLimited(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		w := newWatch()
		bags := w.account(t, s).Table("Nowhere").Entities()
		for range 100 {
			harness.WantKind(t, assert.Err(bags.Get(t.Context(), tables.Key{Partition: "p", Row: "r"})), tables.ErrMissingResource)
		}
		assert.Equal(t, strings.Count(w.log.String(), "resource_missing"), 20, "lines")
		time.Sleep(time.Second)
		harness.WantKind(t, assert.Err(bags.Get(t.Context(), tables.Key{Partition: "p", Row: "r"})), tables.ErrMissingResource)
		assert.Contains(t, w.log.String(), "suppressed=80", "the number of suppressed lines is missing")
	})
}

// TestNothingConfiguredAllocatesNothing: without providers, what operations call allocates nothing.
func TestNothingConfiguredAllocatesNothing(t *testing.T) {
	off := assert.Must[*telemetry.Telemetry](t)(telemetry.New(telemetry.Options{}))
	ctx, err := t.Context(), errors.New("failed")
	if n := testing.AllocsPerRun(100, func() {
		inner, op := off.Begin(ctx, telemetry.Tables, "Insert", "Orders")
		op.Pause()
		op.Resume()
		off.Rows(inner, "Orders", 1000, 10)
		off.Count(inner, telemetry.Conflicts, 1)
		_ = off.Traceparent(inner)
		op.End(err)
		_, process := off.Process(inner, "work", 1, "")
		process.End("work", "handled", true, time.Time{}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestConventions: names without a prefix of ours are those of the semantic conventions.
func TestConventions(t *testing.T) {
	for name, want := range map[string]string{
		telemetry.AttrSystem: string(semconv.DBSystemNameKey), telemetry.AttrTable: string(semconv.DBCollectionNameKey), telemetry.AttrVerb: string(semconv.DBOperationNameKey),
		telemetry.AttrCode: string(semconv.DBResponseStatusCodeKey), telemetry.AttrMessaging: string(semconv.MessagingSystemKey), telemetry.AttrQueue: string(semconv.MessagingDestinationNameKey),
		telemetry.AttrQueueVerb: string(semconv.MessagingOperationNameKey), telemetry.AttrQueueType: string(semconv.MessagingOperationTypeKey), telemetry.AttrError: string(semconv.ErrorTypeKey),
		telemetry.AttrMethod: string(semconv.HTTPRequestMethodKey), telemetry.AttrStatus: string(semconv.HTTPResponseStatusCodeKey), telemetry.AttrResend: string(semconv.HTTPRequestResendCountKey),
		telemetry.AttrServer: string(semconv.ServerAddressKey), telemetry.AttrPort: string(semconv.ServerPortKey), telemetry.AttrRequest: string(semconv.AzureServiceRequestIDKey),
	} {
		if name != want {
			t.Errorf("%s is %s in the conventions", name, want)
		}
	}
	if !strings.HasSuffix(semconv.SchemaURL, "/"+telemetry.SemanticConventions) {
		t.Error(semconv.SchemaURL)
	}
}

// TestPageHasAllSignals: docs/reference/observability.md has each span, metric and line as it is declared, and no metric that is not.
func TestPageHasAllSignals(t *testing.T) {
	page := string(assert.Must[[]byte](t)(os.ReadFile("../../docs/reference/observability.md")))
	var rows []string
	for _, s := range telemetry.Spans() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, s.Kind, s.Description))
	}
	for _, m := range telemetry.Metrics() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s, `%s` | `%s` | %s |\n", m.Name, m.Kind, m.Unit, strings.Join(m.Attributes, "`, `"), m.Description))
	}
	for _, l := range telemetry.Lines() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", l.Event, l.Level, l.Text, l.Description))
	}
	for _, row := range rows {
		assert.Contains(t, page, row, "the page")
	}
	known, labels := prometheusNames(), prometheusLabels()
	for _, name := range metricName.FindAllString(page[strings.Index(page, "## Alert rules"):], -1) {
		if !known[name] && !labels[name] {
			t.Errorf("the alert rules use %s", name)
		}
	}
}

// TestDashboardNames: the dashboard uses declared metrics only, and each of them.
func TestDashboardNames(t *testing.T) {
	raw := assert.Must[[]byte](t)(os.ReadFile("../../docs/reference/observability-dashboard.json"))
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	assert.Check(t, json.Unmarshal(raw, &dashboard))
	known, labels, text := prometheusNames(), prometheusLabels(), ""
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			text += target.Expr + "\n"
		}
	}
	for _, name := range metricName.FindAllString(text, -1) {
		if !known[name] && !labels[name] {
			t.Errorf("the dashboard uses %s", name)
		}
	}
	for _, m := range telemetry.Metrics() {
		assert.Contains(t, text, strings.ReplaceAll(m.Name, ".", "_"), "the dashboard does not show %s", m.Name)
	}
}

var metricName = regexp.MustCompile(`\b(?:db|messaging|tablepatterns)_[a-z_]+`)

// prometheusLabels are the names of the metrics' attributes in Prometheus.
func prometheusLabels() map[string]bool {
	labels := map[string]bool{}
	for _, m := range telemetry.Metrics() {
		for _, a := range m.Attributes {
			labels[strings.ReplaceAll(a, ".", "_")] = true
		}
	}
	return labels
}

// prometheusNames are the names of the metrics' series in Prometheus.
func prometheusNames() map[string]bool {
	names := map[string]bool{}
	for _, m := range telemetry.Metrics() {
		name := strings.ReplaceAll(m.Name, ".", "_")
		if m.Unit == "s" {
			name += "_seconds"
		}
		switch m.Kind {
		case telemetry.Counter:
			names[name+"_total"] = true
		case telemetry.Histogram:
			names[name+"_bucket"], names[name+"_count"], names[name+"_sum"] = true, true, true
		default:
			names[name] = true
		}
	}
	return names
}

// TestKeysAreHiddenByDefault: text in double quotes, as the library writes keys, is left out unless the account's options allow keys.
// Signatures and account keys are left out in any case.
func TestKeysAreHiddenByDefault(t *testing.T) {
	text := fmt.Sprintf("Get in Orders (%q, %q): x, see https://a.test/Orders(PartitionKey='%s')?sv=1&sig=%s and AccountKey=%[3]s;", secretKey, `a"`+secretKey, secretKey, secretValue)
	for keys, want := range map[bool]bool{false: false, true: true} {
		signals := assert.Must[*telemetry.Telemetry](t)(telemetry.New(telemetry.Options{Keys: keys}))
		said := signals.Text(text)
		if strings.Contains(said, secretKey) != want || strings.Contains(said, secretValue) || strings.Contains(said, "AccountKey="+secretKey) || !strings.HasPrefix(said, "Get in Orders (") {
			t.Errorf("keys %v: %s", keys, said)
		}
	}
}
