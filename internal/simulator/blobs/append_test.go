package blobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

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
	_, err := add("x", none, nil)
	probe.WantError(t, err, 404, "BlobNotFound")
	created, err := log.Create(ctx, &appendblob.CreateOptions{Metadata: map[string]*string{"first": to.Ptr("1")}})
	probe.NoError(t, err)
	first, err := add("one", none, created.ETag)
	probe.NoError(t, err)
	if *first.BlobAppendOffset != "0" || *first.BlobCommittedBlockCount != 1 || *first.ETag == *created.ETag {
		t.Errorf("offset %s, count %d", *first.BlobAppendOffset, *first.BlobCommittedBlockCount)
	}
	_, err = add("two", none, created.ETag)
	probe.WantError(t, err, 412, "ConditionNotMet")

	position := func(n int64) appendblob.AppendPositionAccessConditions {
		return appendblob.AppendPositionAccessConditions{AppendPosition: &n}
	}
	_, err = add("two", position(2), nil)
	probe.WantError(t, err, 412, "AppendPositionConditionNotMet")
	_, err = add("two", position(4), nil)
	probe.WantError(t, err, 412, "AppendPositionConditionNotMet")
	second, err := add("two", position(3), nil)
	probe.NoError(t, err)
	if *second.BlobAppendOffset != "3" || *second.BlobCommittedBlockCount != 2 {
		t.Errorf("offset %s, count %d", *second.BlobAppendOffset, *second.BlobCommittedBlockCount)
	}

	most := func(n int64) appendblob.AppendPositionAccessConditions {
		return appendblob.AppendPositionAccessConditions{MaxSize: &n}
	}
	_, err = add("three", most(10), nil)
	probe.WantError(t, err, 412, "MaxBlobSizeConditionNotMet")
	_, err = add("three", most(11), nil)
	probe.NoError(t, err)
	wantContent(t, b, "log", "onetwothree")
	got, err := log.GetProperties(ctx, nil)
	probe.NoError(t, err)
	if *got.BlobCommittedBlockCount != 3 || *got.ContentLength != 11 || *got.BlobType != blob.BlobTypeAppendBlob || *got.Metadata["First"] != "1" {
		t.Errorf("properties %+v", got)
	}
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=appendblock", map[string]string{"x-ms-blob-condition-appendpos": "-1"}, "x"), 400, "InvalidHeaderValue")
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=appendblock", map[string]string{"x-ms-copy-source": "x"}, "x"), 400, "UnsupportedHeader")

	// Creating it again empties it.
	_, err = log.Create(ctx, nil)
	probe.NoError(t, err)
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
		if string(read.Body) != want {
			t.Fatalf("read %d holds %q, want %q", i, read.Body, want)
		}
	}
}
