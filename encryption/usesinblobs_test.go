package encryption_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestUsesInBlobs: sealed blobs are counted by their data keys, others are not, under a prefix or in the whole container.
func TestUsesInBlobs(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	blobs := blobstorage.Container(w.account, w.s.ContainerName(t))
	assert.Check(t, assert.Err(blobs.Create(ctx, nil)))
	upload := func(name string, content []byte) {
		t.Helper()
		assert.Check(t, assert.Err(blobs.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), nil)))
	}
	want := map[encryption.DataKeyID]int64{}
	for generation := range 2 {
		s := streamOf(t, w.open(t, w.wrapper, nil), "")
		for i := range 20 + generation {
			c := sealed(t, s, content(i*10))
			want[assert.Must[encryption.DataKeyID](t)(s.DataKey(c))]++
			upload(fmt.Sprintf("photos/%d-%d", generation, i), c)
		}
		upload(fmt.Sprintf("other/%d", generation), sealed(t, s, nil))
		assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	}
	for i, plain := range [][]byte{nil, []byte("TPE\x01"), content(1000), append([]byte("TPE\x01\x01"), content(200)...)} {
		upload(fmt.Sprintf("photos/plain-%d", i), plain)
	}
	if got := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.UsesInBlobs(ctx, blobs, "photos/")); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	total := int64(0)
	for _, n := range assert.Must[map[encryption.DataKeyID]int64](t)(encryption.UsesInBlobs(ctx, blobs, "")) {
		total += n
	}
	assert.Equal(t, total, 43, "of the whole container")
	assert.ErrorIs(t, assert.Err(encryption.UsesInBlobs(ctx, nil, "")), tables.ErrWiring, "no container")
	if err := assert.Err(encryption.UsesInBlobs(ctx, blobstorage.Container(w.account, "not-there"), "")); !errors.Is(err, tables.ErrMissingResource) {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestUsesInBlobsFaults: an answer that does not come makes an error, never a smaller number.
func TestUsesInBlobsFaults(t *testing.T) {
	w, ctx := worldOn(t, storagetest.Simulator(t, nil)), t.Context()
	blobs := blobstorage.Container(w.account, "photos")
	assert.Check(t, assert.Err(blobs.Create(ctx, nil)))
	s := streamOf(t, w.registry, "")
	for i := range 2 {
		assert.Check(t, assert.Err(blobs.NewBlockBlobClient(fmt.Sprint(i)).Upload(ctx, streaming.NopCloser(bytes.NewReader(sealed(t, s, content(100)))), nil)))
	}
	points := 0
	for i := range 3 {
		for _, fault := range storagetest.FaultsOf(storagetest.GetBlob) {
			faulty, faults := w.s.Faulty(storagetest.OnIndex(i, storagetest.Once(storagetest.Always(fault))))
			uses, err := encryption.UsesInBlobs(ctx, blobstorage.Container(open(t, faulty), "photos"), "")
			total := int64(0)
			for _, n := range uses {
				total += n
			}
			if len(faults.Met()) == 0 || err == nil && total != 2 || err != nil && uses != nil {
				t.Errorf("call %d, %v: %v, %v", i, fault, uses, err)
			}
			points++
		}
	}
	if points < 12 {
		t.Errorf("only %d points", points)
	}
}
