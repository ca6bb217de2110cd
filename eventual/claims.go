package eventual

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

const (
	// claimPrefix begins the name of a large body's blob; the message ID follows.
	claimPrefix = "claims/"

	// Metadata of a body's blob, in base64 since metadata must be ASCII. They bind it to its message.
	metaMessage = "tpmessage" // id
	metaType    = "tptype"
)

var claimName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// claimOwner binds a body's blob to its message by name, ID and type. Without this check, a forged message could make the worker handle and delete
// the blob of another message.
func claimOwner(e *envelope) blobowner.Owner {
	return blobowner.Owner{What: "the message", Prefix: claimPrefix, Labels: map[string]string{
		metaMessage: base64.RawURLEncoding.EncodeToString([]byte(e.ID)),
		metaType:    base64.RawURLEncoding.EncodeToString([]byte(e.Type)),
	}}
}

func claimMetadata(e *envelope, queue string) map[string]*string {
	return claimOwner(e).Metadata(map[string]string{metaTerm: lease.FormatTerm(claimTerm), metaQueue: queue})
}

// errClaimGone on a redelivery means that the message was handled: the worker deletes the blob just before the message.
var errClaimGone = errors.New("the blob that holds the message's body does not exist; send the message again")

var errForeignClaim = errors.New("the message's claim names the body of another message; only Queue.Send makes claims")

func (e *envelope) claimsOwn() bool { return e.Claim.Blob == e.ID && claimName.MatchString(e.ID) }

// The sender of a large message stores the body in a blob before it puts the message:
//
//  1. the blob is stored, with the storage queue of the message and a term in its metadata;
//  2. the message is put. The sender measures the term by its own clock from before the first attempt of step
//    1, and starts no attempt later than a margin before its end;
//  3. the worker that handles the message deletes the blob, then the message.
//
// A crash before step 2 leaves a blob that no message names. After the term and a grace period, by the service's clock, the message is on its
// queue, on the poison queue, or will never be put. So if both queues are empty after SweepClaims has listed such a blob, no message names it.
// SweepClaims checks the queue before the poison queue, because a worker puts a message on the poison queue before it deletes it from the queue.
// Requeue, which moves a message the other way, first rewrites the blob's metadata, and so changes the ETag under which SweepClaims deletes.

// claimTerm is how long a message may be put after its body was stored.
const claimTerm = time.Hour

const (
	metaTerm  = "tpterm"  // seconds
	metaQueue = "tpqueue" // the storage queue of the message
)

const errLateClaim = "the term of the blob that holds the body ended before the answer to the put of the message; send it again"

func putInTime(ctx context.Context, since time.Time, put func(context.Context) error) error {
	within, done := lease.Term{Since: since, Lasts: claimTerm, Cause: errLateClaim}.Context(ctx)
	defer done()
	err := put(within)
	if err != nil && lease.Lost(within, nil) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", context.Cause(within), err) // the caller has not cancelled ctx
	}
	return err
}

// seal returns the text of an envelope for a storage queue. If it exceeds the limit, seal stores the body in a blob and returns claimed as true;
// SweepClaims removes that blob if the text is never put.
func (q *queue) seal(ctx context.Context, op, queue string, e *envelope) (text string, claimed bool, err error) {
	text, fits, err := e.encode(q.place(), q.signing)
	if err != nil {
		return "", false, errs.InvalidIn(op, q.name, "a message of type %q cannot be encoded as JSON; its strings must be valid UTF-8", e.Type)
	}
	if fits {
		return text, false, nil
	}
	if e.Claim != nil {
		return "", false, tooLargef(op, q.name, "a message of type %q has more than %d bytes besides its body; shorten its type or the names of its steps", e.Type, maxInline)
	}
	if q.claims == nil {
		return "", false, tooLargef(op, q.name, "a message of type %q has %d bytes of JSON, and without a blob endpoint at most %d are possible; set Endpoints.Blob", e.Type, len(e.Body), maxInline)
	}
	sum := sha256.Sum256(e.Body)
	small := *e
	small.Body, small.Claim = nil, &claim{Blob: e.ID, Length: len(e.Body), SHA256: hex.EncodeToString(sum[:])}
	if !claimName.MatchString(e.ID) {
		return "", false, errs.InvalidIn(op, q.name, "the message ID has %d bytes and cannot be part of a blob name; it must have 1 to 64 letters, digits and hyphens", len(e.ID))
	}
	if text, fits, err = small.encode(q.place(), q.signing); err != nil || !fits {
		return "", false, tooLargef(op, q.name, "a message of type %q has more than %d bytes besides its body; shorten its type or the names of its steps", e.Type, maxInline)
	}
	if err := q.putClaim(ctx, op, queue, &small, e.Body); err != nil {
		return "", false, err
	}
	*e = small
	return text, true, nil
}

func (q *queue) claimBlob(c *claim) *blockblob.Client {
	return q.claims.NewBlockBlobClient(claimPrefix + c.Blob)
}

// putClaim stores the body of e. The blob's name is random, so a blob that exists already was stored by an earlier attempt of this request.
func (q *queue) putClaim(ctx context.Context, op, queue string, e *envelope, body []byte) error {
	var ex wire.Exchange
	_, err := q.claimBlob(e.Claim).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		Metadata:         claimMetadata(e, queue),
		AccessConditions: blobio.Unchanged(""),
	})
	if refusal.IsChanged(err) {
		if _, same := q.getClaim(ctx, e); same == nil {
			return nil
		}
	}
	return writeFailure(op, q.claimsName, err, &ex)
}

func (q *queue) getClaim(ctx context.Context, e *envelope) ([]byte, error) {
	c := e.Claim
	switch {
	case !e.claimsOwn():
		return nil, errForeignClaim
	case c.Length < 0 || c.Length > maxBody:
		return nil, fmt.Errorf("the message's claim says %d bytes; a body has at most %d", c.Length, maxBody)
	case q.claims == nil:
		return nil, errors.New("the message's body is in a blob, and the account has no blob endpoint; set Endpoints.Blob")
	}
	answer, err := q.claimBlob(c).DownloadStream(ctx, nil)
	if blobio.IsGone(err) {
		return nil, errClaimGone
	}
	if err != nil {
		return nil, failure("Get", q.claimsName, err)
	}
	defer answer.Body.Close()
	if err := claimOwner(e).CheckLabels(claimPrefix+c.Blob, answer.Metadata); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.Length)+1))
	if err != nil {
		return nil, failure("Get", q.claimsName, err)
	}
	sum := sha256.Sum256(body)
	switch {
	case len(body) > c.Length:
		return nil, fmt.Errorf("the blob of the message's body has more than the %d bytes that were sent; another program has changed it, so send the message again", c.Length)
	case len(body) < c.Length:
		return nil, fmt.Errorf("the blob of the message's body has %d bytes, and %d were sent; another program has changed it, so send the message again", len(body), c.Length)
	case hex.EncodeToString(sum[:]) != c.SHA256:
		return nil, errors.New("the blob of the message's body has another hash than the body that was sent; another program has changed it, so send the message again")
	}
	return body, nil
}

// renewClaim restarts the term of the blob with the body of e, for a requeued message. It skips a missing blob, and one of another message.
func (q *queue) renewClaim(ctx context.Context, op, queue string, e *envelope) error {
	if q.claims == nil || !e.claimsOwn() {
		return nil
	}
	there, err := q.claimBlob(e.Claim).GetProperties(ctx, nil)
	if blobio.IsGone(err) {
		return nil
	}
	if err != nil {
		return failure(op, q.claimsName, err)
	}
	if claimOwner(e).CheckLabels(claimPrefix+e.Claim.Blob, there.Metadata) != nil {
		return nil
	}
	_, err = q.claimBlob(e.Claim).SetMetadata(ctx, claimMetadata(e, queue), &blob.SetMetadataOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: there.ETag}}})
	if err == nil || blobio.IsGone(err) {
		return nil
	}
	return failure(op, q.claimsName, err)
}

// removeClaim deletes the blob with the body of e; a missing blob is not an error. For a received message, getClaim has checked the owner.
func (q *queue) removeClaim(ctx context.Context, e *envelope) error {
	if e == nil || e.Claim == nil || q.claims == nil || !e.claimsOwn() {
		return nil
	}
	_, err := q.claimBlob(e.Claim).Delete(ctx, nil)
	if err == nil || blobio.IsGone(err) {
		return nil
	}
	return failure("Delete", q.claimsName, err)
}

func (q *queue) open(ctx context.Context, e *envelope) ([]byte, error) {
	if e.Claim == nil {
		return e.Body, nil
	}
	return q.getClaim(ctx, e)
}

// SweepOptions are the options of SweepClaims; nil is the same as the zero value.
type SweepOptions struct {
	// DryRun makes the sweep delete nothing, and count as Deleted what it would delete.
	DryRun bool
}

// SweepReport counts what SweepClaims has found and removed.
type SweepReport struct {
	Listed      int // bodies in the container
	Young       int // bodies whose message may still be put, or that were rewritten during the sweep
	Held        int // bodies that a message may name, since their queue or the poison queue was not empty
	Foreign     int // bodies of another or of an unknown queue
	Deleted     int
	Failed      int // bodies that the service did not delete, for example because of a lease
	LastFailure error
}

func (q *queue) sweepClaims(ctx context.Context, options *SweepOptions) (SweepReport, error) {
	const op = "SweepClaims"
	var report SweepReport
	if q.claims == nil {
		return report, errs.Wiringf(op, q.name, "the account has no blob endpoint, so there are no bodies to sweep; set Endpoints.Blob")
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
				q.sweepClaim(ctx, c, &report)
				if ctx.Err() != nil {
					return report, ctx.Err()
				}
			}
		}
	}
	return report, nil
}

// oldClaim is a body whose message was put already, or will never be put.
type oldClaim struct {
	blob  string
	etag  azcore.ETag
	queue string // the storage queue of the message
}

func (q *queue) oldClaims(items []*container.BlobItem, now time.Time, report *SweepReport) (old []oldClaim) {
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

// busy returns which storage queues hold messages. It checks the poison queue last: see claimTerm.
func (q *queue) busy(ctx context.Context) (map[string]bool, error) {
	busy := map[string]bool{}
	for i, shard := range q.shards {
		n, err := queueLength(ctx, q.shardNames[i], shard)
		if err != nil {
			return nil, err
		}
		busy[q.shardNames[i]] = n > 0
	}
	n, err := q.poisonQueue().Length(ctx)
	busy[q.name+poisonSuffix] = n > 0
	return busy, err
}

func (q *queue) sweepClaim(ctx context.Context, c oldClaim, report *SweepReport) {
	_, err := q.claims.NewBlobClient(c.blob).Delete(ctx, &blob.DeleteOptions{AccessConditions: blobio.Unchanged(c.etag)})
	switch {
	case refusal.IsChanged(err):
		report.Young++
	case err == nil, blobio.IsGone(err):
		report.Deleted++
	default:
		report.Failed++
		report.LastFailure = fmt.Errorf("blob %s: %w", c.blob, failure("SweepClaims", q.claimsName, err))
		q.signals().BlobLeft(ctx, q.claimsName, err)
	}
}
