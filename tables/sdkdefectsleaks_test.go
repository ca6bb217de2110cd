package tables_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestSDKDefectTransportErrorsHoldTheSAS(t *testing.T) {
	ctx := context.Background()
	const nobody, token = "http://127.0.0.1:1/contoso", "sv=2019-02-02&sp=r&sig=c2VjcmV0c2VjcmV0"
	options := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	service := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientWithNoCredential(nobody+"/?"+token, &aztables.ClientOptions{ClientOptions: options}))
	_, err := service.NewClient("Employees").GetEntity(ctx, "p", "r", nil)
	if err == nil || !strings.Contains(err.Error(), "c2VjcmV0") {
		fixed(t, fmt.Sprintf("a transport error holds the whole SAS address: it is %v", err))
	}

	ours := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(tables.Endpoints{Table: nobody}, token, &tables.AccountOptions{ClientOptions: options}))
	bags := ours.Table("Employees").Entities()
	_, getErr := bags.Get(ctx, tables.Key{Partition: "p", Row: "r"})
	_, pageErr := bags.Query().Partition("p").Page(ctx, "")
	x := ours.Table("Employees").NewTransaction()
	x.Insert(harness.Row("p", "a"))
	x.Insert(harness.Row("p", "b"))
	_, commitErr := x.Commit(ctx)
	for _, err := range []error{getErr, pageErr, commitErr, bags.Insert(ctx, harness.Row("p", "r")), ours.Table("Employees").Create(ctx), ours.Table("Employees").Drop(ctx)} {
		assert.Error(assert.Fatal(t), err, "no error without a service")
		for e := range unwrapped(err) {
			if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, "c2VjcmV0") {
				t.Errorf("the signature is in a %T: %.300s", e, text)
			}
		}
	}
}

// unwrapped yields err and all that it wraps.
func unwrapped(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		open := []error{err}
		for len(open) > 0 {
			e := open[0]
			open = open[1:]
			if e == nil {
				continue
			}
			if !yield(e) {
				return
			}
			switch e := e.(type) {
			case interface{ Unwrap() error }:
				open = append(open, e.Unwrap())
			case interface{ Unwrap() []error }:
				open = append(open, e.Unwrap()...)
			}
		}
	}
}

// spans is a tracing provider that writes everything down.
type spans struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *spans) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *spans) provider() tracing.Provider {
	span := tracing.NewSpan(tracing.SpanImpl{
		End:           func() {},
		SetAttributes: func(a ...tracing.Attribute) { s.note("attributes %v", a) },
		AddEvent:      func(name string, a ...tracing.Attribute) { s.note("event %s %v", name, a) },
		SetStatus:     func(status tracing.SpanStatus, d string) { s.note("status %v %s", status, d) },
	})
	start := func(ctx context.Context, name string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
		s.note("span %s %v", name, o.Attributes)
		return ctx, span
	}
	from := func(context.Context) tracing.Span { return span }
	return tracing.NewProvider(func(string, string) tracing.Tracer {
		return tracing.NewTracer(start, &tracing.TracerOptions{SpanFromContext: from})
	}, nil)
}

func TestSDKDefectSpansHoldKeys(t *testing.T) {
	ctx := context.Background()
	service := harness.Transport(func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusNotFound, `{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"x"}}}`, "Content-Type", "application/json"), nil
	})
	var sdk, ours spans
	options := azcore.ClientOptions{Transport: service, TracingProvider: sdk.provider(), Retry: policy.RetryOptions{MaxRetries: -1}}
	client := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientWithNoCredential("http://table.test/contoso", &aztables.ClientOptions{ClientOptions: options}))
	client.NewClient("Employees").GetEntity(ctx, "jonesj@contoso.com", "r", nil)
	if !strings.Contains(sdk.text.String(), "jonesj") {
		fixed(t, "spans hold the keys of entities: "+sdk.text.String())
	}

	options.TracingProvider = ours.provider()
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", &tables.AccountOptions{ClientOptions: options}))
	key := tables.Key{Partition: "jonesj@contoso.com) (x", Row: "jonesj's"}
	harness.WantKind(t, assert.Err(a.Table("Employees").Entities().Get(ctx, key)), tables.ErrNotFound)
	harness.WantKind(t, a.Table("Employees").Entities().DeleteUnconditional(ctx, key), tables.ErrNotFound)
	_, _ = a.Table("Employees").Entities().Query().Partition(key.Partition).Page(ctx, "")
	text := ours.text.String()
	if strings.Contains(text, "jonesj") || !strings.Contains(text, "Employees") {
		t.Errorf("our spans say\n%s", text)
	}
}

// The queue package encodes its messages in base64; here is why.
func TestSDKDefectQueueReplacesControlCharacters(t *testing.T) {
	ctx := context.Background()
	s := storagetest.Open(t)
	options := &azqueue.ClientOptions{ClientOptions: harness.ClientOptions(t, nil)}
	service := assert.Must[*azqueue.ServiceClient](t)(azqueue.NewServiceClientFromConnectionString(s.ConnectionString, options))
	queue := service.NewQueueClient(s.QueueName(t))
	assert.Check(t, assert.Err(queue.Create(ctx, nil)))
	assert.Check(t, assert.Err(queue.EnqueueMessage(ctx, "a\x01b", nil)))
	read := assert.Must[azqueue.PeekMessagesResponse](t)(queue.PeekMessages(ctx, nil))
	if len(read.Messages) != 1 || *read.Messages[0].MessageText != "a\uFFFDb" {
		fixed(t, "azqueue sends U+FFFD in place of a control character")
	}
}

func TestSDKDefectCost(t *testing.T) {
	ctx := context.Background()
	body := largePage(1000)
	service := func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusOK, body, "Content-Type", "application/json"), nil
	}
	client := bareInProcess(t, service)
	sdk := testing.AllocsPerRun(1, func() {
		page := assert.Must[aztables.ListEntitiesResponse](t)(client.NewListEntitiesPager(nil).NextPage(ctx))
		for _, b := range page.Entities {
			sdkEntity(t, b)
		}
	})
	bags := harness.InProcess(t, service).Table("Employees").Entities()
	ours := testing.AllocsPerRun(1, func() {
		if page := assert.Must[tables.Page[tables.Entity]](t)(bags.Query().Partition("p").Page(ctx, "")); len(page.Items) != 1000 {
			t.Fatalf("%d entities", len(page.Items))
		}
	})
	t.Logf("allocations for a page of 1,000 entities of 12 properties: the SDK %.0f, ours %.0f", sdk, ours)
	if sdk < 100_000 {
		fixed(t, fmt.Sprintf("a page of 1,000 entities costs over 100,000 allocations: it costs %.0f", sdk))
	}
	if ours*5 > sdk {
		t.Errorf("a page costs %.0f allocations, the SDK's %.0f", ours, sdk)
	}
}

// largePage is the answer to a query: n entities of 12 properties.
func largePage(n int) string {
	var b strings.Builder
	b.WriteString(`{"odata.metadata":"http://table.test/$metadata#Employees","value":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"odata.etag":"W/\"datetime'2024-05-06T07%%3A08%%3A09.%07dZ'\"","PartitionKey":"p","RowKey":"%06d","Timestamp":"2024-05-06T07:08:09.1234567Z"`, i, i)
		for j := range 4 {
			fmt.Fprintf(&b, `,"Text%d":"value %d","Count%d@odata.type":"Edm.Int64","Count%d":"%d","At%d@odata.type":"Edm.DateTime","At%d":"2024-05-06T07:08:09Z"`, j, i, j, j, i, j, j)
		}
		b.WriteByte('}')
	}
	b.WriteString("]}")
	return b.String()
}
