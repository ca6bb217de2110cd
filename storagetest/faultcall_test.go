package storagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// sdkCalls makes one call of each kind with the SDKs, for the sake of their requests.
func sdkCalls(t *testing.T, s *Service) {
	ctx := t.Context()
	tables, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	table := tables.NewClient("Employees")
	entity := []byte(`{"PartitionKey":"it's","RowKey":"r(1)"}`)
	tables.CreateTable(ctx, "Employees", nil)
	tables.DeleteTable(ctx, "Employees", nil)
	tables.NewListTablesPager(nil).NextPage(ctx)
	table.GetAccessPolicy(ctx, nil)
	table.SetAccessPolicy(ctx, nil)
	table.AddEntity(ctx, entity, nil)
	table.GetEntity(ctx, "it's", "r(1)", nil)
	table.NewListEntitiesPager(nil).NextPage(ctx)
	table.UpdateEntity(ctx, entity, &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	table.UpsertEntity(ctx, entity, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
	table.DeleteEntity(ctx, "it's", "r(1)", nil)
	table.SubmitTransaction(ctx, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd, Entity: entity}}, nil)
	table.SubmitTransaction(ctx, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: entity}}, nil)
	tables.GetProperties(ctx, nil)

	queues, err := azqueue.NewServiceClientFromConnectionString(s.ConnectionString, &azqueue.ClientOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	queue := queues.NewQueueClient("intents")
	queue.Create(ctx, nil)
	queue.Delete(ctx, nil)
	queues.NewListQueuesPager(nil).NextPage(ctx)
	queue.GetProperties(ctx, nil)
	queue.SetMetadata(ctx, nil)
	queue.EnqueueMessage(ctx, "m", nil)
	queue.DequeueMessage(ctx, nil)
	queue.PeekMessage(ctx, nil)
	queue.UpdateMessage(ctx, "id", "receipt", "m", nil)
	queue.DeleteMessage(ctx, "id", "receipt", nil)
	queue.ClearMessages(ctx, nil)
	sdkBlobCalls(ctx, t, s)
}

func sdkBlobCalls(ctx context.Context, t *testing.T, s *Service) {
	blobs, err := azblob.NewClientFromConnectionString(s.ConnectionString, &azblob.ClientOptions{ClientOptions: s.ClientOptions})
	assert.Check(t, err)
	container := blobs.ServiceClient().NewContainerClient("photos")
	block, appended := container.NewBlockBlobClient("2026/messages"), container.NewAppendBlobClient("log")
	container.Create(ctx, nil)
	container.Delete(ctx, nil)
	blobs.NewListContainersPager(nil).NextPage(ctx)
	container.GetProperties(ctx, nil)
	container.NewListBlobsFlatPager(nil).NextPage(ctx)
	block.UploadBuffer(ctx, []byte("x"), &blockblob.UploadBufferOptions{})
	block.StartCopyFromURL(ctx, "http://other.test/blob", nil)
	block.StageBlock(ctx, "AAAA", streaming.NopCloser(strings.NewReader("x")), nil)
	block.CommitBlockList(ctx, []string{"AAAA"}, nil)
	block.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	appended.Create(ctx, nil)
	appended.AppendBlock(ctx, streaming.NopCloser(strings.NewReader("x")), &appendblob.AppendBlockOptions{})
	appended.Seal(ctx, nil)
	block.DownloadStream(ctx, nil)
	block.GetProperties(ctx, nil)
	block.SetHTTPHeaders(ctx, blob.HTTPHeaders{}, nil)
	block.SetMetadata(ctx, nil, nil)
	held, err := lease.NewBlobClient(block, nil)
	assert.Check(t, err)
	held.AcquireLease(ctx, 15, nil)
	block.Delete(ctx, nil)
	block.GetTags(ctx, nil)
}

var wantSDKCalls = []string{
	"table CreateTable ", "table DeleteTable Employees", "table QueryTables ", "table GetTableACL Employees", "table SetTableACL Employees",
	"table InsertEntity Employees", "table GetEntity Employees", "table QueryEntities Employees", "table ReplaceEntity Employees",
	"table MergeEntity Employees", "table DeleteEntity Employees", "table Batch Employees", "table Batch Employees", "table Other ",
	"queue CreateQueue intents", "queue DeleteQueue intents", "queue ListQueues ", "queue GetQueueProperties intents",
	"queue SetQueueMetadata intents", "queue PutMessage intents", "queue GetMessages intents", "queue PeekMessages intents",
	"queue UpdateMessage intents", "queue DeleteMessage intents", "queue ClearMessages intents",
	"blob CreateContainer photos", "blob DeleteContainer photos", "blob ListContainers ", "blob GetContainerProperties photos",
	"blob ListBlobs photos", "blob PutBlob photos/2026/messages", "blob CopyBlob photos/2026/messages", "blob PutBlock photos/2026/messages",
	"blob PutBlockList photos/2026/messages", "blob GetBlockList photos/2026/messages", "blob PutBlob photos/log",
	"blob AppendBlock photos/log", "blob SealBlob photos/log", "blob GetBlob photos/2026/messages", "blob GetBlobProperties photos/2026/messages",
	"blob SetBlobProperties photos/2026/messages", "blob SetBlobMetadata photos/2026/messages", "blob LeaseBlob photos/2026/messages",
	"blob DeleteBlob photos/2026/messages", "blob Other photos/2026/messages",
}

// What the SDKs send is told apart on an emulator's addresses and on an account's, with and without knowing the addresses.
func TestCallsOfTheSDKs(t *testing.T) {
	account, err := newAccountService("AccountName=contoso;AccountKey=a2V5;DefaultEndpointsProtocol=http")
	assert.Check(t, err)
	account.ConnectionString += ";EndpointSuffix=core.windows.net"
	emulator := newAzuriteService(addresses{Blob: "http://127.0.0.1:1", Queue: "http://127.0.0.1:2", Table: "http://127.0.0.1:3"})
	for name, s := range map[string]*Service{"account": account, "emulator": emulator} {
		for _, located := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s located=%v", name, located), func(t *testing.T) {
				s := s.WithRetries(0)
				faulty, faults := s.Faulty(NotSent)
				if !located {
					faults.locate = locator{}
				}
				sdkCalls(t, faulty)
				var got []string
				for i, c := range faults.Calls() {
					got = append(got, fmt.Sprintf("%s %s %s", c.Service, c.Kind, c.Resource))
					if c.Index != i || c.Service == TableService && c.Kind == GetEntity && c.Path != "Employees(PartitionKey='it''s',RowKey='r(1)')" {
						t.Errorf("%#v", c)
					}
					if i < len(wantSDKCalls) && got[i] != wantSDKCalls[i] {
						t.Errorf("call %d: %s, want %s", i, got[i], wantSDKCalls[i])
					}
				}
				assert.Equal(t, len(got), len(wantSDKCalls), "calls")
			})
		}
	}
}

// What others than the SDK send is told by what is left to go by.
func TestCallsOfOthers(t *testing.T) {
	for _, c := range []struct {
		method, address string
		header          []string
		want            string
	}{
		{"POST", "http://127.0.0.1:1/acct/T", []string{"DataServiceVersion", "3.0"}, "table InsertEntity T"},
		{"MERGE", "http://127.0.0.1:1/acct/T(PartitionKey='p',RowKey='r')", []string{"Authorization", "SharedKeyLite a:b"}, "table MergeEntity T"},
		{"GET", "http://127.0.0.1:1/acct/T()?$filter=x", []string{"DataServiceVersion", "3.0"}, "table QueryEntities T"},
		{"PUT", "http://localhost:1/acct/c?restype=container", nil, "blob CreateContainer c"},
		{"PUT", "http://localhost:1/acct/b", []string{"x-ms-blob-type", "BlockBlob"}, "blob PutBlob b"},
		{"POST", "http://[::1]:1/acct/q/messages", nil, "queue PutMessage q"},
		{"DELETE", "http://127.0.0.1:1/acct/q/messages/id?popreceipt=r", nil, "queue DeleteMessage q"},
		{"GET", "http://127.0.0.1:1/acct/c/b", nil, "blob GetBlob c/b"},
		{"GET", "http://127.0.0.1:1/acct/?comp=list", nil, " Other "},
		{"POST", "http://a.table.core.windows.net/$metadata", nil, "table Other "},
		{"PUT", "http://a.queue.core.windows.net/q/other", nil, "queue Other q"},
	} {
		req := httptest.NewRequest(c.method, c.address, nil)
		for i := 0; i < len(c.header); i += 2 {
			req.Header.Set(c.header[i], c.header[i+1])
		}
		call, _, err := locator{}.call(req)
		assert.Check(t, err)
		assert.Equal(t, fmt.Sprintf("%s %s %s", call.Service, call.Kind, call.Resource), c.want, "%s %s", c.method, c.address)
	}
}

func TestCallsThatWrite(t *testing.T) {
	for _, c := range []struct {
		call Call
		want bool
	}{
		{Call{Kind: GetEntity, Method: "GET"}, false}, {Call{Kind: GetBlobProperties, Method: "HEAD"}, false}, {Call{Kind: PeekMessages, Method: "GET"}, false},
		{Call{Kind: GetMessages, Method: "GET"}, true}, {Call{Kind: Batch, Method: "POST"}, true}, {Call{Kind: DeleteEntity, Method: "DELETE"}, true},
	} {
		if c.call.Writes() != c.want {
			t.Errorf("%v writes: %v", c.call, !c.want)
		}
	}
	assert.Equal(t, (Call{Index: 3, Kind: PutMessage, Resource: "intents"}).String(), "call 3: PutMessage intents")
	assert.Equal(t, (Call{Kind: ListQueues}).String(), "call 0: ListQueues")
}

// The table of a batch is in its body, which has to arrive all the same.
func TestBatchesArriveWhole(t *testing.T) {
	body := "--b\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nDELETE http://h/acct/Logs(PartitionKey='a/b HTTP/1.1',RowKey='') HTTP/1.1\r\nIf-Match: *\r\n\r\n--c--"
	var got string
	faults := NewFaults(transporter(func(req *http.Request) (*http.Response, error) {
		b, _, err := readBody(req)
		got = string(b)
		return answering("", true), err
	}), nil)
	_, err := faults.Do(httptest.NewRequest(http.MethodPost, "http://a.table.test/$batch", strings.NewReader(body)))
	if calls := faults.Calls(); err != nil || got != body || calls[0].Resource != "Logs" {
		t.Errorf("%v %v %q", err, calls, got)
	}
	broken := errors.New("broken")
	assert.Equal(t, assert.Err(faults.Do(httptest.NewRequest(http.MethodPost, "http://a.table.test/$batch", errorReader{broken}))), broken)
	for body, want := range map[string]string{"": "", "POST HTTP/1.1": "", "POST /T HTTP/1.1": "T", "x\nPOST http://h/T?a=b HTTP/1.1\r\n": "T"} {
		assert.Equal(t, batchTable([]byte(body)), want, "%q", body)
	}
}

func TestRequestCounterCountsKinds(t *testing.T) {
	s, _ := newToy()
	var counter RequestCounter
	s.ClientOptions.PerRetryPolicies = counter.ClientOptions().PerRetryPolicies
	assert.Check(t, put(t.Context(), s, "a", "x"))
	assert.Check(t, put(t.Context(), s, "b", "x"))
	assert.Check(t, assert.Err(get(t.Context(), s, "a")))
	if n := counter.CountOf(ReplaceEntity); n != 2 || counter.CountOf(GetEntity) != 1 || counter.Count() != 3 {
		t.Errorf("%v", counter.Kinds())
	}
	counter.Reset()
	if len(counter.Kinds()) != 0 || counter.CountOf(ReplaceEntity) != 0 {
		t.Errorf("after Reset: %v", counter.Kinds())
	}
	// As an injector it sees what faults see.
	s, _ = newToy()
	faulty, _ := s.WithRetries(3).Faulty(First(&counter, Times(2, NotSent)))
	assert.Check(t, put(t.Context(), faulty, "a", "x"))
	if counter.Count() != 3 || !slices.Equal(struck(&counter, GetEntity), nil) || counter.String() != "4 requests: unknown GetEntity 1, table ReplaceEntity 3" {
		t.Errorf("%v", &counter)
	}
}
