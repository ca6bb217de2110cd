package eventual

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// SweepOptions are the options of SweepClaims; nil is the same as the zero value.
type SweepOptions struct {
	// DryRun counts, and removes nothing.
	DryRun bool
}

// SweepClaims deletes the large bodies that were stored longer ago than olderThan, by the service's clock, and returns how
// many. A sender that died between storing a body and putting its message leaves one that nobody would ever delete, and so
// does a Purge.
//
// A body whose message is still on the queue, or on the poison queue, looks just the same. So it is safe only where no
// message can be as old as olderThan: longer than the longest delay of a Send, the longest time that all workers are ever down, and
// the longest time that an entry stays on the poison queue, or while both queues are empty. A message whose body was swept
// goes to the poison queue, or counts as handled if it was delivered before.
//
// Requests: 1 for 5,000 bodies, and 1 for each one removed.
func (q *Queue) SweepClaims(ctx context.Context, olderThan time.Duration, o *SweepOptions) (removed int, err error) {
	const op = "SweepClaims"
	if olderThan <= 0 {
		return 0, invalidf(op, q.name, "an age of %v: every body would be swept, those of messages under way too", olderThan)
	}
	if q.claims == nil {
		return 0, invalidf(op, q.name, "the account has no blob endpoint")
	}
	prefix := claimPrefix
	pager := q.claims.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return removed, failure(op, q.claimsName, err)
		}
		if page.Date == nil || page.Segment == nil {
			return removed, failure(op, q.claimsName, errors.New("the list of blobs has no date, or no blobs"))
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil || item.Properties.LastModified == nil || page.Date.Sub(*item.Properties.LastModified) <= olderThan {
				continue
			}
			if o == nil || !o.DryRun {
				_, err := q.claims.NewBlobClient(*item.Name).Delete(ctx, nil)
				if err != nil && !wire.HasCode(err, "BlobNotFound") {
					return removed, failure(op, q.claimsName, err)
				}
			}
			removed++
		}
	}
	return removed, nil
}
