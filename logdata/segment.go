package logdata

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// attempts is how often an append, or the creation of a blob, is repeated on top of the SDK's own repetitions.
	attempts = 4
	// nameAttempts is how many numbers are tried before the rivals for them have won.
	nameAttempts = 12
	contentType  = "text/plain; charset=utf-8"
	// requestTimeout bounds a request with the SDK's repetitions: a service that never answers must not stop a writer for
	// good.
	requestTimeout = 2 * time.Minute
)

// segment is a blob that this writer alone appends to.
type segment struct {
	name        string
	token       string
	period      time.Time
	bound       time.Time // no record may be before it: its metadata say so
	size        int64
	appends     int
	records     int64
	first, last time.Time
	used        uint64
	etag        *azcore.ETag // of the blob as this writer has left it: one that was deleted, and made again by another writer, has another
}

// asLeft is the condition that nobody else has written to the blob, nor made it again.
func (s *segment) asLeft() *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: s.etag}}
}

// takes reports whether a record belongs into the segment.
func (s *segment) takes(t time.Time) bool {
	return !t.Before(s.bound) && (s.records == 0 || !t.Before(s.last.Add(-disorder)))
}

// openSegment makes a blob for a period. Nobody else gets its name: it is created only if there is none, and the next
// number tried if there is. Requests: 1; 2 more where another writer has the number.
func (w *Writer) openSegment(ctx context.Context, period, first time.Time) (*segment, error) {
	s := &segment{token: rand.Text(), period: period, bound: first.Add(-disorder)}
	if s.bound.Before(period) {
		s.bound = period
	}
	number := w.numbers[period] + 1
	for attempt := 0; ; attempt++ {
		if number > maxNumber {
			return nil, &tables.Error{Op: "Write", Table: w.log.periodPrefix(period), Kind: tables.ErrTooLarge,
				Err: fmt.Errorf("a period has %d blobs at most", maxNumber)}
		}
		s.name = w.log.blobName(period, number)
		err := w.create(ctx, s)
		if err == nil {
			w.remember(period, number)
			w.adopt(s)
			return s, nil
		}
		if !wire.HasCode(err, codeBlobExists, codeConditionNotMet) || attempt == nameAttempts {
			return nil, err
		}
		highest, err := w.highest(ctx, period)
		if err != nil {
			return nil, err
		}
		// Rivals that have read the same number part the more the longer it takes.
		number = max(highest, number) + 1 + int(backoff.Jitter(time.Duration(attempt+1)))
	}
}

// remember keeps the last number of a period in mind.
func (w *Writer) remember(period time.Time, number int) {
	if len(w.numbers) > 4*maxOpen {
		clear(w.numbers) // the next blob of one of them finds its number as that of a new writer does
	}
	w.numbers[period] = number
}

// create makes the blob. BlobAlreadyExists means that it is somebody else's. An attempt of unknown outcome, at worst,
// leaves an empty blob, which readers pass over: so an error is never of unknown outcome here.
func (w *Writer) create(ctx context.Context, s *segment) error {
	absent, kind := azcore.ETagAny, contentType
	options := &appendblob.CreateOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}, Metadata: w.log.openMetadata(s.token, s.bound),
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}},
	}
	unknown := false
	for attempt := 0; ; attempt++ {
		var ex wire.Exchange
		err := bounded(ctx, func(ctx context.Context) error {
			answer, err := w.log.container.NewAppendBlobClient(s.name).Create(wire.With(ctx, &ex), options)
			s.etag = etagOf(&ex, answer.ETag)
			return err
		})
		if err == nil {
			return nil
		}
		unknown = unknown || unsure(&ex)
		if wire.HasCode(err, codeBlobExists, codeConditionNotMet) {
			if unknown && w.isOurs(ctx, s) {
				return nil
			}
			return failure("Write", s.name, err, false)
		}
		if !unsure(&ex) || attempt == attempts || ctx.Err() != nil {
			return failure("Write", s.name, err, false)
		}
		if backoff.Wait(ctx, attempt) != nil {
			return failure("Write", s.name, err, false)
		}
	}
}

// isOurs reports whether the blob that is there is the one that an attempt without an answer has made.
func (w *Writer) isOurs(ctx context.Context, s *segment) bool {
	answer, err := w.log.container.NewBlobClient(s.name).GetProperties(ctx, nil)
	s.etag = answer.ETag
	return err == nil && answer.ContentLength != nil && *answer.ContentLength == 0 && metaText(answer.Metadata, metaWriter) == s.token
}

// highest is the highest number of a period's blobs. Requests: 1 for each 5,000 of them.
func (w *Writer) highest(ctx context.Context, period time.Time) (int, error) {
	highest := 0
	for b, err := range w.log.under(ctx, w.log.periodPrefix(period)) {
		if err != nil {
			return 0, failure("Write", w.log.periodPrefix(period), err, false)
		}
		_, number, _ := w.log.parseName(b.Name)
		highest = max(highest, number)
	}
	return highest, nil
}

// append sends a batch to its segment, at the position where the segment ends. One that may have been applied is sent again
// at the same position: nobody else appends to the blob, so that it is refused there if it was applied, and applied if not.
// moved says that the batch is not in that blob, and cannot come into it. Requests: 1; after a lost answer 2 more.
func (w *Writer) append(ctx context.Context, b *batch) (moved bool, err error) {
	s := b.segment
	for attempt := 0; ; attempt++ {
		var ex wire.Exchange
		err := w.appendOnce(ctx, &ex, s, b.data)
		if err == nil {
			b.applied()
			return false, nil
		}
		b.unknown = b.unknown || unsure(&ex)
		switch {
		case wire.HasCode(err, codePosition, codeConditionNotMet):
			same, readErr := w.sameAt(ctx, s, b.data)
			if readErr == nil && same {
				b.applied()
				return false, nil
			}
			if readErr == nil {
				return true, failure("Write", s.name, err, false)
			}
			b.unknown = true
			err = readErr
		case wire.HasCode(err, codeBlobNotFound, codeTooMany, codeOtherType, codeSealed):
			if wire.HasCode(err, codeTooMany, codeSealed) && b.unknown {
				if same, readErr := w.sameAt(ctx, s, b.data); readErr != nil || same {
					return w.settled(b, same, readErr)
				}
			}
			return true, failure("Write", s.name, err, false)
		}
		if !unsure(&ex) || attempt == attempts || ctx.Err() != nil || backoff.Wait(ctx, attempt) != nil {
			return false, failure("Write", s.name, err, b.unknown)
		}
	}
}

// settled ends an append to a blob that takes no more, once it was looked into.
func (w *Writer) settled(b *batch, same bool, readErr error) (moved bool, err error) {
	if same {
		b.applied()
		return false, nil
	}
	return false, failure("Write", b.segment.name, readErr, true)
}

func (w *Writer) appendOnce(ctx context.Context, ex *wire.Exchange, s *segment, data []byte) error {
	return bounded(ctx, func(ctx context.Context) error {
		answer, err := w.log.container.NewAppendBlobClient(s.name).AppendBlock(wire.With(ctx, ex), streaming.NopCloser(bytes.NewReader(data)),
			&appendblob.AppendBlockOptions{AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: &s.size}, AccessConditions: s.asLeft()})
		if err == nil {
			s.etag = etagOf(ex, answer.ETag)
		}
		return err
	})
}

// etagOf is the ETag of an answer, which the SDK sees only where the client was not made by Account.Container.
func etagOf(ex *wire.Exchange, told *azcore.ETag) *azcore.ETag {
	if text := ex.Header.Get("ETag"); text != "" {
		return (*azcore.ETag)(&text)
	}
	return told
}

func bounded(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return request(ctx)
}

// sameAt reports whether the blob holds these bytes where the segment has ended.
func (w *Writer) sameAt(ctx context.Context, s *segment, data []byte) (bool, error) {
	at, etag := s.size, s.etag
	for len(data) > 0 {
		p, err := w.log.download(ctx, s.name, at, int64(min(len(data), chunkBytes)))
		if err != nil {
			return false, err
		}
		n := len(p.data)
		if n == 0 || n > len(data) || !bytes.Equal(p.data, data[:n]) {
			return false, nil
		}
		at, data, etag = at+int64(n), data[n:], p.etag
	}
	s.etag = etag
	return true, nil
}

// applied notes that the batch is in its segment.
func (b *batch) applied() {
	s := b.segment
	if s.records == 0 || b.first().Before(s.first) {
		s.first = b.first()
	}
	if s.records == 0 || b.last().After(s.last) {
		s.last = b.last()
	}
	s.size += int64(len(b.data))
	s.appends++
	s.records += int64(len(b.entries))
	b.unknown = false
}

// finalise says in the blob's metadata what is in it. It is sent after the last append was answered; none comes after it.
// That it is repeated, or late, does no harm: it is only for the blob as it was left. Requests: 1; none for an empty blob.
func (w *Writer) finalise(ctx context.Context, s *segment) error {
	if s.records == 0 {
		return nil
	}
	err := bounded(ctx, func(ctx context.Context) error {
		_, err := w.log.container.NewBlobClient(s.name).SetMetadata(ctx, w.log.finalMetadata(s), &blob.SetMetadataOptions{AccessConditions: s.asLeft()})
		return err
	})
	if wire.HasCode(err, codeBlobNotFound, codeConditionNotMet) {
		return nil // deleted by somebody, and all in it; or done, by an attempt whose answer was lost
	}
	return failure("Close", s.name, err, false)
}
