package tables_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const someKey = "c29tZSBrZXk=" // base64 of nothing in particular

// TestAccountIdentity: an account has one identity by all addresses of its own, another one than every other account, and that of the option.
func TestAccountIdentity(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://contoso.table.core.windows.net":                      "contoso.table.core.windows.net",
		"https://CONTOSO.table.core.windows.net:443/":                 "contoso.table.core.windows.net",
		"http://contoso.table.core.windows.net":                       "contoso.table.core.windows.net",
		"https://contoso-secondary.table.core.windows.net":            "contoso.table.core.windows.net",
		"https://contoso.table.core.chinacloudapi.cn":                 "contoso.table.core.chinacloudapi.cn",
		"https://contoso.z01.table.storage.azure.net":                 "contoso.z01.table.storage.azure.net",
		"https://contoso-secondary.table.cosmos.azure.com:443":        "contoso-secondary.table.cosmos.azure.com",
		"http://127.0.0.1:10002/devstoreaccount1":                     "127.0.0.1/devstoreaccount1",
		"http://127.0.0.1:40123/devstoreaccount1":                     "127.0.0.1/devstoreaccount1",
		"http://127.0.0.1:10002/devstoreaccount1-secondary":           "127.0.0.1/devstoreaccount1",
		"http://127.0.0.1:10002/devstoreaccount2":                     "127.0.0.1/devstoreaccount2",
		"https://fabrikam-secondary.contoso.table.core.windows.net/x": "fabrikam.contoso.table.core.windows.net/x",
	} {
		for _, given := range []string{"", "contoso, restored"} {
			a, err := tables.NewAccountWithSharedKey(tables.Endpoints{Table: endpoint}, "contoso", someKey, &tables.AccountOptions{Identity: given})
			assert.Check(t, err)
			assert.Equal(t, a.Identity(), cmp.Or(given, want), "%s, with the option %q", endpoint, given)
		}
	}
	assert.Equal(t, (*tables.Account)(nil).Identity(), "", "a nil account has an identity")
}

func TestAccountConnectionStrings(t *testing.T) {
	contoso := tables.AccountEndpoints("contoso")
	local := tables.Endpoints{Table: "http://127.0.0.1:10002/devstoreaccount1", Queue: "http://127.0.0.1:10001/devstoreaccount1", Blob: "http://127.0.0.1:10000/devstoreaccount1"}
	sas := "sv=2019-02-02&ss=t&sig=c2VjcmV0%3D"
	for text, want := range map[string]struct {
		endpoints tables.Endpoints
		name      string
		source    string
	}{
		"DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=" + someKey + ";EndpointSuffix=core.windows.net": {contoso, "contoso", "shared key"},
		"accountname=contoso;ACCOUNTKEY=" + someKey:                         {contoso, "contoso", "shared key"},
		" ;; AccountName = contoso ;\n AccountKey = " + someKey + " ;; ":    {contoso, "contoso", "shared key"},
		"AccountName=contoso;SharedAccessSignature=" + sas:                  {contoso, "contoso", "shared access signature"},
		"TableEndpoint=https://t.test/;SharedAccessSignature=?" + sas:       {tables.Endpoints{Table: "https://t.test"}, "", "shared access signature"},
		"UseDevelopmentStorage=true":                                        {local, "devstoreaccount1", "shared key"},
		"usedevelopmentstorage=TRUE;":                                       {local, "devstoreaccount1", "shared key"},
		"UseDevelopmentStorage=true;TableEndpoint=http://localhost:7/acct/": {tables.Endpoints{Table: "http://localhost:7/acct", Queue: local.Queue, Blob: local.Blob}, "devstoreaccount1", "shared key"},
		"UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://emulator/": {tables.Endpoints{Table: "http://emulator:10002/devstoreaccount1",
			Queue: "http://emulator:10001/devstoreaccount1", Blob: "http://emulator:10000/devstoreaccount1"}, "devstoreaccount1", "shared key"},
		"DefaultEndpointsProtocol=http;AccountName=contoso;AccountKey=" + someKey + ";EndpointSuffix=core.chinacloudapi.cn": {tables.Endpoints{
			Table: "http://contoso.table.core.chinacloudapi.cn", Queue: "http://contoso.queue.core.chinacloudapi.cn", Blob: "http://contoso.blob.core.chinacloudapi.cn"}, "contoso", "shared key"},
		"AccountName=contoso;AccountKey=" + someKey + ";BlobEndpoint=https://b.test/x;FileEndpoint=https://f.test;TableSecondaryEndpoint=https://s.test": {tables.Endpoints{
			Table: contoso.Table, Queue: contoso.Queue, Blob: "https://b.test/x"}, "contoso", "shared key"},
	} {
		a, err := tables.NewAccountFromConnectionString(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if a.Endpoints() != want.endpoints || a.Name() != want.name || a.Source() != want.source || a.IsCosmos() {
			t.Errorf("%s: %+v, %q, %q", text, a.Endpoints(), a.Name(), a.Source())
		}
		if !strings.Contains(a.String(), want.endpoints.Table) || a.LogValue().String() != a.String() {
			t.Errorf("%s: prints %s, logs %s", text, a, a.LogValue())
		}
	}
}

func TestAccountConnectionStringErrors(t *testing.T) {
	sas := "SharedAccessSignature=sv=1&sig=topsecret"
	for text, names := range map[string]string{
		"":                              "empty",
		" ;; ":                          "empty",
		"AccountName":                   "part 1",
		"AccountName=contoso;topsecret": "part 2",
		"AccountName=contoso":           "neither AccountKey nor SharedAccessSignature",
		"AccountKey=" + someKey:         "AccountName",
		"TableEndpoint=https://t.test;AccountKey=" + someKey: "AccountName",
		sas: "TableEndpoint",
		"AccountName=contoso;AccountKey=" + someKey + ";" + sas:                                             "both AccountKey and SharedAccessSignature",
		"AccountName=contoso;AccountName=contoso;AccountKey=" + someKey:                                     "AccountName twice",
		"AccountName=contoso;accountname=fabrikam;AccountKey=" + someKey:                                    "twice",
		"AccountName=contoso;AccountKey=topsecret!":                                                         "base64",
		"AccountName=contoso;AccountKey=" + someKey + ";Password=topsecret":                                 "part 3",
		"AccountName=contoso;AccountKey=" + someKey + ";DefaultEndpointsProtocol=ftp":                       "DefaultEndpointsProtocol",
		"AccountName=contoso;AccountKey=" + someKey + ";TableEndpoint=contoso.test":                         "table endpoint",
		"AccountName=contoso;AccountKey=" + someKey + ";QueueEndpoint=https://q.test/?sig=topsecret":        "queue endpoint",
		"AccountName=contoso;AccountKey=" + someKey + ";BlobEndpoint=https://user:topsecret@b.test":         "blob endpoint",
		"AccountName=contoso;AccountKey=" + someKey + ";TableEndpoint=https://t.test/\x7f%zz?sig=topsecret": "table endpoint",
		"AccountName=contoso;SharedAccessSignature=sv=1&st=topsecret":                                       "sig",
		"AccountName=contoso;SharedAccessSignature=%zz&sig=topsecret":                                       "signature",
		"UseDevelopmentStorage=false":                                                                       "UseDevelopmentStorage",
		"AccountName=evil.com/;AccountKey=" + someKey:                                                       "AccountName",
		"AccountName=contoso@evil.com;AccountKey=" + someKey:                                                "AccountName",
		"AccountName=contosoAccountKey=topsecret;AccountKey=" + someKey:                                     "AccountName",
		"AccountName=contoso;EndpointSuffix=evil.com/x;AccountKey=" + someKey:                               "EndpointSuffix",
		"AccountName=contoso;EndpointSuffix=x@evil.com;AccountKey=" + someKey:                               "EndpointSuffix",
		"AccountName=contoso;EndpointSuffix=core.windows.netAccountKey=" + someKey:                          "EndpointSuffix",
		"AccountName=contoso;DefaultEndpointsProtocol=httpsAccountKey=" + someKey:                           "DefaultEndpointsProtocol",
		"AccountName=contoso;TableEndpoint=https://t.testAccountKey=" + someKey + ";" + sas:                 "table endpoint",
		"AccountName=contoso;TableEndpoint=https://t.test/xAccountKey=" + someKey + ";" + sas:               "table endpoint",
		"AccountName=contoso;QueueEndpoint=https://q.test/#AccountKey=" + someKey + ";" + sas:               "queue endpoint",
		"UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://127.0.0.1AccountKey=" + someKey:       "endpoint",
		"UseDevelopmentStorage=true;AccountName=contoso;AccountKey=" + someKey:                              "UseDevelopmentStorage",
	} {
		_, err := tables.NewAccountFromConnectionString(text, nil)
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		e := harness.WantKind(t, err, tables.ErrWiring)
		if !strings.Contains(e.Error(), names) || strings.Contains(e.Error(), "topsecret") || strings.Contains(e.Error(), someKey) {
			t.Errorf("%q: %v does not name %q, or says too much", text, e, names)
		}
	}
}

func TestAccountMakersRefuse(t *testing.T) {
	public := tables.AccountEndpoints("contoso")
	var nilToken *tokens
	for name, err := range map[string]error{
		"nil credential":       assert.Err(tables.NewAccount(public, nil, nil)),
		"typed nil credential": assert.Err(tables.NewAccount(public, nilToken, nil)),
		"no endpoint":          assert.Err(tables.NewAccount(tables.Endpoints{Queue: public.Queue}, &tokens{}, nil)),
		"bad key":              assert.Err(tables.NewAccountWithSharedKey(public, "contoso", "?", nil)),
		"no sig":               assert.Err(tables.NewAccountWithSAS(public, "?sv=1", nil)),
		"endpoint with query":  assert.Err(tables.NewAccountWithSAS(tables.Endpoints{Table: "https://t.test?sig=x"}, "sig=x", nil)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		harness.WantKind(t, err, tables.ErrWiring)
	}
}

// TestAccountEndpointsWithSlash: the slash at an endpoint's end is nothing that a request could be signed wrongly by.
func TestAccountEndpointsWithSlash(t *testing.T) {
	s := storagetest.Open(t)
	if s.AccountKey == "" {
		useEverything(t, harness.Account(t)) // an account given by a signature has no key to sign with
		return
	}
	for _, slash := range []string{"", "/"} {
		endpoints := tables.Endpoints{Table: s.TableEndpoint + slash, Queue: s.QueueEndpoint + slash, Blob: s.BlobEndpoint + slash}
		options := &tables.AccountOptions{ClientOptions: harness.ClientOptions(t, nil)}
		a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(endpoints, s.AccountName, s.AccountKey, options))
		useEverything(t, a)
		sas := assert.Must[*tables.Account](t)(tables.NewAccountWithSAS(endpoints, "?"+accountSAS(t), options))
		useEverything(t, sas)
	}
}

// accountSAS makes a signature that allows everything for an hour.
func accountSAS(t testing.TB) string {
	t.Helper()
	s := storagetest.Open(t)
	credential := assert.Must[*aztables.SharedKeyCredential](t)(aztables.NewSharedKeyCredential(s.AccountName, s.AccountKey))
	signed := assert.Must[aztables.SASQueryParameters](t)(aztables.AccountSASSignatureValues{
		Services: "tqb", ResourceTypes: "sco", Permissions: "rwdlacup", ExpiryTime: harness.ServiceNow(t).Add(time.Hour).UTC(),
	}.Sign(credential))
	return signed.Encode()
}

// useEverything makes every kind of request.
func useEverything(t *testing.T, a *tables.Account) {
	t.Helper()
	ctx := context.Background()
	table := harness.NewTable(t, a)
	bags := table.Entities()
	e := harness.Bag("O'Brien & Söhne", "50% of + x", "one")
	assert.Check(t, bags.Insert(ctx, e))
	e.Set("Text", tables.String("two"))
	assert.Check(t, bags.Replace(ctx, e))
	assert.Check(t, bags.Merge(ctx, e))
	x := table.NewTransaction()
	for _, row := range []string{"a'b", "c+d", "e%20f"} {
		x.Upsert(harness.Bag(e.Key.Partition, row, row))
	}
	x.Delete(e)
	assert.Check(t, assert.Err(x.Commit(ctx)))
	if text, _ := rowText(t, table, e.Key.Partition, "c+d"); text != "c+d" {
		t.Errorf("row says %q", text)
	}
	var rows []string
	for e, err := range bags.Query().Partition(e.Key.Partition).Where(tables.Ge("Text", "a'b")).PageSize(2).All(ctx) {
		assert.Check(t, err)
		rows = append(rows, e.Key.Row)
	}
	assert.Slices(t, rows, []string{"a'b", "c+d", "e%20f"}, "query")
	useClients(t, a)
	assert.Check(t, table.Drop(ctx))
}

// useClients uses the SDK's clients that the account gives back.
func useClients(t *testing.T, a *tables.Account) {
	t.Helper()
	ctx := context.Background()
	assert.Check(t, assert.Err(a.TableService().NewListTablesPager(nil).NextPage(ctx)))
	queue := eventual.QueueService(a).NewQueueClient(storagetest.Open(t).QueueName(t))
	assert.Check(t, assert.Err(queue.Create(ctx, nil)))
	assert.Check(t, assert.Err(queue.EnqueueMessage(ctx, "aGVsbG8=", nil)))
	answer := assert.Must[azqueue.DequeueMessagesResponse](t)(queue.DequeueMessage(ctx, nil))
	if len(answer.Messages) != 1 || *answer.Messages[0].MessageText != "aGVsbG8=" {
		t.Errorf("%d messages", len(answer.Messages))
	}
	assert.Check(t, assert.Err(queue.Delete(ctx, nil)))
	container := blobstorage.Container(a, storagetest.Open(t).ContainerName(t))
	assert.Check(t, assert.Err(container.Create(ctx, nil)))
	assert.Check(t, assert.Err(container.NewBlockBlobClient("b").UploadBuffer(ctx, []byte("hello"), nil)))
	assert.Check(t, assert.Err(container.Delete(ctx, nil)))
}

func TestAccountWithoutOtherServices(t *testing.T) {
	a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://t.test"}, "contoso", someKey, nil))
	if blobstorage.Container(a, "c") != nil || eventual.QueueService(a) != nil || blobstorage.Service(a) != nil || a.TableService() == nil {
		t.Error("clients without an endpoint")
	}
	if cosmos := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://x.table.cosmos.azure.com"}, "contoso", someKey, nil)); !cosmos.IsCosmos() {
		t.Error("Cosmos DB is not told by its address")
	}
}

// tokens is a fake token credential.
type tokens struct{ scopes []string }

func (c *tokens) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.scopes = append(c.scopes, o.Scopes...)
	return azcore.AccessToken{Token: "faketoken", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestAccountTokenCredential(t *testing.T) {
	ctx := context.Background()
	seen := map[string]string{}
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: harness.Transport(func(req *http.Request) (*http.Response, error) {
		seen[req.URL.Host] = req.Header.Get("Authorization")
		return harness.Reply(req, 404, refusalBody("ResourceNotFound"), "Content-Type", "application/json"), nil
	})}}
	credential := &tokens{}
	a := assert.Must[*tables.Account](t)(tables.NewAccount(tables.AccountEndpoints("contoso"), credential, options))
	harness.WantKind(t, assert.Err(a.Table("Contoso").Entities().Get(ctx, tables.Key{})), tables.ErrNotFound)
	assert.Error(t, assert.Err(eventual.QueueService(a).NewQueueClient("q").GetProperties(ctx, nil)), "no error of the queue")
	assert.Error(t, assert.Err(blobstorage.Container(a, "c").GetProperties(ctx, nil)), "no error of the container")
	for _, service := range []string{"table", "queue", "blob"} {
		assert.Equal(t, seen["contoso."+service+".core.windows.net"], "Bearer faketoken", "%s: Authorization", service)
	}
	if a.Source() != "token credential" || a.Name() != "" || len(credential.scopes) == 0 {
		t.Errorf("source %q, name %q, scopes %q", a.Source(), a.Name(), credential.scopes)
	}
}

// TestAccountKeepsCallersOptions: two accounts made of the same options have the caller's policies once each.
func TestAccountKeepsCallersOptions(t *testing.T) {
	calls, attempts := 0, 0
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{
		PerCallPolicies:  append(make([]policy.Policy, 0, 8), harness.PerAttempt(func(*http.Request) { calls++ })),
		PerRetryPolicies: append(make([]policy.Policy, 0, 8), harness.PerAttempt(func(*http.Request) { attempts++ })),
		Transport:        refusingAll(404, "ResourceNotFound"),
	}}
	for range 2 {
		a := assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.AccountEndpoints("contoso"), "contoso", someKey, options))
		calls, attempts = 0, 0
		harness.WantKind(t, assert.Err(a.Table("Contoso").Entities().Get(context.Background(), tables.Key{})), tables.ErrNotFound)
		if calls != 1 || attempts != 1 {
			t.Errorf("policies ran %d and %d times", calls, attempts)
		}
	}
	if len(options.ClientOptions.PerCallPolicies) != 1 || len(options.ClientOptions.PerRetryPolicies) != 1 {
		t.Error("the caller's options were written to")
	}
}

// TestAccountNames: a name becomes a part of the host to which requests and their signatures go.
func TestAccountNames(t *testing.T) {
	for name, fine := range map[string]bool{"contoso": true, "contoso-secondary": true, "a1b": true, "devstoreaccount1": true,
		"": false, "evil.com/": false, "evil.com#": false, "x@evil.com": false, "con toso": false, "contoso.": false, "-contoso": false, "ab": false, strings.Repeat("x", 64): false} {
		_, err := tables.NewAccountWithSharedKey(tables.AccountEndpoints(name), name, someKey, nil)
		if (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
		_, err = tables.NewAccountWithSAS(tables.AccountEndpoints(name), "sv=1&sig=x", nil)
		if (err == nil) != fine {
			t.Errorf("%q with a shared access signature: %v", name, err)
		}
	}
}

// FuzzConnectionString: whatever is wrong with a connection string, no error and no text of an account shows its key.
func FuzzConnectionString(f *testing.F) {
	const canary = "Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5"
	for _, text := range []string{"AccountName=contoso;AccountKey=KEY", "AccountName=contosoAccountKey=KEY", "AccountName=contoso;TableEndpoint=https://t.testAccountKey=KEY;SharedAccessSignature=sig=KEY",
		"AccountName=contoso;EndpointSuffix=core.windows.netAccountKey=KEY", "TableEndpoint=https://t.test/KEY;SharedAccessSignature=sv=1&sig=x", "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://KEY",
		"AccountName=contoso;AccountKey=KEY;DefaultEndpointsProtocol=httpsKEY", "AccountName=contoso;SharedAccessSignature=sv=1&sig=KEY;KEY"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// The key stands behind a name and an equals sign, as in every connection string; what stands before it may be anything.
		text = strings.ReplaceAll(text, "KEY", canary)
		for _, setting := range []string{"AccountKey=", "sig="} {
			a, err := tables.NewAccountFromConnectionString(text+setting+canary, nil)
			shown := fmt.Sprintf("%v %+v %s", err, err, err)
			if err == nil {
				shown = fmt.Sprintf("%v %+v %s %v", a, a, a.Source(), a.LogValue())
				for _, endpoint := range []string{a.Endpoints().Table, a.Endpoints().Queue, a.Endpoints().Blob} {
					if u, err := url.Parse(endpoint); err != nil || strings.ContainsAny(u.Host, "=@/") {
						t.Errorf("%q: endpoint %q", text, endpoint)
					}
				}
			}
			if strings.Contains(shown, setting+canary) {
				t.Errorf("%q shows its key: %s", text, shown)
			}
		}
	})
}

// TestSignBlob: an address is for one blob, for reading, over https, and for 7 days at most.
func TestSignBlob(t *testing.T) {
	account := func(a *tables.Account, err error) *tables.Account {
		t.Helper()
		assert.Check(t, err)
		return a
	}
	endpoints := tables.AccountEndpoints("contoso")
	shared := account(tables.NewAccountWithSharedKey(endpoints, "contoso", someKey, nil))
	address := assert.Must[string](t)(blobstorage.Sign(t.Context(), shared, "photos", "Employees/Photo/a b", time.Now().Add(time.Hour)))
	u := assert.Must[*url.URL](t)(url.Parse(address))
	q := u.Query()
	if u.Scheme != "https" || u.Host != "contoso.blob.core.windows.net" || q.Get("spr") != "https" || q.Get("sp") != "r" || q.Get("sr") != "b" || q.Get("se") == "" || q.Get("sig") == "" {
		t.Errorf("the address is %s", address)
	}
	signed := account(tables.NewAccountWithSAS(endpoints, "sv=1&sig=topsecret", nil))
	bare := account(tables.NewAccountWithSharedKey(tables.Endpoints{Table: endpoints.Table}, "contoso", someKey, nil))
	for name, c := range map[string]struct {
		account         *tables.Account
		container, blob string
		life            time.Duration
	}{
		"past":            {shared, "photos", "a", -time.Second},
		"too long":        {shared, "photos", "a", 7*24*time.Hour + time.Minute},
		"no container":    {shared, "", "a", time.Hour},
		"no blob":         {shared, "photos", "", time.Hour},
		"signature":       {signed, "photos", "a", time.Hour},
		"without a blobs": {bare, "photos", "a", time.Hour},
	} {
		address, err := blobstorage.Sign(t.Context(), c.account, c.container, c.blob, time.Now().Add(c.life))
		if err == nil {
			t.Errorf("%s: %s", name, address)
			continue
		}
		if e := harness.WantKind(t, err, map[bool]error{true: tables.ErrWiring, false: tables.ErrInvalid}[name == "signature" || name == "without a blobs"]); strings.Contains(e.Error(), "topsecret") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// TestTwoTracers: every request would have two spans.
func TestTwoTracers(t *testing.T) {
	_, err := tables.NewAccountWithSharedKey(tables.Endpoints{Table: "https://contoso.table.core.windows.net"}, "contoso", "a2V5", &tables.AccountOptions{
		TracerProvider: noop.NewTracerProvider(),
		ClientOptions:  azcore.ClientOptions{TracingProvider: tracing.NewProvider(func(string, string) tracing.Tracer { return tracing.Tracer{} }, nil)},
	})
	if harness.WantKind(t, err, tables.ErrWiring); !strings.Contains(err.Error(), "set only TracerProvider") {
		t.Error(err)
	}
}
