package eventual

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// claimPrefix begins the names of the blobs that hold large bodies.
const claimPrefix = "claims/"

// claimName is what a claim may name: an id, and no path to other blobs. Messages can be forged by whoever may put them.
var claimName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// errClaimGone: the blob with the body is not there. On a redelivery that means that the message was handled: the blob goes
// just before the message.
var errClaimGone = errors.New("the blob that holds the body is gone")

// seal returns the text of an envelope. Where that is over the limit, it puts the body into a blob first, and claimed is
// true: a claim without a message is an orphan, a message without its claim is lost.
func (q *Queue) seal(ctx context.Context, op string, e *envelope) (text string, claimed bool, err error) {
	text, fits, err := e.encode()
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
	if text, fits, err = small.encode(); err != nil || !fits {
		return "", false, tooLargef(op, q.name, "a message of type %q has more than %d bytes besides its body", e.Type, maxInline)
	}
	if err := q.putClaim(ctx, op, small.Claim, e.Body); err != nil {
		return "", false, err
	}
	*e = small
	return text, true, nil
}

func (q *Queue) claimBlob(c *claim) *blockblob.Client {
	return q.claims.NewBlockBlobClient(claimPrefix + c.Blob)
}

// putClaim stores a body. The blob's name is random, so what is there already is an earlier attempt of this put.
func (q *Queue) putClaim(ctx context.Context, op string, c *claim, body []byte) error {
	var ex wire.Exchange
	absent := azcore.ETagAny
	_, err := q.claimBlob(c).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
	})
	if wire.IsStatus(err, http.StatusConflict) || wire.IsStatus(err, http.StatusPreconditionFailed) {
		if _, same := q.getClaim(ctx, c); same == nil {
			return nil
		}
	}
	return writeFailure(op, q.claimsName, err, &ex)
}

// getClaim reads a body and holds it against what the message says of it.
func (q *Queue) getClaim(ctx context.Context, c *claim) ([]byte, error) {
	switch {
	case !claimName.MatchString(c.Blob):
		return nil, errors.New("the claim's blob is not the name of one")
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

// removeClaim deletes a body's blob; one that is not there is removed.
func (q *Queue) removeClaim(ctx context.Context, c *claim) error {
	if c == nil || q.claims == nil || !claimName.MatchString(c.Blob) {
		return nil
	}
	_, err := q.claimBlob(c).Delete(ctx, nil)
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
	return q.getClaim(ctx, e.Claim)
}
