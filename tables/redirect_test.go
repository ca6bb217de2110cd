package tables_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/tables"
)

const redirectSecret = "SECRETSIGNATURESECRETSIGNATURESECRETSIGNATU"

// elsewhere is a server that no request should reach. It answers every request as a table service would.
func elsewhere(t *testing.T) (address string, asked func() []string) {
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.Method+" "+r.URL.String()+" "+r.Referer()+" "+r.Header.Get("Authorization")+" "+string(body))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json;odata=minimalmetadata")
		w.Header().Set("ETag", `W/"1"`)
		_, _ = io.WriteString(w, `{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r","Owner":"the other host"}`)
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// following follows redirects whatever the client is told, as some transports of other libraries do.
type following struct{ client http.Client }

func (f *following) Do(req *http.Request) (*http.Response, error) { return f.client.Do(req) }

// TestRedirects: no call of a table, a queue or a blob follows a redirect, and none takes a response of another host. Whoever redirects a
// write may have applied it.
func TestRedirects(t *testing.T) {
	other, asked := elsewhere(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other+"/loot")
			w.WriteHeader(status)
		}))
		defer front.Close()
		endpoints := tables.Endpoints{Table: front.URL + "/acc", Queue: front.URL + "/acc", Blob: front.URL + "/acc"}
		for name, transport := range map[string]policy.Transporter{"default": nil, "http.Client": http.DefaultClient, "nil http.Client": (*http.Client)(nil)} {
			o := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: transport, Retry: policy.RetryOptions{MaxRetries: 2, RetryDelay: 1}}}
			signed := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(endpoints, "sv=2019-02-02&sp=raud&sig="+redirectSecret, o))
			keyed := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(endpoints, "acc", "Q0FOQVJZS0VZQ0FOQVJZS0VZ", o))
			token := assert.Must[access.Token](t)(access.Parse(front.URL + "/acc/Notes?sv=2019-02-02&tn=notes&sp=raud&se=2130-01-01T00:00:00Z&sig=" + redirectSecret + "%3D"))
			opened := assert.Must[*access.Client](t)(access.Open(token, o))
			for _, table := range []*tables.Table{signed.Table("Notes"), keyed.Table("Notes"), opened.Table()} {
				for op, err := range callsOf(t.Context(), table) {
					if !errors.Is(err, kindOfForeign(op)) || !strings.Contains(err.Error(), "redirect") {
						t.Errorf("%d, %s, %s: %v", status, name, op, err)
					}
				}
			}
			_, err := eventual.QueueService(signed).NewQueueClient("orders").GetProperties(t.Context(), nil)
			_, err2 := blobstorage.Container(signed, "photos").NewBlobClient("1").DownloadStream(t.Context(), nil)
			for _, err := range []error{err, err2} {
				assert.ErrorContains(t, err, "redirect", "%d, %s", status, name)
			}
		}
	}
	if seen := asked(); len(seen) > 0 {
		t.Errorf("the other host was asked: %q", seen)
	}
}

// kindOfForeign is the kind of the error of a call whose response is not the service's own.
func kindOfForeign(op string) error {
	if op == "Get" || op == "Query" {
		return tables.ErrGarbled
	}
	return tables.ErrUnknownOutcome
}

func callsOf(ctx context.Context, table *tables.Table) map[string]error {
	e := &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}}
	e.Set("Secret", tables.String("CANARY"))
	x := table.NewTransaction()
	x.Insert(e)
	x.DeleteUnconditional(tables.Key{Partition: "p", Row: "s"})
	all := map[string]error{"Insert": table.Entities().Insert(ctx, e)}
	_, all["Get"] = table.Entities().Get(ctx, e.Key)
	_, all["Query"] = table.Entities().Query().Partition("p").First(ctx)
	_, all["Commit"] = x.Commit(ctx)
	return all
}

// TestResponseOfAnotherHost: if a transport follows redirects nevertheless, its response is an error. A write may then have been applied.
func TestResponseOfAnotherHost(t *testing.T) {
	other, _ := elsewhere(t)
	front := httptest.NewServer(http.RedirectHandler(other+"/loot", http.StatusTemporaryRedirect))
	t.Cleanup(front.Close)
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(tables.Endpoints{Table: front.URL + "/acc"}, "sv=2019-02-02&sp=raud&sig="+redirectSecret,
		&tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: &following{}, Retry: policy.RetryOptions{MaxRetries: -1}}}))
	for op, err := range callsOf(t.Context(), a.Table("Notes")) {
		if !errors.Is(err, kindOfForeign(op)) || !strings.Contains(err.Error(), "another host") || strings.Contains(err.Error(), redirectSecret) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
