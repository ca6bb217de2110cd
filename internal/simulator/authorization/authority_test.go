package authorization_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	queuesas "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

func TestSharedKey(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	for name, spoil := range map[string]func(*http.Request){
		"another path":    func(r *http.Request) { r.URL.Path = "/Other()" },
		"another date":    func(r *http.Request) { r.Header.Set("x-ms-date", "Mon, 02 Jan 2006 15:04:05 GMT") },
		"no date":         func(r *http.Request) { r.Header.Del("x-ms-date") },
		"another account": func(r *http.Request) { replaceHeader(r, "contoso:", "fabrikam:") },
		"another scheme":  func(r *http.Request) { replaceHeader(r, "SharedKeyLite", "SharedKey") },
		"no base64":       func(r *http.Request) { r.Header.Set("Authorization", "SharedKeyLite contoso:?") },
		"another comp":    func(r *http.Request) { r.URL.RawQuery = "comp=acl" },
		"nonsense":        func(r *http.Request) { r.Header.Set("Authorization", "nonsense") },
	} {
		req := a.Request(http.MethodGet, "/Employees()", "")
		spoil(req)
		a.Answer(req).Check(t, name, 403, "AuthenticationFailed")
	}
	req := a.Request(http.MethodGet, "/Employees()", "")
	req.Header.Del("Authorization")
	a.Answer(req).Check(t, "nothing", 401, "NoAuthenticationInformation")

	req = a.Request(http.MethodGet, "/Employees()", "", "Content-Type", "application/json")
	key, _ := base64.StdEncoding.DecodeString(a.Key())
	h := hmac.New(sha256.New, key)
	h.Write([]byte("GET\n\napplication/json\n" + req.Header.Get("x-ms-date") + "\n/contoso/Employees()"))
	req.Header.Set("Authorization", "SharedKey contoso:"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	a.Answer(req).Check(t, "SharedKey", 200, "")
}

func replaceHeader(r *http.Request, old, text string) {
	r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, text, 1))
}

func TestBearerTokens(t *testing.T) {
	for token, status := range map[string]int{"": 401, "right": 200, "wrong": 401} {
		for _, known := range []string{"right", ""} {
			a := accounts.WithTable(t, simulator.Options{BearerToken: known})
			req := a.Request(http.MethodGet, "/Employees()", "")
			req.Header.Set("Authorization", "Bearer "+token)
			want := status
			if known == "" {
				want = 401
			}
			assert.Equal(t, a.Answer(req).StatusCode, want, "%q", token)
		}
	}
}

func tableKey(a accounts.Account) *aztables.SharedKeyCredential {
	a.T.Helper()
	credential := assert.Must[*aztables.SharedKeyCredential](a.T)(aztables.NewSharedKeyCredential(a.Account(), a.Key()))
	return credential
}

// tableSAS is the SDK's signature for the table, with the range of keys that the SDK signs and leaves out.
func tableSAS(a accounts.Account, v aztables.SASSignatureValues) string {
	a.T.Helper()
	if v.TableName == "" {
		v.TableName = "Employees"
	}
	if v.ExpiryTime.IsZero() && v.Identifier == "" {
		v.ExpiryTime = a.Clock().Now().Add(time.Hour)
	}
	text := assert.Must[string](a.T)(v.Sign(tableKey(a)))
	more := url.Values{}
	for name, value := range map[string]string{"spk": v.StartPartitionKey, "srk": v.StartRowKey, "epk": v.EndPartitionKey, "erk": v.EndRowKey} {
		if value != "" {
			more.Set(name, value)
		}
	}
	return strings.TrimSuffix(text+"&"+more.Encode(), "&")
}

func TestTableSignatures(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	accounts.Insert(a, "p", "r", "")
	now := a.Clock().Now()
	sum := func(v aztables.SASSignatureValues) string { return tableSAS(a, v) }
	get := func(sas string) accounts.Reply {
		return a.Anonymous(http.MethodGet, a.TableEndpoint()+"/Employees()?"+sas, "")
	}
	good := sum(aztables.SASSignatureValues{Permissions: "r"})
	get(good).Check(t, "good", 200, "")
	a.Anonymous(http.MethodGet, a.TableEndpoint()+"/employees()?"+good, "").Check(t, "name in another case", 200, "")
	for name, c := range map[string]struct{ sas, code string }{
		"expired":           {sum(aztables.SASSignatureValues{Permissions: "r", ExpiryTime: now}), "AuthenticationFailed"},
		"not yet":           {sum(aztables.SASSignatureValues{Permissions: "r", StartTime: now.Add(time.Second)}), "AuthenticationFailed"},
		"more permissions":  {strings.Replace(good, "sp=r", "sp=raud", 1), "AuthenticationFailed"},
		"another signature": {strings.Replace(good, "sig=", "sig=A", 1), "AuthenticationFailed"},
		"a wider range":     {good + "&epk=z", "AuthenticationFailed"},
		"another table":     {sum(aztables.SASSignatureValues{Permissions: "r", TableName: "Other"}), "AuthorizationFailure"},
		"no reading":        {sum(aztables.SASSignatureValues{Permissions: "aud"}), "AuthorizationPermissionMismatch"},
		"HTTPS only":        {sum(aztables.SASSignatureValues{Permissions: "r", Protocol: aztables.SASProtocolHTTPS}), "AuthorizationProtocolMismatch"},
		"no such policy":    {sum(aztables.SASSignatureValues{Identifier: "none"}), "AuthenticationFailed"},
		"an old version":    {sum(aztables.SASSignatureValues{Permissions: "r", Version: "2015-04-05"}), "AuthenticationFailed"},
	} {
		get(c.sas).Check(t, name, 403, c.code)
	}
	https := sum(aztables.SASSignatureValues{Permissions: "r", Protocol: aztables.SASProtocolHTTPS})
	a.Anonymous(http.MethodGet, strings.Replace(a.TableEndpoint(), "http", "https", 1)+"/Employees()?"+https, "").Check(t, "HTTPS", 200, "")
	get(sum(aztables.SASSignatureValues{Permissions: "r", StartTime: now})).Check(t, "from now", 200, "")
	a.Clock().Advance(time.Hour)
	get(good).Check(t, "an hour later", 403, "AuthenticationFailed")
	all := sum(aztables.SASSignatureValues{Permissions: "raud"})
	for _, r := range []accounts.Reply{
		a.Anonymous(http.MethodGet, a.TableEndpoint()+"/Tables?"+all, ""), a.Anonymous(http.MethodPost, a.TableEndpoint()+"/Tables?"+all, `{"TableName":"Other"}`),
		a.Anonymous(http.MethodDelete, a.TableEndpoint()+"/Tables('Employees')?"+all, ""), a.Anonymous(http.MethodGet, a.TableEndpoint()+"/?restype=service&comp=properties&"+all, ""),
		a.Anonymous(http.MethodGet, a.TableEndpoint()+"/Employees?comp=acl&"+all, ""),
	} {
		assert.Equal(t, r.StatusCode, 403, r.Request.URL.Path)
	}
}

func TestTablePermissionsByVerb(t *testing.T) {
	for permissions, allowed := range map[string]string{"r": "get query", "a": "insert", "u": "update", "d": "delete", "au": "insert update upsert", "raud": "get query insert update upsert delete"} {
		a := accounts.WithTable(t, simulator.Options{})
		accounts.Insert(a, "p", "r", "")
		sas := tableSAS(a, aztables.SASSignatureValues{Permissions: permissions})
		const key = "(PartitionKey='p',RowKey='r')"
		for _, c := range []struct{ name, method, target, body, condition string }{
			{"get", "GET", key, "", ""}, {"query", "GET", "()", "", ""}, {"insert", "POST", "", `{"PartitionKey":"p","RowKey":"new"}`, ""},
			{"update", "PUT", key, "{}", "*"}, {"update", "PATCH", key, "{}", "*"}, {"upsert", "PUT", key, "{}", ""}, {"upsert", "MERGE", key, "{}", ""}, {"delete", "DELETE", key, "", "*"},
		} {
			var headers []string
			if c.condition != "" {
				headers = []string{"If-Match", c.condition}
			}
			r := a.Anonymous(c.method, a.TableEndpoint()+"/Employees"+c.target+"?"+sas, c.body, headers...)
			if ok := r.StatusCode < 300; ok != strings.Contains(" "+allowed+" ", " "+c.name+" ") {
				t.Errorf("%s with %s: %d %s", c.name, permissions, r.StatusCode, r.Text)
			}
		}
	}
}

func TestTableKeyRanges(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	for _, pk := range []string{"a", "b", "c", "d"} {
		for _, rk := range []string{"1", "2", "3"} {
			accounts.Insert(a, pk, rk, "")
		}
	}
	for _, c := range []struct {
		v    aztables.SASSignatureValues
		want string
	}{
		{aztables.SASSignatureValues{StartPartitionKey: "b", EndPartitionKey: "c"}, "b1 b2 b3 c1 c2 c3"},
		{aztables.SASSignatureValues{StartPartitionKey: "b", EndPartitionKey: "b"}, "b1 b2 b3"},
		{aztables.SASSignatureValues{StartPartitionKey: "b", StartRowKey: "2", EndPartitionKey: "d", EndRowKey: "1"}, "b2 b3 c1 c2 c3 d1"},
		{aztables.SASSignatureValues{StartPartitionKey: "b", StartRowKey: "2", EndPartitionKey: "b", EndRowKey: "2"}, "b2"},
		{aztables.SASSignatureValues{StartPartitionKey: "c"}, "c1 c2 c3 d1 d2 d3"}, {aztables.SASSignatureValues{EndPartitionKey: "a", EndRowKey: "2"}, "a1 a2"},
	} {
		for _, chaos := range []environment.Chaos{{}, {Unordered: true}} {
			a.SetChaos(chaos)
			c.v.Permissions = "raud"
			sas := tableSAS(a, c.v)
			var read, written []string
			body := a.Anonymous(http.MethodGet, a.TableEndpoint()+"/Employees()?"+sas, "").Text
			for _, row := range a.Rows("Employees") {
				if strings.Contains(body, `"PartitionKey":"`+row.Partition+`","RowKey":"`+row.Row+`"`) {
					read = append(read, row.Partition+row.Row)
				}
				address := a.TableEndpoint() + "/Employees(PartitionKey='" + row.Partition + "',RowKey='" + row.Row + "')?" + sas
				got, put := a.Anonymous(http.MethodGet, address, "").StatusCode, a.Anonymous(http.MethodPut, address, "{}", "If-Match", "*").StatusCode
				if got == 200 && put == 204 {
					written = append(written, row.Partition+row.Row)
				} else if got != 403 || put != 403 {
					t.Errorf("%s%s: %d %d", row.Partition, row.Row, got, put)
				}
			}
			if strings.Join(read, " ") != c.want || strings.Join(written, " ") != c.want {
				t.Errorf("%+v: read %v, wrote %v, want %s", c.v, read, written, c.want)
			}
		}
	}
	a.SetChaos(environment.Chaos{})
	sas := tableSAS(a, aztables.SASSignatureValues{StartPartitionKey: "b", StartRowKey: "2", Permissions: "au"})
	body := probe.Batch(probe.Part("PUT", "(PartitionKey='b',RowKey='2')", "{}") + probe.Part("PUT", "(PartitionKey='b',RowKey='1')", "{}"))
	r := a.Anonymous(http.MethodPost, a.TableEndpoint()+"/$batch?"+sas, body, "Content-Type", "multipart/mixed; boundary=b")
	if r.Code(t) != "202 AuthorizationFailure" || !strings.Contains(r.Text, `"1:This`) {
		t.Error(r.StatusCode, r.Text)
	}
}

func TestStoredPolicies(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	expiry := a.Clock().Now().Add(time.Hour).Format(time.RFC3339)
	policy := func(id, start, expiry, permission string) {
		t.Helper()
		a.Want(http.MethodPut, "/Employees?comp=acl", "<SignedIdentifiers><SignedIdentifier><Id>"+id+"</Id><AccessPolicy><Start>"+start+"</Start><Expiry>"+expiry+
			"</Expiry><Permission>"+permission+"</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>", 204, "")
	}
	get := func(v aztables.SASSignatureValues) int {
		t.Helper()
		return a.Anonymous(http.MethodGet, a.TableEndpoint()+"/Employees()?"+tableSAS(a, v), "").StatusCode
	}
	policy("readers", "", expiry, "r")
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "readers"}), 200, "by the policy alone")
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "readers", Permissions: "r"}), 403, "permissions said twice")
	policy("readers", "", expiry, "")
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "readers", Permissions: "r"}), 200, "permissions by the signature")
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "readers"}), 403, "no permissions")
	policy("others", "", expiry, "r")
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "readers"}), 403, "revoked")
	a.Clock().Advance(time.Hour)
	assert.Equal(t, get(aztables.SASSignatureValues{Identifier: "others"}), 403, "expired")
}

func TestAccountSignatures(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{})
	sas := func(services, types, permissions string) string {
		t.Helper()
		v, err := aztables.AccountSASSignatureValues{ExpiryTime: a.Clock().Now().Add(time.Hour), Permissions: permissions, Services: services, ResourceTypes: types}.Sign(tableKey(a))
		assert.Check(t, err)
		return "?" + v.Encode()
	}
	for _, c := range []struct{ services, types, permissions, method, target, body, code string }{
		{"t", "o", "r", "GET", "/Employees()", "", ""}, {"bqt", "sco", "rwdlacup", "GET", "/Employees()", "", ""},
		{"q", "o", "r", "GET", "/Employees()", "", "AuthorizationServiceMismatch"}, {"t", "c", "r", "GET", "/Employees()", "", "AuthorizationPermissionMismatch"}, {"t", "o", "a", "GET", "/Employees()", "", "AuthorizationPermissionMismatch"},
		{"t", "c", "l", "GET", "/Tables", "", ""}, {"t", "o", "l", "GET", "/Tables", "", "AuthorizationPermissionMismatch"}, {"t", "c", "c", "POST", "/Tables", `{"TableName":"New1"}`, ""},
		{"t", "c", "w", "POST", "/Tables", `{"TableName":"New2"}`, ""}, {"t", "c", "r", "POST", "/Tables", `{"TableName":"New3"}`, "AuthorizationPermissionMismatch"},
		{"t", "o", "a", "POST", "/Employees", `{"PartitionKey":"p","RowKey":"r"}`, ""}, {"t", "o", "a", "PUT", "/Employees(PartitionKey='p',RowKey='r')", `{}`, "AuthorizationPermissionMismatch"},
		{"t", "sco", "rwdlacup", "GET", "/Employees", "", ""}, {"t", "c", "d", "DELETE", "/Tables('New1')", "", ""},
	} {
		status := 200
		if c.code != "" {
			status = 403
		}
		r := a.Anonymous(c.method, a.TableEndpoint()+c.target+sas(c.services, c.types, c.permissions), c.body)
		if r.StatusCode/100 != status/100 || !strings.Contains(r.Text, c.code) {
			t.Errorf("%+v: %d %s", c, r.StatusCode, r.Text)
		}
	}
}

func TestQueuesAndBlobsThroughTheSDK(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx := probe.Context(t)
	queueKey := assert.Must[*azqueue.SharedKeyCredential](t)(azqueue.NewSharedKeyCredential(a.Account(), a.Key()))
	queues, err := azqueue.NewServiceClientWithSharedKeyCredential(a.QueueEndpoint(), queueKey, &azqueue.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	assert.Check(t, assert.Err(queues.CreateQueue(ctx, "work", nil)))
	assert.Check(t, assert.Err(queues.NewQueueClient("work").EnqueueMessage(ctx, "hello", nil)))
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(queues.NewQueueClient("work").DequeueMessage(ctx, nil))
	if len(got.Messages) != 1 || *got.Messages[0].MessageText != "hello" {
		t.Errorf("%+v", got)
	}

	blobKey := assert.Must[*blob.SharedKeyCredential](t)(blob.NewSharedKeyCredential(a.Account(), a.Key()))
	blobs, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), blobKey, &blobservice.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	photos := blobs.NewContainerClient("photos")
	assert.Check(t, assert.Err(photos.Create(ctx, nil)))
	hi := "hi"
	_, err = photos.NewBlockBlobClient("a b/ü.jpg").UploadBuffer(ctx, []byte("data"), &blockblob.UploadBufferOptions{
		Metadata: map[string]*string{"first-1": &hi, "First_2": &hi, "firsta": &hi}, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &hi}})
	if err != nil && !strings.Contains(err.Error(), "InvalidMetadata") {
		t.Fatal(err) // the names need not be right; the signature over them must be
	}
	assert.Check(t, assert.Err(photos.NewBlockBlobClient("a b/ü.jpg").UploadBuffer(ctx, []byte("data"), nil)))
	wrong := assert.Must[*blob.SharedKeyCredential](t)(blob.NewSharedKeyCredential(a.Account(), "AAAA"))
	stranger, err := container.NewClientWithSharedKeyCredential(a.BlobEndpoint()+"/photos", wrong, &container.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	probe.WantError(t, assert.Err(stranger.NewBlobClient("a b/ü.jpg").DownloadStream(ctx, nil)), 403, "AuthenticationFailed")
}

func TestQueueSignatures(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx := probe.Context(t)
	key := assert.Must[*azqueue.SharedKeyCredential](t)(azqueue.NewSharedKeyCredential(a.Account(), a.Key()))
	owner, err := azqueue.NewServiceClientWithSharedKeyCredential(a.QueueEndpoint(), key, &azqueue.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	for _, name := range []string{"work", "rest"} {
		_, err = owner.CreateQueue(ctx, name, nil)
		assert.Check(t, err)
	}
	with := func(permissions string) *azqueue.QueueClient {
		t.Helper()
		v, err := queuesas.QueueSignatureValues{QueueName: "work", Permissions: permissions, ExpiryTime: a.Clock().Now().Add(time.Hour)}.SignWithSharedKey(key)
		assert.Check(t, err)
		client, err := azqueue.NewQueueClientWithNoCredential(a.QueueEndpoint()+"/work?"+v.Encode(), &azqueue.ClientOptions{ClientOptions: a.ClientOptions()})
		assert.Check(t, err)
		return client
	}
	assert.Check(t, assert.Err(with("a").EnqueueMessage(ctx, "x", nil)))
	assert.Check(t, assert.Err(with("r").PeekMessage(ctx, nil)))
	probe.WantError(t, assert.Err(with("r").EnqueueMessage(ctx, "x", nil)), 403, "AuthorizationPermissionMismatch")
	probe.WantError(t, assert.Err(with("rau").DequeueMessage(ctx, nil)), 403, "AuthorizationPermissionMismatch")
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(with("p").DequeueMessage(ctx, nil))
	assert.Check(t, assert.Err(with("p").DeleteMessage(ctx, *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil)))
	probe.WantError(t, assert.Err(with("raup").Delete(ctx, nil)), 403, "AuthorizationPermissionMismatch")
	probe.WantError(t, assert.Err(with("raup").ClearMessages(ctx, nil)), 403, "AuthorizationPermissionMismatch")
	a.Clock().Advance(-time.Hour) // so that the next signature has expired when it is used
	late := with("r")
	a.Clock().Advance(time.Hour)
	probe.WantError(t, assert.Err(late.PeekMessage(ctx, nil)), 403, "AuthenticationFailed")
	elsewhere := strings.Replace(with("r").URL(), "/work?", "/rest/messages?peekonly=true&", 1)
	a.Anonymous(http.MethodGet, elsewhere, "").Check(t, "another queue", 403, "AuthenticationFailed")
	signed, err := owner.GetSASURL(queuesas.AccountResourceTypes{Service: true}, queuesas.AccountPermissions{List: true}, a.Clock().Now().Add(time.Hour), nil)
	assert.Check(t, err)
	// The SDK allows HTTPS only.
	a.Anonymous(http.MethodGet, strings.Replace(strings.Replace(signed, "?", "?comp=list&", 1), "http:", "https:", 1), "").Check(t, "list", 200, "")
}

func TestBlobSignatures(t *testing.T) {
	a := accounts.New(t, simulator.Options{})
	ctx := probe.Context(t)
	key := assert.Must[*blob.SharedKeyCredential](t)(blob.NewSharedKeyCredential(a.Account(), a.Key()))
	owner, err := container.NewClientWithSharedKeyCredential(a.BlobEndpoint()+"/photos", key, &container.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	_, err = owner.Create(ctx, nil)
	assert.Check(t, err)
	for _, name := range []string{"a b/1.jpg", "other"} {
		_, err = owner.NewBlockBlobClient(name).UploadBuffer(ctx, []byte("data"), nil)
		assert.Check(t, err)
	}
	options := &blob.ClientOptions{ClientOptions: a.ClientOptions()}
	read := func(address string) error {
		t.Helper()
		client := assert.Must[*blob.Client](t)(blob.NewClientWithNoCredential(address, options))
		resp, err := client.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "data" {
			return errors.New("another body")
		}
		return nil
	}
	one := owner.NewBlobClient("a b/1.jpg")
	signed := assert.Must[string](t)(one.GetSASURL(blobsas.BlobPermissions{Read: true}, a.Clock().Now().Add(time.Hour), nil))
	assert.Check(t, read(signed))
	_, query, _ := strings.Cut(signed, "?")
	probe.WantError(t, read(owner.NewBlobClient("other").URL()+"?"+query), 403, "AuthenticationFailed")
	client := assert.Must[*blob.Client](t)(blob.NewClientWithNoCredential(signed, options))
	probe.WantError(t, assert.Err(client.Delete(ctx, nil)), 403, "AuthorizationPermissionMismatch")

	all := assert.Must[string](t)(owner.GetSASURL(blobsas.ContainerPermissions{Read: true, List: true}, a.Clock().Now().Add(time.Hour), nil))
	_, query, _ = strings.Cut(all, "?")
	assert.Check(t, read(owner.NewBlobClient("other").URL()+"?"+query))
	lister := assert.Must[*container.Client](t)(container.NewClientWithNoCredential(all, &container.ClientOptions{ClientOptions: a.ClientOptions()}))
	page := assert.Must[container.ListBlobsFlatResponse](t)(lister.NewListBlobsFlatPager(nil).NextPage(ctx))
	assert.Equal(t, len(page.Segment.BlobItems), 2, "blobs")
	probe.WantError(t, assert.Err(lister.NewBlockBlobClient("new").UploadBuffer(ctx, []byte("data"), nil)), 403, "AuthorizationPermissionMismatch")
	a.Clock().Advance(time.Hour)
	probe.WantError(t, read(signed), 403, "AuthenticationFailed")
	var denied *azcore.ResponseError
	if err := read(signed); !errors.As(err, &denied) {
		t.Error(err)
	}
}
