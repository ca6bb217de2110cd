package tables_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// unescapedCharacters holds every ASCII character that a key may hold and that stands for something else than itself in
// a path, to some reader: every one outside of RFC 3986's unreserved characters.
const unescapedCharacters = "%25 50% a+b&c=d:e@f$g!h*i;j,k(l)m[n]o{p}q|r^s`t\"u<v>w'x~y-z.0_"

// paths records the path of every request, and of every operation in a transaction, as it is sent.
type paths struct {
	mu   sync.Mutex
	seen []string
}

func (p *paths) watch(o *azcore.ClientOptions) {
	next := o.Transport
	o.Transport = harness.Transport(func(req *http.Request) (*http.Response, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, req.URL.EscapedPath())
		if strings.HasSuffix(req.URL.Path, "/$batch") {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			for line := range strings.Lines(string(body)) {
				if words := strings.Fields(line); len(words) == 3 && words[2] == "HTTP/1.1" {
					if u, err := url.Parse(words[1]); err == nil {
						p.seen = append(p.seen, u.EscapedPath())
					}
				}
			}
		}
		return next.Do(req)
	})
}

// TestPathsHoldUnreservedCharactersOnly: in the path of every request, keys and blob names are percent-encoded but for
// RFC 3986's unreserved characters, whether this library or the SDK makes the address, and the service accepts what
// signs it.
func TestPathsHoldUnreservedCharactersOnly(t *testing.T) {
	s := storagetest.Open(t)
	if s.AccountKey == "" {
		t.Fatal("the test signs requests itself and needs the account's key")
	}
	endpoints := tables.Endpoints{Table: s.TableEndpoint, Queue: s.QueueEndpoint, Blob: s.BlobEndpoint}
	for name, open := range map[string]func(*tables.AccountOptions) (*tables.Account, error){
		"shared key": func(o *tables.AccountOptions) (*tables.Account, error) {
			return tables.NewAccountWithSharedKey(endpoints, s.AccountName, s.AccountKey, o)
		},
		"SAS": func(o *tables.AccountOptions) (*tables.Account, error) {
			return tables.NewAccountWithSAS(endpoints, accountSAS(t), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent paths
			a := assert.Must[*tables.Account](t)(open(&tables.AccountOptions{ClientOptions: harness.ClientOptions(t, sent.watch)}))
			useHostileAddresses(t, a)
			checkPaths(t, sent.seen, endpoints)
		})
	}
}

func useHostileAddresses(t *testing.T, a *tables.Account) {
	ctx := context.Background()
	table := harness.NewTable(t, a)
	keyRoundTrip(t, table, tables.Key{Partition: unescapedCharacters, Row: unescapedCharacters[1:]})
	x := table.NewTransaction()
	x.Upsert(harness.Row(strings.ReplaceAll(unescapedCharacters, ",", ""), strings.ReplaceAll(unescapedCharacters, ",", "")))
	assert.Must[[]azcore.ETag](t)(x.Commit(ctx))

	// The SDK's own address. Without the quotes, which the SDK stores doubled.
	key := strings.ReplaceAll(unescapedCharacters, "'", "")
	assert.Check(t, table.Entities().Upsert(ctx, harness.Row(key, key)))
	assert.Must[aztables.GetEntityResponse](t)(table.Client().GetEntity(ctx, key, key, nil))

	service := storagetest.Open(t)
	container := blobstorage.Container(a, service.ContainerName(t))
	blob := container.NewBlockBlobClient(unescapedCharacters + "/$&+=:@")
	queue := eventual.QueueService(a).NewQueueClient(service.QueueName(t))
	for i, err := range []error{
		assert.Err(container.Create(ctx, nil)), assert.Err(blob.UploadBuffer(ctx, []byte("x"), nil)), assert.Err(blob.GetProperties(ctx, nil)),
		assert.Err(queue.Create(ctx, nil)), assert.Err(queue.EnqueueMessage(ctx, "x", nil)), assert.Err(queue.DequeueMessage(ctx, nil)),
	} {
		assert.NoError(t, err, "request %d to a container and a queue", i)
	}
}

func checkPaths(t *testing.T, sent []string, endpoints tables.Endpoints) {
	t.Helper()
	const text = `[A-Za-z0-9._~%-]*`
	var roots []string
	for _, endpoint := range []string{endpoints.Table, endpoints.Queue, endpoints.Blob} {
		u := assert.Must[*url.URL](t)(url.Parse(endpoint))
		roots = append(roots, regexp.QuoteMeta(u.Path))
	}
	form := regexp.MustCompile(`^(` + strings.Join(roots, "|") + `)(/\$batch|/Tables(\(` + text + `\)|\('` + text + `'\))?|/[A-Za-z0-9]+(\(\)|\(PartitionKey='` + text + `',RowKey='` + text + `'\))?|(/` + text + `)*)$`)
	for _, path := range sent {
		if !form.MatchString(path) {
			t.Errorf("a request went to %s", path)
		}
	}
	all := strings.Join(sent, "\n")
	for _, want := range []string{"(PartitionKey='%2525%2050%25%20a%2Bb%26c%3Dd%3Ae%40f%24g%21h%2Ai", "/%2525%2050%25%20a%2Bb%26c%3Dd%3Ae%40f%24g%21h%2Ai", "%2F%24%26%2B%3D%3A%40"} {
		assert.Contains(t, all, want, "the paths")
	}
}
