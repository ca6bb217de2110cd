package encryption

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/tables"
)

// blobsAtOnce is how many blobs are read concurrently.
const blobsAtOnce = 16

// UsesInBlobs counts, by data key, the blobs of a container that a Stream has sealed, such as those of
// package largeentities with a Sealer, among all blobs whose names begin with the prefix. It reads their
// headers without authenticating them. It does not count snapshots, older versions and deleted blobs that can
// be restored. Requests: 1 for each 5,000 blobs, and 1 for each blob whose size is possible for a sealed
// blob.
func UsesInBlobs(ctx context.Context, blobs *container.Client, prefix string) (map[DataKeyID]int64, error) {
	const op = "UsesInBlobs"
	if blobs == nil {
		return nil, tables.Wiringf(op, "", "the container is nil; give one of Account.Container")
	}
	uses := map[DataKeyID]int64{}
	for pager := blobs.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, blobError(op, err)
		}
		if page.Segment == nil {
			return nil, &tables.Error{Op: op, Kind: tables.ErrGarbled, Err: errors.New("the response has no list of blobs; repeat the operation")}
		}
		if err := countBlobs(ctx, blobs, page.Segment.BlobItems, uses); err != nil {
			return nil, blobError(op, err)
		}
	}
	return uses, nil
}

// countBlobs counts the sealed blobs of a page.
func countBlobs(ctx context.Context, blobs *container.Client, items []*container.BlobItem, uses map[DataKeyID]int64) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(blobsAtOnce)
	for _, item := range items {
		if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil || *item.Properties.ContentLength < headerSize+tagSize {
			continue
		}
		group.Go(func() error {
			id, sealed, err := blobDataKey(ctx, blobs.NewBlobClient(*item.Name))
			if err == nil && sealed {
				mu.Lock()
				uses[id]++
				mu.Unlock()
			}
			return err
		})
	}
	return group.Wait()
}

// blobDataKey reads the data key from the header of a blob. A blob that was deleted after it was listed counts as not
// sealed.
func blobDataKey(ctx context.Context, client *blob.Client) (id DataKeyID, sealed bool, err error) {
	answer, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 0, Count: headerSize}})
	var response *azcore.ResponseError
	if errors.As(err, &response) && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusRequestedRangeNotSatisfiable) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	beginning := make([]byte, headerSize)
	n, _, err := fill(answer.Body, beginning)
	if closing := answer.Body.Close(); err == nil {
		err = closing
	}
	if err == nil && n < headerSize { // the listing says that the blob is longer, so the response was cut off; without an error, Uses would miss a key that is in use
		err = &tables.Error{Op: "UsesInBlobs", Kind: tables.ErrGarbled, Err: errors.New("the response is shorter than the header of a sealed blob; repeat the operation")}
	}
	h, _, ok := parseHeader(beginning[:n], kindStream)
	return h.key, ok, err
}

// blobError turns an error of the blob service into a tables.Error.
func blobError(op string, err error) error {
	if _, ok := errors.AsType[*tables.Error](err); ok {
		return err
	}
	return tables.ServiceError(op, "", err)
}
