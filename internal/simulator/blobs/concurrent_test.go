package blobs

import (
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// Of concurrent writers, one creates the blob, and of concurrent appends at one position, one succeeds.
func TestBlobConcurrentWriters(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	_, err := photos.NewAppendBlobClient("log").Create(ctx, nil)
	assert.Check(t, err)
	anyETag := azcore.ETagAny
	var mu sync.Mutex
	created, appended := 0, 0
	probe.Together(8, func(i int) {
		_, err := photos.NewBlockBlobClient("a").UploadBuffer(ctx, []byte{byte(i)}, &blockblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &anyETag}}})
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

func BenchmarkBlobGetRange(b *testing.B) {
	f := probe.Service(New(nil, environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{}).Serve)
	probe.BenchCall(b, f, probe.Call{Method: "PUT", Target: "/photos?restype=container"}, 201)
	probe.BenchCall(b, f, probe.NewCall("PUT", "/photos/a", map[string]string{"x-ms-blob-type": "BlockBlob"}, string(make([]byte, 8*mib))), 201)
	for b.Loop() {
		probe.BenchCall(b, f, probe.NewCall("GET", "/photos/a", map[string]string{"x-ms-range": "bytes=100-5000000"}, ""), 206)
	}
}
