package eventual

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SweepOptions are the options of SweepClaims; nil is the same as the zero value.
type SweepOptions struct {
	// DryRun counts as Deleted what would be removed, and removes nothing.
	DryRun bool
}

// SweepReport counts what SweepClaims has found and removed.
type SweepReport struct {
	Listed  int // bodies in the container
	Young   int // their message may still be put, or they were rewritten during the sweep
	Held    int // a message may name them: its queue, or the poison queue, was not empty
	Foreign int // bodies that were not removed, because they belong to another queue of the container, or to an unknown one: an earlier version did not record the queue
	Deleted int
}

// SweepClaims deletes large bodies that no message names. Such bodies remain after a Purge, and after a
// sender died between storing a body and putting its message. You can call SweepClaims at any time, while
// senders, workers and Requeue run:
//
//   - a body is considered 70 minutes after it was stored, by the service's clock. Its sender puts the message within 50 minutes, by
//     its own clock, or not at all;
//   - after listing the body, SweepClaims checks its queue, then the poison queue, and deletes the body only
//     if both are empty, under the ETag that the listing returned. The service's count is never below the
//     number of messages, including hidden ones.
//
// So bodies are removed only while the queue and the poison queue are empty; SweepReport.Held counts the others. Run
// it again at a quiet hour.
//
// Requests: 1 for 5,000 bodies; for each 5,000 that include an old enough body, 1 for each storage queue; 1
// for each body removed.
func (q *Queue) SweepClaims(ctx context.Context, options *SweepOptions) (SweepReport, error) {
	const op = "SweepClaims"
	var report SweepReport
	if q.claims == nil {
		return report, tables.Wiringf(op, q.name, "the account has no blob endpoint, so there are no bodies to sweep; set Endpoints.Blob")
	}
	prefix := claimPrefix
	pager := q.claims.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return report, failure(op, q.claimsName, err)
		}
		if page.Date == nil || page.Segment == nil {
			return report, failure(op, q.claimsName, errors.New("the response has no Date header or no list of blobs; repeat the operation"))
		}
		old := q.oldClaims(page.Segment.BlobItems, *page.Date, &report)
		if len(old) == 0 {
			continue
		}
		busy, err := q.busy(ctx)
		if err != nil {
			return report, err
		}
		for _, c := range old {
			switch {
			case busy[c.queue] || busy[q.name+poisonSuffix]:
				report.Held++
			case options != nil && options.DryRun:
				report.Deleted++
			default:
				if err := q.sweepClaim(ctx, c, &report); err != nil {
					return report, err
				}
			}
		}
	}
	return report, nil
}

// oldClaim is a body whose message was put, or will never be put.
type oldClaim struct {
	blob  string
	etag  azcore.ETag
	queue string // the storage queue of the message
}

// oldClaims selects the bodies of a page that are old enough; now is the time of the service's response.
func (q *Queue) oldClaims(items []*container.BlobItem, now time.Time, report *SweepReport) (old []oldClaim) {
	for _, item := range items {
		report.Listed++
		if item.Name == nil || item.Properties == nil || item.Properties.LastModified == nil || item.Properties.ETag == nil {
			report.Foreign++
			continue
		}
		queue, term := blobowner.Label(item.Metadata, metaQueue), lease.ParseTerm(blobowner.Label(item.Metadata, metaTerm))
		switch {
		case term == 0 || queue != q.name+poisonSuffix && !slices.Contains(q.shardNames, queue):
			report.Foreign++
		case !lease.Expired(*item.Properties.LastModified, now, term):
			report.Young++
		default:
			old = append(old, oldClaim{*item.Name, *item.Properties.ETag, queue})
		}
	}
	return old
}

// busy returns which storage queues hold messages. It checks the poison queue last.
func (q *Queue) busy(ctx context.Context) (map[string]bool, error) {
	busy := map[string]bool{}
	for i, shard := range q.shards {
		n, err := queueLength(ctx, q.shardNames[i], shard)
		if err != nil {
			return nil, err
		}
		busy[q.shardNames[i]] = n > 0
	}
	n, err := q.Poison().Length(ctx)
	busy[q.name+poisonSuffix] = n > 0
	return busy, err
}

// sweepClaim deletes a body unless it has changed since it was listed.
func (q *Queue) sweepClaim(ctx context.Context, c oldClaim, report *SweepReport) error {
	_, err := q.claims.NewBlobClient(c.blob).Delete(ctx, &blob.DeleteOptions{AccessConditions: blobio.Unchanged(c.etag)})
	switch {
	case wire.HasCode(err, "ConditionNotMet"):
		report.Young++
	case err == nil, wire.HasCode(err, "BlobNotFound"):
		report.Deleted++
	default:
		return failure("SweepClaims", q.claimsName, err)
	}
	return nil
}
