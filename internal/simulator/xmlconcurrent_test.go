package simulator

import (
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

// together runs work in several goroutines at once.
func together(n int, work func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}

// Of rival receivers, one gets a message.
func TestQueueRivals(t *testing.T) {
	ctx, q := testContext(t), newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	var mu sync.Mutex
	got := map[string]int{}
	together(8, func(i int) {
		for n := range 50 {
			if _, err := orders.EnqueueMessage(ctx, fmt.Sprintf("%d %d", i, n), nil); err != nil {
				t.Error(err)
				return
			}
			r, err := orders.DequeueMessage(ctx, nil)
			if err != nil || len(r.Messages) != 1 {
				t.Errorf("%v, %v", r.Messages, err)
				return
			}
			m := r.Messages[0]
			if _, err := orders.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil); err != nil {
				t.Error(err)
			}
			mu.Lock()
			got[*m.MessageText]++
			mu.Unlock()
		}
	})
	for text, n := range got {
		if n != 1 {
			t.Errorf("%s was handed out %d times", text, n)
		}
	}
	if len(got) != 8*50 {
		t.Errorf("%d messages", len(got))
	}
}

// Of rival writers, one creates the blob, and of rival appends at one position, one succeeds.
func TestBlobRivals(t *testing.T) {
	ctx, b := testContext(t), newTestBlobs(t, 1)
	photos := b.container(t)
	_, err := photos.NewAppendBlobClient("log").Create(ctx, nil)
	noError(t, err)
	any := azcore.ETagAny
	var mu sync.Mutex
	created, appended := 0, 0
	together(8, func(i int) {
		_, err := photos.NewBlockBlobClient("a").UploadBuffer(ctx, []byte{byte(i)}, &blockblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}}})
		position := int64(0)
		_, appendErr := photos.NewAppendBlobClient("log").AppendBlock(ctx, readSeeker("x"), &appendblob.AppendBlockOptions{
			AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &position}})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			created++
		}
		if appendErr == nil {
			appended++
		}
	})
	if created != 1 || appended != 1 {
		t.Errorf("created %d times, appended %d times", created, appended)
	}
}

// A put and a get, in a queue that grows by one held message with each round.
func BenchmarkQueuePutGet(b *testing.B) {
	f := serveFunc(newQueueService(NewClock(testStart()), newDice(1), &Chaos{}).Serve)
	benchCall(b, f, rawCall{method: "PUT", target: "/orders"}, 201)
	for b.Loop() {
		benchCall(b, f, rawCall{method: "POST", target: "/orders/messages", body: message("x")}, 201)
		benchCall(b, f, rawCall{method: "GET", target: "/orders/messages"}, 200)
	}
}

func BenchmarkBlobGetRange(b *testing.B) {
	f := serveFunc(newBlobService(nil, NewClock(testStart()), newDice(1), &Chaos{}).Serve)
	benchCall(b, f, rawCall{method: "PUT", target: "/photos?restype=container"}, 201)
	benchCall(b, f, rawCall{"PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, string(make([]byte, 8*mib))}, 201)
	for b.Loop() {
		benchCall(b, f, rawCall{"GET", "/photos/a", map[string]string{"x-ms-range": "bytes=100-5000000"}, ""}, 206)
	}
}
