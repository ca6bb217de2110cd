package indexentities_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// homeOf is what the metadata of a list in a blob says of its table.
func homeOf(p *process) string {
	endpoint, _ := url.Parse(p.account.Endpoints().Table)
	return base64.RawURLEncoding.EncodeToString([]byte(strings.ToLower(endpoint.Hostname()) + endpoint.Path + "/" + p.repo.Table().Name()))
}

// TestForgedPlaces: an intent that names a list of another index, or what is no list, changes nothing there and ends on the
// poison queue.
func TestForgedPlaces(t *testing.T) {
	for o, places := range map[option][]string{
		inBlobs: {"other/Sales/Jones", "backup", "lastname/../other/Sales/Jones", "lastname", "lastname/", ""},
		outside: {"other_Sales\tJones", "Sales\tempid_000001", "lastname", "", "lastnames_Sales\tJones"},
	} {
		t.Run(string(o), func(t *testing.T) {
			t.Parallel() // on Azurite it waits until messages appear again
			ctx, s := context.Background(), storagetest.Open(t)
			w := (&world{option: o}).open(t, s)
			p := harness.Must[*process](t)(w.start(s))
			harness.Must[any](t)(nil, p.repo.Insert(ctx, with(1, "Jones")))
			content := "Sales\tempid_000001\n"
			count := "1"
			blob := blobstorage.Container(p.account, w.container).NewBlockBlobClient("other/Sales/Jones")
			_, err := blob.Upload(ctx, streaming.NopCloser(strings.NewReader(content)), &blockblob.UploadOptions{Metadata: map[string]*string{"tpcount": &count}})
			harness.Must[any](t)(nil, err)
			rows := p.account.Table(w.table).Entities()
			foreign := &tables.Entity{Key: tables.Key{Partition: "other_Sales", Row: "Jones"}}
			foreign.Set("IDs", tables.String(content))
			harness.Must[any](t)(nil, rows.Insert(ctx, foreign))
			for _, place := range places {
				body := map[string]any{"id": "FORGED", "repository": w.table, "partition": "Sales", "row": "empid_000009", "outside": map[string][]string{"lastname": {place}}}
				text := harness.Must[[]byte](t)(json.Marshal(map[string]any{"v": 1, "id": "FORGED", "type": "tablepatterns.intent", "sent": time.Now(), "body": body}))
				_, err := eventual.QueueService(p.account).NewQueueClient(p.queue.Name()).EnqueueMessage(ctx, base64.StdEncoding.EncodeToString(text), nil)
				harness.Must[any](t)(nil, err)
			}
			harness.Must[any](t)(nil, harness.PoisonAll(ctx, s, p.queue))
			if poison := harness.Must[[]eventual.PoisonMessage](t)(p.queue.Poison().Peek(ctx, 32)); len(poison) != len(places) {
				t.Errorf("%d entries on the poison queue, want %d", len(poison), len(places))
			}
			answer, err := blob.DownloadStream(ctx, nil)
			harness.Must[any](t)(nil, err)
			if got := harness.Must[[]byte](t)(io.ReadAll(answer.Body)); !bytes.Equal(got, []byte(content)) {
				t.Errorf("the other index's list is %q", got)
			}
			if e := harness.Must[*tables.Entity](t)(rows.Get(ctx, foreign.Key)); e.ETag != foreign.ETag {
				t.Error("the other index's row was written")
			}
		})
	}
}

// TestListOfAnotherTable: a list that another table's index wrote in the same container is neither read nor changed.
func TestListOfAnotherTable(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{option: inBlobs}).open(t, s)
	other := *w
	other.table = s.TableName(t)
	p, q := harness.Must[*process](t)(w.start(s)), harness.Must[*process](t)(other.start(s))
	harness.Must[any](t)(nil, q.account.Table(other.table).Create(ctx))
	harness.Must[any](t)(nil, p.repo.Insert(ctx, with(1, "Jones")))
	if keys, err := q.index.In("Sales").Keys(ctx, compoundkey.String("Jones")); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("the other table's list is read: %v, %v", keys, err)
	}
}
