package blobs

import (
	"bytes"
	"crypto/md5"
	"io"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/exchange"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

func TestBlobUploadAndProperties(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	a := photos.NewBlockBlobClient("a/b c+ü#?.jpg")
	up, err := a.UploadBuffer(ctx, []byte("hello"), &blockblob.UploadBufferOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("image/jpeg"), BlobContentEncoding: to.Ptr("gzip"), BlobContentLanguage: to.Ptr("de"),
			BlobContentDisposition: to.Ptr("inline"), BlobCacheControl: to.Ptr("no-store")},
		Metadata: map[string]*string{"Size": to.Ptr("5")},
	})
	assert.Check(t, err)
	got := assert.Must[blob.GetPropertiesResponse](t)(a.GetProperties(ctx, nil))
	if *got.ETag != *up.ETag || *got.ContentLength != 5 || *got.ContentType != "image/jpeg" || *got.ContentEncoding != "gzip" ||
		*got.ContentLanguage != "de" || *got.ContentDisposition != "inline" || *got.CacheControl != "no-store" || *got.Metadata["Size"] != "5" ||
		*got.BlobType != blob.BlobTypeBlockBlob || !got.LastModified.Equal(probe.Start()) || !got.CreationTime.Equal(probe.Start()) {
		t.Errorf("properties %+v", got)
	}
	if sum := md5.Sum([]byte("hello")); !bytes.Equal(got.ContentMD5, sum[:]) {
		t.Errorf("MD5 %x, want %x", got.ContentMD5, sum)
	}

	// Metadata and headers are replaced as a whole, each without the other.
	assert.Check(t, assert.Err(a.SetMetadata(ctx, map[string]*string{"other": to.Ptr("x")}, nil)))
	assert.Check(t, assert.Err(a.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}, nil)))
	after := assert.Must[blob.GetPropertiesResponse](t)(a.GetProperties(ctx, nil))
	if len(after.Metadata) != 1 || *after.Metadata["Other"] != "x" || *after.ContentType != "text/plain" || after.ContentEncoding != nil || *after.ETag == *got.ETag {
		t.Errorf("properties %+v", after)
	}

	assert.Check(t, assert.Err(a.Delete(ctx, nil)))
	probe.WantError(t, assert.Err(a.GetProperties(ctx, nil)), 404, "BlobNotFound")
	probe.WantError(t, assert.Err(a.Delete(ctx, nil)), 404, "BlobNotFound")
}

func TestBlobOverwrite(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	a := photos.NewBlockBlobClient("a")
	assert.Check(t, assert.Err(a.Upload(ctx, readSeeker("first"), &blockblob.UploadOptions{Metadata: map[string]*string{"a": to.Ptr("1")}})))
	before := b.Want(t, probe.Call{Method: "GET", Target: "/photos/a"}, 200, "")
	assert.Check(t, assert.Err(a.Upload(ctx, readSeeker("second"), nil)))
	got := assert.Must[blob.DownloadStreamResponse](t)(a.DownloadStream(ctx, nil))
	text := assert.Must[[]byte](t)(io.ReadAll(got.Body))
	if string(text) != "second" || len(got.Metadata) != 0 || string(before.Body) != "first" {
		t.Errorf("content %q, metadata %v; read before: %q", text, got.Metadata, before.Body)
	}
	_, err := a.Upload(ctx, readSeeker("third"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}})
	probe.WantError(t, err, 409, "BlobAlreadyExists")
}

func TestBlobMetadataRules(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.putRaw(t, "a", "x")
	for name, rule := range probe.MetadataRules() {
		t.Run(name, func(t *testing.T) {
			put := map[bool]int{true: 201, false: 400}[rule.Code == ""]
			set := map[bool]int{true: 200, false: 400}[rule.Code == ""]
			header := map[string]string{"x-ms-blob-type": "BlockBlob"}
			for k, v := range rule.Header {
				header[k] = v
			}
			b.Want(t, probe.NewCall("PUT", "/photos/new", header, ""), put, rule.Code)
			b.Want(t, probe.NewCall("PUT", "/photos/a?comp=metadata", rule.Header, ""), set, rule.Code)
		})
	}
}

func TestBlobHashes(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	sum, crc := base64MD5([]byte("hello")), base64CRC64([]byte("hello"))
	for name, test := range map[string]struct {
		header, value, code string
	}{
		"md5":         {"Content-MD5", sum, ""},
		"other md5":   {"Content-MD5", base64MD5([]byte("hell0")), "Md5Mismatch"},
		"bad md5":     {"Content-MD5", "AAAA", "InvalidMd5"},
		"crc64":       {"x-ms-content-crc64", crc, ""},
		"other crc64": {"x-ms-content-crc64", base64CRC64([]byte("hell0")), "Crc64Mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			status := map[bool]int{true: 201, false: 400}[test.code == ""]
			for _, target := range []string{"/photos/a", "/photos/b?comp=block&blockid=AAAA", "/photos/log?comp=appendblock"} {
				a := b.Want(t, probe.NewCall("PUT", target, map[string]string{"x-ms-blob-type": "BlockBlob", test.header: test.value}, "hello"), status, test.code)
				if test.code == "" && a.Header.Get(test.header) != test.value {
					t.Errorf("%s answered with %s %q", target, test.header, a.Header.Get(test.header))
				}
			}
		})
	}
}

// The SDK computes the service's own checksum; the simulator's must be the same.
func TestBlobCRC64FromSDK(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	_, err := photos.NewBlockBlobClient("a").StageBlock(ctx, "AAAA", readSeeker(strings.Repeat("hello", 1000)),
		&blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
	assert.Check(t, err)
}

func TestBlobPutSizes(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	// The pages of untouched memory are shared: what has no hash worked out costs little.
	big := make([]byte, 100*mib+1)
	block := func(version string) probe.Call {
		return probe.NewCall("PUT", "/photos/a?comp=block&blockid=AAAA", map[string]string{"x-ms-version": version}, "")
	}
	appended := func(version string) probe.Call {
		return probe.NewCall("PUT", "/photos/log?comp=appendblock", map[string]string{"x-ms-version": version}, "")
	}
	put := probe.NewCall("PUT", "/photos/a", map[string]string{"x-ms-version": "2015-12-11", "x-ms-blob-type": "BlockBlob"}, "")
	for name, test := range map[string]struct {
		call probe.Call
		most int
	}{
		"block of old":     {block("2015-12-11"), 4 * mib},
		"block of newer":   {block("2018-11-09"), 100 * mib},
		"append of old":    {appended("2021-12-02"), 4 * mib},
		"append of newest": {appended("2022-11-02"), 100 * mib},
		"put of old":       {put, 64 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
			probe.CheckAnswer(t, test.call, b.SendBytes(t, test.call, big[:test.most]), 201, "")
			probe.CheckAnswer(t, test.call, b.SendBytes(t, test.call, big[:test.most+1]), 413, "RequestBodyTooLarge")
		})
	}
	b.Want(t, block("2026-06-06"), 400, "InvalidHeaderValue")
	b.Want(t, appended("2026-06-06"), 400, "InvalidHeaderValue")
	probe.CheckAnswer(t, block("2026-06-06"), b.SendBytes(t, block("2026-06-06"), big), 201, "")
	assert.Equal(t, putLimit().of(&exchange.Call{}), 5000*mib, "newest put limit")
}

func TestBlobCopy(t *testing.T) {
	ctx, b := probe.Context(t), newTestBlobs(t, 1)
	photos := b.container(t)
	source := photos.NewBlockBlobClient("dir/source ü")
	_, err := source.UploadBuffer(ctx, []byte("hello"), &blockblob.UploadBufferOptions{Metadata: map[string]*string{"a": to.Ptr("1")},
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}})
	assert.Check(t, err)
	target := photos.NewBlobClient("target")
	copied := assert.Must[blob.StartCopyFromURLResponse](t)(target.StartCopyFromURL(ctx, source.URL()+"?sig=secret", nil))
	assert.Equal(t, *copied.CopyStatus, blob.CopyStatusTypeSuccess, "status")
	assert.Check(t, assert.Err(source.UploadBuffer(ctx, []byte("other"), nil)))
	got := assert.Must[blob.DownloadStreamResponse](t)(target.DownloadStream(ctx, nil))
	text := assert.Must[[]byte](t)(io.ReadAll(got.Body))
	if string(text) != "hello" || *got.Metadata["A"] != "1" || *got.ContentType != "text/plain" || *got.CopyID != *copied.CopyID || *got.CopySource != source.URL() {
		t.Errorf("copied %q, %v, %s, %s", text, got.Metadata, *got.ContentType, *got.CopySource)
	}
	_, err = target.StartCopyFromURL(ctx, source.URL(), &blob.StartCopyFromURLOptions{Metadata: map[string]*string{"b": to.Ptr("2")}})
	assert.Check(t, err)
	again := assert.Must[blob.GetPropertiesResponse](t)(target.GetProperties(ctx, nil))
	assert.NoDiff(t, cmp.Diff(map[string]*string{"B": to.Ptr("2")}, again.Metadata))
	assert.Check(t, assert.Err(target.CopyFromURL(ctx, source.URL(), nil)))
	b.Want(t, probe.NewCall("PUT", "/photos/log", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	const at = "http://contoso.sim.test/"
	for name, test := range map[string]struct {
		header map[string]string
		status int
		code   string
	}{
		"no container":    {map[string]string{"x-ms-copy-source": at + "others/a"}, 404, "ContainerNotFound"},
		"no blob":         {map[string]string{"x-ms-copy-source": at + "photos/none"}, 404, "BlobNotFound"},
		"other account":   {map[string]string{"x-ms-copy-source": "http://fabrikam.sim.test/photos/target"}, 404, "CannotVerifyCopySource"},
		"no address":      {map[string]string{"x-ms-copy-source": "photos/target"}, 400, "InvalidHeaderValue"},
		"other type":      {map[string]string{"x-ms-copy-source": at + "photos/log"}, 409, "InvalidBlobType"},
		"source changed":  {map[string]string{"x-ms-copy-source": at + "photos/target", "x-ms-source-if-match": "x"}, 412, "SourceConditionNotMet"},
		"put from source": {map[string]string{"x-ms-copy-source": at + "photos/target", "x-ms-blob-type": "BlockBlob"}, 400, "UnsupportedHeader"},
	} {
		t.Run(name, func(t *testing.T) {
			b.Want(t, probe.NewCall("PUT", "/photos/target", test.header, ""), test.status, test.code)
		})
	}
}

// Both an append blob and its copy grow after the copying, each by itself.
func TestBlobCopyOfAppendBlob(t *testing.T) {
	b := newTestBlobs(t, 1)
	b.container(t)
	b.Want(t, probe.NewCall("PUT", "/photos/one", map[string]string{"x-ms-blob-type": "AppendBlob"}, ""), 201, "")
	add := func(name, text string) {
		b.Want(t, probe.NewCall("PUT", "/photos/"+name+"?comp=appendblock", nil, text), 201, "")
	}
	for range 5 {
		add("one", "0123456789")
	}
	b.Want(t, probe.NewCall("PUT", "/photos/two", map[string]string{"x-ms-copy-source": "http://contoso.sim.test/photos/one"}, ""), 202, "")
	add("one", "one")
	add("two", "two")
	for name, end := range map[string]string{"one": "one", "two": "two"} {
		got := b.Want(t, probe.Call{Method: "GET", Target: "/photos/" + name}, 200, "")
		if want := strings.Repeat("0123456789", 5) + end; !bytes.Equal(got.Body, []byte(want)) {
			t.Errorf("%s holds %q, want %q", name, got.Body, want)
		}
	}
}
