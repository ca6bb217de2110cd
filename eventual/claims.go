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
	"net/http"
	"regexp"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

const (
	// claimPrefix begins the names of the blobs that hold large bodies. Behind it comes the id of the message.
	claimPrefix = "claims/"

	// The names of a claim's metadata say whose body the blob holds, in base64, since metadata takes ASCII only.
	metaMessage = "tpmessage" // id
	metaType    = "tptype"
)

// claimName is what an id must be so that a blob can be named after it.
var claimName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// claimOwner returns what binds a claim's blob to its message: the blob has the message's id for a name, and id and type in its
// metadata. Whoever can put messages could otherwise have the body of another message read, handled and deleted as their own.
func claimOwner(e *envelope) blobowner.Owner {
	return blobowner.Owner{What: "the message", Prefix: claimPrefix, Labels: map[string]string{
		metaMessage: base64.RawURLEncoding.EncodeToString([]byte(e.ID)),
		metaType:    base64.RawURLEncoding.EncodeToString([]byte(e.Type)),
	}}
}

// claimMetadata are the metadata of a body's blob: whose it is, for which storage queue, and for how long the message may be put.
func claimMetadata(e *envelope, queue string) map[string]*string {
	return claimOwner(e).Metadata(map[string]string{metaTerm: lease.FormatTerm(claimTerm), metaQueue: queue})
}

// errClaimGone: the blob with the body is not there. On a redelivery that means that the message was handled: the blob goes
// just before the message.
var errClaimGone = errors.New("the blob that holds the body is gone")

// errForeignClaim: only the message's own id can name the blob of its body.
var errForeignClaim = errors.New("the claim names the body of another message")

// claimsOwn reports whether the claim names the blob that the message's id stands for.
func (e *envelope) claimsOwn() bool { return e.Claim.Blob == e.ID && claimName.MatchString(e.ID) }

// The body of a large message is in a blob, which is stored before the message is put:
//
//  1. the blob is stored. Its metadata names the storage queue that the message is for, and a term;
//  2. the message is put. No attempt is sent when the term, less a margin, has passed since before the first attempt of 1, by the
//     sender's clock;
//  3. who handles the message deletes the blob, then the message.
//
// A crash before 2 leaves a blob that no message names. SweepClaims deletes it: once the term and a grace are over, by the service's
// clock, the message is on its queue or on the poison queue, or there will never be one. So a blob that is as old is one that no
// message names where both are empty after the blob was listed. The queue is looked at first, since a message goes from there to the
// poison queue, of which it is put before it is deleted from the other. A Requeue, which goes the other way, writes the blob's
// metadata again before it puts the message: so the blob has another ETag than the one that was listed.

// claimTerm is how long after storing its body a message may be put.
const claimTerm = time.Hour

const (
	metaTerm  = "tpterm"  // seconds
	metaQueue = "tpqueue" // the storage queue that the message is for
)

const errLateClaim = "the term of the blob that holds the body ended before the answer to the put of the message; send it again"

// putInTime puts a message whose body was stored after since.
func putInTime(ctx context.Context, since time.Time, put func(context.Context) error) error {
	within, done := lease.Within(ctx, since, claimTerm, errLateClaim)
	defer done()
	err := put(within)
	if err != nil && lease.Lost(within, nil) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", context.Cause(within), err) // the caller has cancelled nothing
	}
	return err
}

// seal returns the text of an envelope for a storage queue. Where that is over the limit, it puts the body into a blob first, and
// claimed is true: a claim without a message is an orphan, a message without its claim is lost.
func (q *Queue) seal(ctx context.Context, op, queue string, e *envelope) (text string, claimed bool, err error) {
	text, fits, err := e.encode(q.name, q.signing)
	if err != nil {
		return "", false, invalidf(op, q.name, "a message of type %q cannot be written as JSON", e.Type)
	}
	if fits {
		return text, false, nil
	}
	if e.Claim != nil {
		return "", false, tooLargef(op, q.name, "a message of type %q has more than %d bytes besides its body", e.Type, maxInline)
	}
	if q.claims == nil {
		return "", false, tooLargef(op, q.name, "a message of type %q has %d bytes of JSON: without a blob endpoint it has at most %d", e.Type, len(e.Body), maxInline)
	}
	sum := sha256.Sum256(e.Body)
	small := *e
	small.Body, small.Claim = nil, &claim{Blob: e.ID, Length: len(e.Body), SHA256: hex.EncodeToString(sum[:])}
	if !claimName.MatchString(e.ID) {
		return "", false, invalidf(op, q.name, "message id of %d bytes: it cannot be the name of a blob", len(e.ID))
	}
	if text, fits, err = small.encode(q.name, q.signing); err != nil || !fits {
		return "", false, tooLargef(op, q.name, "a message of type %q has more than %d bytes besides its body", e.Type, maxInline)
	}
	if err := q.putClaim(ctx, op, queue, &small, e.Body); err != nil {
		return "", false, err
	}
	*e = small
	return text, true, nil
}

func (q *Queue) claimBlob(c *claim) *blockblob.Client {
	return q.claims.NewBlockBlobClient(claimPrefix + c.Blob)
}

// putClaim stores the body of e, whose claim is made. The blob's name is random, so what is there already is an earlier attempt
// of this put.
func (q *Queue) putClaim(ctx context.Context, op, queue string, e *envelope, body []byte) error {
	var ex wire.Exchange
	absent := azcore.ETagAny
	_, err := q.claimBlob(e.Claim).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		Metadata:         claimMetadata(e, queue),
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
	})
	if wire.IsStatus(err, http.StatusConflict) || wire.IsStatus(err, http.StatusPreconditionFailed) {
		if _, same := q.getClaim(ctx, e); same == nil {
			return nil
		}
	}
	return writeFailure(op, q.claimsName, err, &ex)
}

// getClaim reads the body of e and compares it with what the message says of it.
func (q *Queue) getClaim(ctx context.Context, e *envelope) ([]byte, error) {
	c := e.Claim
	switch {
	case !e.claimsOwn():
		return nil, errForeignClaim
	case c.Length < 0 || c.Length > maxBody:
		return nil, fmt.Errorf("the claim's body has %d bytes: it has at most %d", c.Length, maxBody)
	case q.claims == nil:
		return nil, errors.New("the body is in a blob, and the account has no blob endpoint")
	}
	answer, err := q.claimBlob(c).DownloadStream(ctx, nil)
	if wire.HasCode(err, "BlobNotFound") {
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
		return nil, fmt.Errorf("the blob that holds the body has more than the %d bytes that were sent", c.Length)
	case len(body) < c.Length:
		return nil, fmt.Errorf("the blob that holds the body has %d bytes, and %d were sent", len(body), c.Length)
	case hex.EncodeToString(sum[:]) != c.SHA256:
		return nil, errors.New("the blob that holds the body is not the one that was sent: its hash differs")
	}
	return body, nil
}

// renewClaim begins the term of the body of e again, for a message that is put once more. A blob that is not there, or is not the
// message's, is not renewed.
func (q *Queue) renewClaim(ctx context.Context, op, queue string, e *envelope) error {
	if q.claims == nil || !e.claimsOwn() {
		return nil
	}
	there, err := q.claimBlob(e.Claim).GetProperties(ctx, nil)
	if wire.HasCode(err, "BlobNotFound") {
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
	if err == nil || wire.HasCode(err, "BlobNotFound") {
		return nil
	}
	return failure(op, q.claimsName, err)
}

// removeClaim deletes the blob with the body of e; one that is not there is removed. Of a message that was received, getClaim has
// read the blob before, and so checked that it is the message's.
func (q *Queue) removeClaim(ctx context.Context, e *envelope) error {
	if e == nil || e.Claim == nil || q.claims == nil || !e.claimsOwn() {
		return nil
	}
	_, err := q.claimBlob(e.Claim).Delete(ctx, nil)
	if err == nil || wire.HasCode(err, "BlobNotFound") {
		return nil
	}
	return failure("Delete", q.claimsName, err)
}

// open reads the body of an envelope, wherever it is.
func (q *Queue) open(ctx context.Context, e *envelope) ([]byte, error) {
	if e.Claim == nil {
		return e.Body, nil
	}
	return q.getClaim(ctx, e)
}
