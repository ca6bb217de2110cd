package tables_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Secrets that must turn up nowhere, and keys that must turn up in no span.
const (
	secretSig = "c2VjcmV0+c2lnbmF0dXJl/MDEyMw=="
	secretKey = "c2VjcmV0IGFjY291bnQga2V5IDAxMjM0NTY3ODk="
	personal  = "jones"
)

// leakage collects everything that a program could print or export.
type leakage struct {
	mu    sync.Mutex
	texts []string
	logs  int
	spans int
}

func (l *leakage) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, fmt.Sprintf(format, args...))
}

// addError adds every text that an error and everything below it can be made to give.
func (l *leakage) addError(err error) {
	testrun.EachCause(err, func(err error) {
		text, _ := json.Marshal(err)
		l.add("%s %v %+v %#v %q %s", err, err, err, err, err, text)
		var u *url.Error
		if errors.As(err, &u) {
			l.add("%s %#v %#v", u.URL, u, *u)
		}
	})
}

// addLog adds what log/slog makes of values.
func (l *leakage) addLog(values ...any) {
	var b bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
		for _, v := range values {
			slog.New(handler).Info("test", "value", v)
		}
	}
	l.add("%s", b.String())
}

// listen collects the SDK's own log until the test ends.
func (l *leakage) listen(t *testing.T) {
	azlog.SetListener(func(event azlog.Event, text string) {
		l.mu.Lock()
		l.logs++
		l.mu.Unlock()
		l.add("log %s: %s", event, text)
	})
	t.Cleanup(func() { azlog.SetListener(nil) })
}

// provider is a tracing provider that writes every span down; its texts are marked so that keys can be looked for.
func (l *leakage) provider() tracing.Provider {
	return harness.Spans(func(text string) {
		l.mu.Lock()
		l.spans++
		l.mu.Unlock()
		l.add("span: %s", text)
	})
}

// check fails the test for every text that holds a secret, or for a span that holds an entity's key.
func (l *leakage) check(t *testing.T, secrets ...string) {
	t.Helper()
	for _, text := range l.texts {
		for _, secret := range secrets {
			// Half of a secret is one too, but a signature may begin with a plus, so the halves are cut by length.
			for _, form := range []string{secret[:len(secret)/2], secret[len(secret)/2:]} {
				if strings.Contains(text, form) || strings.Contains(text, url.QueryEscape(form)) || strings.Contains(text, url.PathEscape(form)) {
					t.Errorf("a secret is in: %s", text)
				}
			}
		}
		if strings.HasPrefix(text, "span: ") && strings.Contains(text, personal) {
			t.Errorf("a key is in: %s", text)
		}
	}
	if len(l.texts) < 10 || l.logs == 0 || l.spans == 0 {
		t.Errorf("%d texts, %d logs, %d spans: nothing was watched", len(l.texts), l.logs, l.spans)
	}
}

// secretAccounts opens an account for each kind of secret.
func (l *leakage) secretAccounts(t *testing.T, endpoints tables.Endpoints, through policy.Transporter) []*tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: through, TracingProvider: l.provider(),
		Retry: policy.RetryOptions{MaxRetries: 1, RetryDelay: time.Microsecond}}}
	account := assert.Must[*tables.Account](t)
	sas := "sv=2019-02-02&ss=tqb&srt=sco&sp=rwdlacup&se=2999-01-01T00%3A00%3A00Z&sig=" + url.QueryEscape(secretSig)
	return []*tables.Account{
		account(tables.NewAccountWithSAS(endpoints, sas, options)),
		account(tables.NewAccountWithSharedKey(endpoints, "devstoreaccount1", secretKey, options)),
		account(tables.NewAccountFromConnectionString("AccountName=devstoreaccount1;SharedAccessSignature="+sas+";TableEndpoint="+endpoints.Table+
			";QueueEndpoint="+endpoints.Queue+";BlobEndpoint="+endpoints.Blob, options)),
	}
}

// provoke makes every kind of request, and collects what it says.
func (l *leakage) provoke(ctx context.Context, a *tables.Account) {
	table := a.Table("Contoso")
	bags := table.Entities()
	keys := []tables.Key{{Partition: "O'" + personal + ") (x", Row: personal + "@contoso.com"}, {Partition: "%27" + personal + ")", Row: personal}}
	for _, key := range keys {
		e := harness.Bag(key.Partition, key.Row, "text")
		e.ETag = azcore.ETag(`W/"1"`)
		x := table.NewTransaction()
		x.Insert(e)
		x.DeleteUnconditional(tables.Key{Partition: key.Partition, Row: "other" + personal})
		_, commit := x.Commit(ctx)
		_, get := bags.Get(ctx, key)
		_, query := bags.Query().Partition(key.Partition).Where(tables.Eq("Text", personal)).Page(ctx, "")
		_, queue := eventual.QueueService(a).NewQueueClient("jobs").GetProperties(ctx, nil)
		_, enqueue := eventual.QueueService(a).NewQueueClient("jobs").EnqueueMessage(ctx, "m", nil)
		_, blob := blobstorage.Container(a, "photos").NewBlobClient("b").GetProperties(ctx, nil)
		for _, err := range []error{commit, get, query, queue, enqueue, blob, bags.Insert(ctx, e), bags.Replace(ctx, e), bags.Merge(ctx, e),
			bags.Upsert(ctx, e), bags.Delete(ctx, e), table.Create(ctx), table.Drop(ctx)} {
			l.addError(err)
			l.addLog(err)
		}
		for _, err := range bags.GetMany(ctx, keys, nil) {
			l.addError(err)
		}
	}
	l.add("%v %+v %#v %v %+v %#v %s", a, a, a, *a, *a, *a, a)
	l.add("%v %+v %#v %+v %#v", table, table, table, bags, bags)
	l.add("%+v %#v", bags.Query(), bags.Query())
	l.addLog(a, *a, table, a.Endpoints(), a.Source())
}

// TestSecretsInTransportErrors: the address of a request, which holds the signature, is in every transport error.
func TestSecretsInTransportErrors(t *testing.T) {
	var l leakage
	l.listen(t)
	closed := tables.Endpoints{Table: "http://127.0.0.1:1/devstoreaccount1", Queue: "http://127.0.0.1:1/devstoreaccount1", Blob: "http://127.0.0.1:1/devstoreaccount1"}
	nowhere := tables.Endpoints{Table: "https://t.invalid", Queue: "https://q.invalid", Blob: "https://b.invalid"}
	for _, a := range l.secretAccounts(t, closed, nil) {
		l.provoke(context.Background(), a)
	}
	unknownHost := harness.Transport(func(req *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: req.URL.Host}}}
	})
	for _, a := range l.secretAccounts(t, nowhere, unknownHost) {
		l.provoke(context.Background(), a)
	}
	hang := harness.Transport(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: req.Context().Err()}
	})
	for _, a := range l.secretAccounts(t, nowhere, hang) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		l.provoke(ctx, a)
		cancel()
	}
	wrapped := harness.Transport(func(req *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("proxy of %s: %w", req.URL, errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("asked for %q", req.URL)))
	})
	for _, a := range l.secretAccounts(t, nowhere, wrapped) {
		l.provoke(context.Background(), a)
		assert.ErrorIs(t, assert.Err(a.Table("Contoso").Entities().Get(context.Background(), tables.Key{})), io.ErrUnexpectedEOF, "the cause")
	}
	l.check(t, secretSig, secretKey)
}

// TestSecretsInAnswers: a service, or something in front of it, may quote what it was sent.
func TestSecretsInAnswers(t *testing.T) {
	var l leakage
	l.listen(t)
	endpoints := tables.Endpoints{Table: "https://t.test", Queue: "https://q.test", Blob: "https://b.test"}
	for _, status := range []int{400, 403, 404, 409, 500} {
		quoting := harness.Transport(func(req *http.Request) (*http.Response, error) {
			body := `{"odata.error":{"code":"AuthenticationFailed","message":{"lang":"en-US","value":"no access: ` + req.URL.String() + `"}}}`
			return harness.Reply(req, status, body, "Content-Type", "application/json"), nil
		})
		for _, a := range l.secretAccounts(t, endpoints, quoting) {
			l.provoke(context.Background(), a)
			_, err := a.Table("Contoso").Entities().Get(context.Background(), tables.Key{})
			var response *azcore.ResponseError
			if !errors.As(err, &response) || response.StatusCode != status || response.ErrorCode != "AuthenticationFailed" {
				t.Errorf("%d: %v has no ResponseError of the service's", status, err)
			}
		}
	}
	l.check(t, secretSig, secretKey)
}

// TestSecretsOnTheService: a wrong signature and a wrong key are refused, and what says so holds neither.
func TestSecretsOnTheService(t *testing.T) {
	var l leakage
	l.listen(t)
	s := storagetest.Open(t)
	endpoints := tables.Endpoints{Table: s.TableEndpoint, Queue: s.QueueEndpoint, Blob: s.BlobEndpoint}
	for _, a := range l.secretAccounts(t, endpoints, harness.ClientOptions(t, nil).Transport) {
		l.provoke(context.Background(), a)
		_, err := a.Table("Contoso").Entities().Get(context.Background(), tables.Key{Partition: "p", Row: "r"})
		harness.WantKind(t, err, tables.ErrDenied)
	}
	l.check(t, secretSig, secretKey)
}

// TestSecretsInSuccess: spans and logs of requests that go well.
func TestSecretsInSuccess(t *testing.T) {
	s := storagetest.Open(t)
	if s.AccountKey == "" {
		t.Fatal("the test account has no key to sign with")
	}
	var l leakage
	l.listen(t)
	sas := accountSAS(t)
	query := assert.Must[url.Values](t)(url.ParseQuery(sas))
	options := &tables.AccountOptions{ClientOptions: harness.ClientOptions(t, func(o *azcore.ClientOptions) { o.TracingProvider = l.provider() })}
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(tables.Endpoints{Table: s.TableEndpoint}, sas, options))
	ctx := context.Background()
	table := harness.NewTable(t, a)
	bags := table.Entities()
	for _, row := range []string{personal, "O'" + personal, personal + ")", "%27" + personal, "(PartitionKey=" + personal} {
		e := harness.Bag(personal, row, personal)
		assert.Check(t, bags.Insert(ctx, e))
		l.addError(bags.Insert(ctx, e))
		l.addError(bags.Replace(ctx, e))
		x := table.NewTransaction()
		x.Merge(e)
		assert.Check(t, assert.Err(x.Commit(ctx)))
		_, err := bags.Get(ctx, tables.Key{Partition: personal, Row: row + "x"})
		l.addError(err)
	}
	for _, err := range bags.Query().Partition(personal).PageSize(1).All(ctx) {
		assert.Check(t, err)
	}
	l.check(t, query.Get("sig"), s.AccountKey)
}
