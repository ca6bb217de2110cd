package blobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

func TestAppendBlob(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	log := b.container(t).NewAppendBlobClient("log")
	add := func(text string, p appendblob.AppendPositionAccessConditions, match *azcore.ETag) (appendblob.AppendBlockResponse, error) {
		return log.AppendBlock(ctx, readSeeker(text), &appendblob.AppendBlockOptions{AppendPositionAccessConditions: &p,
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: match}}})
	}
	none := appendblob.AppendPositionAccessConditions{}
	probe.WantError(t, assert.Err(add("x", none, nil)), 404, "BlobNotFound")
	created, err := log.Create(ctx, &appendblob.CreateOptions{Metadata: map[string]*string{"first": to.Ptr("1")}})
	assert.Check(t, err)
	first := assert.Must[appendblob.AppendBlockResponse](t)(add("one", none, created.ETag))
	if *first.BlobAppendOffset != "0" || *first.BlobCommittedBlockCount != 1 || *first.ETag == *created.ETag {
		t.Errorf("offset %s, count %d", *first.BlobAppendOffset, *first.BlobCommittedBlockCount)
	}
	probe.WantError(t, assert.Err(add("two", none, created.ETag)), 412, "ConditionNotMet")

	position := func(n int64) appendblob.AppendPositionAccessConditions {
		return appendblob.AppendPositionAccessConditions{AppendPosition: &n}
	}
	probe.WantError(t, assert.Err(add("two", position(2), nil)), 412, "AppendPositionConditionNotMet")
	probe.WantError(t, assert.Err(add("two", position(4), nil)), 412, "AppendPositionConditionNotMet")
	second := assert.Must[appendblob.AppendBlockResponse](t)(add("two", position(3), nil))
	if *second.BlobAppendOffset != "3" || *second.BlobCommittedBlockCount != 2 {
		t.Errorf("offset %s, count %d", *second.BlobAppendOffset, *second.BlobCommittedBlockCount)
	}

	most := func(n int64) appendblob.AppendPositionAccessConditions {
		return appendblob.AppendPositionAccessConditions{MaxSize: &n}
	}
	probe.WantError(t, assert.Err(add("three", most(10), nil)), 412, "MaxBlobSizeConditionNotMet")
	assert.Check(t, assert.Err(add("three", most(11), nil)))
	wantContent(t, b, "log", "onetwothree")
	got := assert.Must[blob.GetPropertiesResponse](t)(log.GetProperties(ctx, nil))
	if *got.BlobCommittedBlockCount != 3 || *got.ContentLength != 11 || *got.BlobType != blob.BlobTypeAppendBlob || *got.Metadata["First"] != "1" {
		t.Errorf("properties %+v", got)
	}
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=appendblock", map[string]string{"x-ms-blob-condition-appendpos": "-1"}, "x"), 400, "InvalidHeaderValue")
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=appendblock", map[string]string{"x-ms-copy-source": "x"}, "x"), 400, "UnsupportedHeader")

	// Creating it again empties it.
	assert.Check(t, assert.Err(log.Create(ctx, nil)))
	wantContent(t, b, "log", "")
}

func TestAppendBlockLimit(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	call := probe.NewCall("PUT", "/photos/log?comp=appendblock", nil, "x")
	for i := range maxAppends {
		if a := b.Send(t, call); a.Status != 201 || a.Header.Get("x-ms-blob-append-offset") != fmt.Sprint(i) {
			t.Fatalf("block %d: %d at %s", i, a.Status, a.Header.Get("x-ms-blob-append-offset"))
		}
	}
	b.Want(t, call, 409, "BlockCountExceedsLimit")
	wantContent(t, b, "log", strings.Repeat("x", maxAppends))
}

// A read holds what the blob was, whatever is appended while its body is taken in.
func TestAppendLeavesReadsAlone(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	want := ""
	var reads []*protocol.Answer
	for i := range 100 {
		b.Want(t, probe.NewCall("PUT", "/photos/log?comp=appendblock", nil, string(rune('a'+i%26))), 201, "")
		reads = append(reads, b.Want(t, probe.NewCall("GET", "/photos/log", nil, ""), 200, ""))
	}
	for i, read := range reads {
		want += string(rune('a' + i%26))
		assert.Equal(assert.Fatal(t), string(read.Body), want, "read %d holds %q", i, read.Body)
	}
}
