// Package blobio names, lists and reads blobs that are written and read as a whole, under the condition of their ETags.
package blobio

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

const (
	segmentMark = "!"
	maxName     = 1024 // UTF-16 units
	maxSegments = 254
)

// Segment returns the segment of a blob's name for a text that compoundkey has encoded. It appends '!', with which no such text ends, to a
// text that is empty or ends with a dot, because such segments change the path of an address (".." means the parent).
func Segment(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text + segmentMark
	}
	return text
}

// ParseSegment is the inverse of Segment.
func ParseSegment(segment string) string { return strings.TrimSuffix(segment, segmentMark) }

// CheckName returns an edm.SizeError for a name that no blob can have, since it is longer or has more segments than the service allows.
// The service counts UTF-16 units: a name has at most 512 characters of two units, such as emoji
// (github.com/Azure/azure-storage-cpp/issues/291).
func CheckName(name string) error {
	if n := edm.Units(name); n > maxName {
		return &edm.SizeError{What: "a blob's name", Size: n, Limit: maxName, Unit: "UTF-16 units"}
	}
	if n := strings.Count(name, "/") + 1; n > maxSegments {
		return &edm.SizeError{What: "a blob's name", Size: n, Limit: maxSegments, Unit: "segments between slashes"}
	}
	return nil
}

// Unchanged returns the condition that a blob still has the ETag or, if etag is "", that the blob does not exist.
func Unchanged(etag azcore.ETag) *blob.AccessConditions {
	condition := &blob.ModifiedAccessConditions{IfMatch: &etag}
	if etag == "" {
		absent := azcore.ETagAny
		condition = &blob.ModifiedAccessConditions{IfNoneMatch: &absent}
	}
	return &blob.AccessConditions{ModifiedAccessConditions: condition}
}

// IsGone reports whether the service says that a blob does not exist. It is false if the container does not exist, and for a response
// without a code, which a gateway may have sent.
func IsGone(err error) bool { return wire.HasCode(err, "BlobNotFound") }

// Content is a blob as it was read.
type Content struct {
	Text   []byte
	ETag   azcore.ETag // "" if the blob does not exist
	Header http.Header
}

// MaxSize is the most bytes of a blob that is read, changed and written as a whole: 16 MiB. Who can write blobs would otherwise decide how
// much memory each reader needs.
const MaxSize = 16 << 20

// CheckSize returns an edm.SizeError if a blob of n bytes could not be read again.
func CheckSize(n int) error {
	if n > MaxSize {
		return &edm.SizeError{What: "a blob that is read as a whole", Size: n, Limit: MaxSize, Unit: "bytes"}
	}
	return nil
}

// Read reads a whole blob of at most MaxSize bytes. A missing blob is not an error. Requests: 1.
func Read(ctx context.Context, c *container.Client, name string) (*Content, error) {
	ex := wire.Exchange{Limit: MaxSize}
	answer, err := c.NewBlobClient(name).DownloadStream(wire.With(ctx, &ex), nil)
	if err == nil {
		_ = answer.Body.Close() // nothing to read: the exchange has already read the body
	}
	missing := IsGone(err)
	switch {
	case (err == nil || missing) && ex.Header == nil:
		return nil, kinds.ErrForeignClient
	case missing:
		return &Content{Header: ex.Header}, nil
	case err != nil:
		return nil, err
	}
	read := &Content{Text: ex.Answer, ETag: azcore.ETag(ex.Header.Get("ETag")), Header: ex.Header}
	if read.ETag == "" {
		return nil, fmt.Errorf("%w: the response has no ETag of the blob; repeat the operation", kinds.ErrCutOff)
	}
	return read, nil
}

// List yields the blobs whose names begin with prefix, in the order of their names. Requests: 1 for each page of at
// most 5,000 blobs.
func List(ctx context.Context, c *container.Client, prefix string, include container.ListBlobsInclude) iter.Seq2[*container.BlobItem, error] {
	return func(yield func(*container.BlobItem, error) bool) {
		pager := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Include: include})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if page.Segment == nil { // an empty listing has one, too: without it, blobs would be missed
				yield(nil, fmt.Errorf("%w: the listing of the container has no list of blobs; repeat the operation", kinds.ErrCutOff))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if item != nil && item.Name != nil && !yield(item, nil) {
					return
				}
			}
		}
	}
}
