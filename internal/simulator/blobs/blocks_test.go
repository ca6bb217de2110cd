package blobs

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// blockID makes block ids of one length.
func blockID(n int) string { return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%06d", n)) }

func wantContent(t *testing.T, b *testBlobs, name, want string) {
	t.Helper()
	if got := b.Want(t, probe.Call{Method: "GET", Target: "/photos/" + name}, 200, ""); string(got.Body) != want {
		t.Errorf("%s holds %q, want %q", name, got.Body, want)
	}
}

func TestBlocksWithSDK(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	a := b.container(t).NewBlockBlobClient("a")
	for i, text := range []string{"one ", "two ", "three "} {
		assert.Check(t, assert.Err(a.StageBlock(ctx, blockID(i), readSeeker(text), nil)))
	}
	probe.WantError(t, assert.Err(a.GetProperties(ctx, nil)), 404, "BlobNotFound")
	lists := func(kind blockblob.BlockListType) (got [2][]string) {
		t.Helper()
		list := assert.Must[blockblob.GetBlockListResponse](t)(a.GetBlockList(ctx, kind, nil))
		for i, blocks := range [2][]*blockblob.Block{list.CommittedBlocks, list.UncommittedBlocks} {
			for _, block := range blocks {
				got[i] = append(got[i], fmt.Sprintf("%s %d", *block.Name, *block.Size))
			}
		}
		return got
	}
	one, two, three := blockID(0)+" 4", blockID(1)+" 4", blockID(2)+" 6"
	assert.NoDiff(t, cmp.Diff([2][]string{nil, {one, two, three}}, lists(blockblob.BlockListTypeAll)))
	assert.Check(t, assert.Err(a.CommitBlockList(ctx, []string{blockID(2), blockID(0), blockID(2)}, nil)))
	wantContent(t, b, "a", "three one three ")
	// Blocks that were not named are gone.
	assert.NoDiff(t, cmp.Diff([2][]string{{three, one, three}, nil}, lists(blockblob.BlockListTypeAll)))
	probe.WantError(t, assert.Err(a.CommitBlockList(ctx, []string{blockID(1)}, nil)), 400, "InvalidBlockList")

	assert.Check(t, assert.Err(a.StageBlock(ctx, blockID(0), readSeeker("ONE "), nil)))
	assert.NoDiff(t, cmp.Diff([2][]string{{three, one, three}, nil}, lists(blockblob.BlockListTypeCommitted)))
	assert.NoDiff(t, cmp.Diff([2][]string{nil, {one}}, lists(blockblob.BlockListTypeUncommitted)))
}

func TestBlockListChoice(t *testing.T) {
	list := func(entries ...string) string {
		var text strings.Builder
		for _, e := range entries {
			where, id, _ := strings.Cut(e, " ")
			text.WriteString("<" + where + ">" + id + "</" + where + ">")
		}
		return "<BlockList>" + text.String() + "</BlockList>"
	}
	// AAAA is committed as "old" and put again as "new"; BBBB is committed only, CCCC put only.
	for name, test := range map[string]struct {
		body, code, want string
	}{
		"committed":         {list("Committed AAAA"), "", "old"},
		"uncommitted":       {list("Uncommitted AAAA"), "", "new"},
		"latest":            {list("Latest AAAA"), "", "new"},
		"latest committed":  {list("Latest BBBB"), "", "b"},
		"all":               {list("Uncommitted CCCC", "Committed AAAA", "Latest AAAA", "Committed BBBB"), "", "coldnewb"},
		"none":              {list(), "", ""},
		"not committed":     {list("Committed CCCC"), "InvalidBlockList", ""},
		"not uncommitted":   {list("Uncommitted BBBB"), "InvalidBlockList", ""},
		"unknown":           {list("Latest DDDD"), "InvalidBlockList", ""},
		"no id":             {list("Latest "), "InvalidBlockList", ""},
		"elsewhere":         {list("Newest AAAA"), "InvalidBlockList", ""},
		"no list":           {"", "InvalidXmlDocument", ""},
		"other document":    {"<Blocks></Blocks>", "InvalidXmlDocument", ""},
		"cut off":           {"<BlockList><Latest>AAAA</Latest>", "InvalidXmlDocument", ""},
		"space in the list": {"<BlockList>\n  <Latest>AAAA</Latest>\n</BlockList>\n", "", "new"},
		"50,000 blocks":     {list(slices.Repeat([]string{"Latest BBBB"}, 50000)...), "", strings.Repeat("b", 50000)},
		"50,001 blocks":     {list(slices.Repeat([]string{"Latest BBBB"}, 50001)...), "BlockListTooLong", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBlobs(t, 1)
			b.container(t)
			put := func(id, text string) {
				b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid="+id, nil, text), 201, "")
			}
			put("AAAA", "old")
			put("BBBB", "b")
			b.Want(t, probe.NewCall("PUT", "/photos/a?comp=blocklist", nil, list("Latest AAAA", "Latest BBBB")), 201, "")
			put("AAAA", "new")
			put("CCCC", "c")
			status := map[bool]int{true: 201, false: 400}[test.code == ""]
			b.Want(t, probe.NewCall("PUT", "/photos/a?comp=blocklist", nil, test.body), status, test.code)
			if test.code != "" {
				test.want = "oldb"
			}
			wantContent(t, b, "a", test.want)
		})
	}
}

func TestBlockIDs(t *testing.T) {
	id := func(n int) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), n)), "=", "%3D")
	}
	for name, test := range map[string]struct {
		query, code string
	}{
		"64 bytes":   {"&blockid=" + id(64), ""},
		"65 bytes":   {"&blockid=" + id(65), "OutOfRangeInput"},
		"1 byte":     {"&blockid=" + id(1), ""},
		"no bytes":   {"&blockid=", "InvalidQueryParameterValue"},
		"no id":      {"", "MissingRequiredQueryParameter"},
		"not base64": {"&blockid=A", "InvalidQueryParameterValue"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBlobs(t, 1)
			b.container(t)
			status := map[bool]int{true: 201, false: 400}[test.code == ""]
			b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block"+test.query, nil, "x"), status, test.code)
		})
	}
	b := newTestBlobs(t, 1)
	b.container(t)
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid=AAAA", nil, "x"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid=AAAABBBB", nil, "x"), 400, "InvalidBlobOrBlock")
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=blocklist", nil, "<BlockList><Latest>AAAA</Latest></BlockList>"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid=AAAABBBB", nil, "x"), 400, "InvalidBlobOrBlock")
	b.Want(t, probe.NewCall("GET", "/photos/a?comp=blocklist&blocklisttype=some", nil, ""), 400, "InvalidQueryParameterValue")
	b.Want(t, probe.NewCall("GET", "/photos/b?comp=blocklist", nil, ""), 404, "BlobNotFound")
	// Content put as a whole is no block, and any id may follow it.
	b.putRaw(t, "whole", "x")
	b.Want(t, probe.NewCall("PUT", "/photos/whole?comp=block&blockid=AAAABBBB", nil, "x"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=block&blockid=AAAA", nil, "x"), 409, "InvalidBlobType")
	b.Want(t, probe.NewCall("PUT", "/photos/log?comp=blocklist", nil, "<BlockList/>"), 409, "InvalidBlobType")
	b.Want(t, probe.NewCall("GET", "/photos/log?comp=blocklist", nil, ""), 409, "InvalidBlobType")
}

func TestBlocksStagedLimit(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	// The first put opens the blob; the rest of the blocks are laid in beside it, as putting them one by one takes long.
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid="+blockID(0), nil, "x"), 201, "")
	staged := b.service.containers["photos"].blobs["a"].staged
	for i := 1; i < maxStaged-1; i++ {
		staged[blockID(i)] = block{id: blockID(i), data: []byte("x")}
	}
	last, over := blockID(maxStaged-1), blockID(maxStaged)
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid="+last, nil, "x"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid="+over, nil, "x"), 409, "BlockCountExceedsLimit")
	b.Want(t, probe.NewCall("PUT", "/photos/a?comp=block&blockid="+last, nil, "y"), 201, "")
}

func TestBlocksNotCommitted(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	block := func(name string) {
		b.Want(t, probe.NewCall("PUT", "/photos/"+name+"?comp=block&blockid=AAAA", nil, "x"), 201, "")
	}
	block("new")
	b.putRaw(t, "old", "content")
	block("old")
	b.clock.Advance(stagedLife - time.Microsecond)
	b.Want(t, probe.NewCall("GET", "/photos/new?comp=blocklist&blocklisttype=all", nil, ""), 200, "")
	b.clock.Advance(time.Microsecond)
	b.Want(t, probe.NewCall("GET", "/photos/new?comp=blocklist&blocklisttype=all", nil, ""), 404, "BlobNotFound")
	b.Want(t, probe.NewCall("PUT", "/photos/old?comp=blocklist", nil, "<BlockList><Latest>AAAA</Latest></BlockList>"), 400, "InvalidBlockList")
	wantContent(t, b, "old", "content")
	// Putting the blob as a whole drops blocks, too.
	block("old")
	b.putRaw(t, "old", "again")
	b.Want(t, probe.NewCall("PUT", "/photos/old?comp=blocklist", nil, "<BlockList><Latest>AAAA</Latest></BlockList>"), 400, "InvalidBlockList")
}

func TestBlobUploadStream(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	content := make([]byte, 10*mib+7)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	_, err := photos.NewBlockBlobClient("big").UploadStream(ctx, bytes.NewReader(content), &blockblob.UploadStreamOptions{BlockSize: mib, Concurrency: 3})
	assert.Check(t, err)
	_, err = photos.NewBlockBlobClient("buffer").UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{BlockSize: 3 * mib})
	assert.Check(t, err)
	for _, name := range []string{"big", "buffer"} {
		got := assert.Must[blob.DownloadStreamResponse](t)(photos.NewBlobClient(name).DownloadStream(ctx, nil))
		whole := assert.Must[[]byte](t)(io.ReadAll(got.Body))
		part := make([]byte, 5*mib)
		n, err := photos.NewBlobClient(name).DownloadBuffer(ctx, part, &blob.DownloadBufferOptions{
			Range: blob.HTTPRange{Offset: mib - 3, Count: int64(len(part))}, BlockSize: 2*mib + 1})
		assert.Check(t, err)
		if !bytes.Equal(whole, content) || n != int64(len(part)) || !bytes.Equal(part, content[mib-3:][:len(part)]) {
			t.Errorf("%s: %d bytes, %d of the part", name, len(whole), n)
		}
	}
}
