package blobs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

func TestBlobRanges(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	// Ten bytes, put in one piece, in blocks, and by appending.
	b.putRaw(t, "whole", "0123456789")
	list := "<BlockList>"
	for i, text := range []string{"01", "2", "345", "6789"} {
		b.Want(t, probe.NewCall("PUT", "/photos/blocks?comp=block&blockid="+blockID(i), nil, text), 201, "")
		list += "<Latest>" + blockID(i) + "</Latest>"
	}
	b.Want(t, probe.NewCall("PUT", "/photos/blocks?comp=blocklist", nil, list+"</BlockList>"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/appended", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/appended?comp=appendblock", nil, "01234"), 201, "")
	b.Want(t, probe.NewCall("PUT", "/photos/appended?comp=appendblock", nil, "56789"), 201, "")
	for _, name := range []string{"whole", "blocks", "appended"} {
		for from := range 10 {
			for last := from; last < 12; last++ {
				end := min(last, 9)
				a := b.Want(t, probe.NewCall("GET", "/photos/"+name, map[string]string{"x-ms-range": fmt.Sprintf("bytes=%d-%d", from, last)}, ""), 206, "")
				want, wantRange := "0123456789"[from:end+1], fmt.Sprintf("bytes %d-%d/10", from, end)
				if string(a.Body) != want || a.Header.Get("Content-Range") != wantRange {
					t.Errorf("%s %d-%d: %q, %s; want %q, %s", name, from, last, a.Body, a.Header.Get("Content-Range"), want, wantRange)
				}
			}
		}
		for text, want := range map[string]string{
			"bytes=0-":    "206 0123456789",
			"bytes=9-":    "206 9",
			"bytes=10-":   "416 InvalidRange",
			"bytes=10-20": "416 InvalidRange",
			"bytes=5-4":   "200 0123456789",
			"bytes=-5":    "200 0123456789",
			"bytes=0-1,3": "200 0123456789",
			"lines=0-1":   "200 0123456789",
			"":            "200 0123456789",
		} {
			a := b.Send(t, probe.NewCall("GET", "/photos/"+name, map[string]string{"Range": text}, ""))
			got := fmt.Sprintf("%d %s", a.Status, a.Body)
			if a.Status == 416 {
				got = fmt.Sprintf("%d %s", a.Status, a.Header.Get("x-ms-error-code"))
			}
			assert.Equal(t, got, want, "%s %q", name, text)
		}
	}
	both := map[string]string{"Range": "bytes=0-1", "x-ms-range": "bytes=5-6"}
	assert.Equal(t, string(b.Want(t, probe.NewCall("GET", "/photos/whole", both, ""), 206, "").Body), "56", "of two ranges the wrong one")
	b.putRaw(t, "empty", "")
	b.Want(t, probe.NewCall("GET", "/photos/empty", nil, ""), 200, "")
	b.Want(t, probe.NewCall("GET", "/photos/empty", map[string]string{"Range": "bytes=0-"}, ""), 416, "InvalidRange")
}

func TestBlobRangeHash(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	content := strings.Repeat("x", rangeHashLimit+1)
	b.putRaw(t, "a", content)
	for last, status := range map[int]int{rangeHashLimit - 1: 206, rangeHashLimit: 400} {
		for _, name := range []string{"md5", "crc64"} {
			code := map[int]string{400: "OutOfRangeInput"}[status]
			a := b.Want(t, probe.NewCall("GET", "/photos/a", map[string]string{"x-ms-range": fmt.Sprintf("bytes=0-%d", last),
				"x-ms-range-get-content-" + name: "true"}, ""), status, code)
			want := map[string]string{"md5": base64MD5([]byte(content[1:])), "crc64": base64CRC64([]byte(content[1:]))}[name]
			got := a.Header.Get(map[string]string{"md5": "Content-MD5", "crc64": "x-ms-content-crc64"}[name])
			if status == 206 && got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
	a := b.Want(t, probe.NewCall("GET", "/photos/a", map[string]string{"x-ms-range": "bytes=0-0"}, ""), 206, "")
	if a.Header.Get("Content-MD5") != "" || a.Header.Get("x-ms-blob-content-md5") != base64MD5([]byte(content)) {
		t.Errorf("a range has the hash of the whole: %v", a.Header)
	}
}

func TestBlobDownloadConditions(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	a := b.container(t).NewBlobClient("a")
	b.putRaw(t, "a", "x")
	got := assert.Must[blob.DownloadStreamResponse](t)(a.DownloadStream(ctx, nil))
	unchanged, err := a.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: got.ETag}}})
	assert.Check(t, err)
	if body, err := io.ReadAll(unchanged.Body); err != nil || len(body) != 0 || *unchanged.ErrorCode != "ConditionNotMet" {
		t.Errorf("unchanged: %q, %v, %v", body, unchanged.ErrorCode, err)
	}
	_, err = a.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 1, Count: 1}})
	probe.WantError(t, err, 416, "InvalidRange")
	b.clock.Advance(time.Second)
	later := probe.Start()
	_, err = a.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfModifiedSince: &later}}})
	probe.WantError(t, err, 304, "ConditionNotMet")
}

// listed reads all pages of a flat listing, or of one by levels if there is a delimiter.
func (b *testBlobs) listed(t *testing.T, delimiter string, o container.ListBlobsFlatOptions) [][]string {
	t.Helper()
	c := b.client.ServiceClient().NewContainerClient("photos")
	text := func(item *container.BlobItem) string {
		s := *item.Name
		if v := item.Metadata["a"]; v != nil {
			s += "=" + *v
		}
		return s
	}
	var pages [][]string
	if delimiter == "" {
		for pager := c.NewListBlobsFlatPager(&o); pager.More(); {
			page := assert.Must[container.ListBlobsFlatResponse](t)(pager.NextPage(probe.Context(t)))
			names := []string{}
			for _, item := range page.Segment.BlobItems {
				names = append(names, text(item))
			}
			pages = append(pages, names)
		}
		return pages
	}
	ho := &container.ListBlobsHierarchyOptions{Prefix: o.Prefix, MaxResults: o.MaxResults, Include: o.Include}
	for pager := c.NewListBlobsHierarchyPager(delimiter, ho); pager.More(); {
		page := assert.Must[container.ListBlobsHierarchyResponse](t)(pager.NextPage(probe.Context(t)))
		names := []string{}
		for _, item := range page.Segment.BlobItems {
			names = append(names, text(item))
		}
		for _, p := range page.Segment.BlobPrefixes {
			names = append(names, "prefix "+*p.Name)
		}
		pages = append(pages, names)
	}
	return pages
}

func TestBlobList(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	for _, name := range []string{"b", "a/1", "a/2", "a/x/1", "a/x/2", "a0", "a", "c/%01+%20%3C"} {
		b.Want(t, probe.NewCall("PUT", "/photos/"+name, map[string]string{"x-ms-blob-type": "BlockBlob", "x-ms-meta-a": "<1>"}, ""), 201, "")
	}
	b.Want(t, probe.NewCall("PUT", "/photos/uncommitted?comp=block&blockid=AAAA", nil, "x"), 201, "")
	two := to.Ptr(int32(2))
	for name, test := range map[string]struct {
		delimiter string
		options   container.ListBlobsFlatOptions
		want      [][]string
	}{
		"all":            {"", container.ListBlobsFlatOptions{}, [][]string{{"a", "a/1", "a/2", "a/x/1", "a/x/2", "a0", "b", "c/\x01+ <"}}},
		"prefix":         {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("a/")}, [][]string{{"a/1", "a/2", "a/x/1", "a/x/2"}}},
		"none":           {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("z")}, [][]string{{}}},
		"pages":          {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("a/"), MaxResults: to.Ptr(int32(3))}, [][]string{{"a/1", "a/2", "a/x/1"}, {"a/x/2"}}},
		"even pages":     {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("a/"), MaxResults: two}, [][]string{{"a/1", "a/2"}, {"a/x/1", "a/x/2"}}},
		"metadata":       {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("b"), Include: container.ListBlobsInclude{Metadata: true}}, [][]string{{"b=<1>"}}},
		"uncommitted":    {"", container.ListBlobsFlatOptions{Prefix: to.Ptr("u"), Include: container.ListBlobsInclude{UncommittedBlobs: true}}, [][]string{{"uncommitted"}}},
		"top level":      {"/", container.ListBlobsFlatOptions{}, [][]string{{"a", "a0", "b", "prefix a/", "prefix c/"}}},
		"second level":   {"/", container.ListBlobsFlatOptions{Prefix: to.Ptr("a/")}, [][]string{{"a/1", "a/2", "prefix a/x/"}}},
		"odd name":       {"/", container.ListBlobsFlatOptions{Prefix: to.Ptr("c/")}, [][]string{{"c/\x01+ <"}}},
		"levels' pages":  {"/", container.ListBlobsFlatOptions{MaxResults: two}, [][]string{{"a", "prefix a/"}, {"a0", "b"}, {"prefix c/"}}},
		"long delimiter": {"/x/", container.ListBlobsFlatOptions{Prefix: to.Ptr("a")}, [][]string{{"a", "a/1", "a/2", "a0", "prefix a/x/"}}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoDiff(t, cmp.Diff(test.want, b.listed(t, test.delimiter, test.options)))
		})
	}
}

func TestBlobListProperties(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	etag := b.putRaw(t, "a", "hello").Header.Get("ETag")
	page := assert.Must[container.ListBlobsFlatResponse](t)(photos.NewListBlobsFlatPager(nil).NextPage(ctx))
	p := page.Segment.BlobItems[0].Properties
	if `"`+string(*p.ETag)+`"` != etag || *p.ContentLength != 5 || *p.BlobType != blob.BlobTypeBlockBlob || !p.LastModified.Equal(probe.Start()) ||
		*p.ContentType != "application/octet-stream" || len(p.ContentMD5) != 16 {
		t.Errorf("properties %+v", p)
	}
}

func TestBlobListMost(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	for i := range 5000 + 1 {
		b.putRaw(t, fmt.Sprintf("%05d", i), "")
	}
	for _, most := range []*int32{nil, to.Ptr(int32(5000 + 1))} {
		pages := b.listed(t, "", container.ListBlobsFlatOptions{MaxResults: most})
		if len(pages) != 2 || len(pages[0]) != 5000 || len(pages[1]) != 1 {
			t.Errorf("%d pages, the first of %d", len(pages), len(pages[0]))
		}
	}
}

// However pages are cut, each name is listed once.
func TestBlobListPageCuts(t *testing.T) {
	b := newTestBlobs(t, 5)
	b.container(t)
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("%d/%02d", i/10, i)
		want = append(want, name)
		b.putRaw(t, name, "")
	}
	*b.chaos = environment.Chaos{EmptyPages: 0.3, ShortPages: 0.5}
	empty := 0
	for range 20 {
		pages := b.listed(t, "", container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(15))})
		assert.NoDiff(assert.Fatal(t), cmp.Diff(want, slices.Concat(pages...)))
		levels := b.listed(t, "/", container.ListBlobsFlatOptions{})
		assert.NoDiff(assert.Fatal(t), cmp.Diff([]string{"prefix 0/", "prefix 1/", "prefix 2/", "prefix 3/"}, slices.Concat(levels...)))
		empty += len(slices.DeleteFunc(append(pages, levels...), func(p []string) bool { return len(p) > 0 }))
	}
	if empty == 0 {
		t.Error("no empty pages")
	}
}
