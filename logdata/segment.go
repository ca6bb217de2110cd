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
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// attempts is the number of retries beyond the SDK's.
	attempts = 4
	// nameAttempts is how many further numbers a writer tries if others have taken the first.
	nameAttempts = 12
	contentType  = "text/plain; charset=utf-8"
	// requestTimeout, with the SDK's retries, keeps a service that never responds from blocking a writer forever.
	requestTimeout = 2 * time.Minute
)

type segment struct {
	name        string
	token       string
	period      time.Time
	bound       time.Time // no record is older; it is in the metadata
	size        int64
	appends     int
	records     int64
	first, last time.Time
	used        uint64
	etag        *azcore.ETag // after this writer's last write: another one means that the blob was deleted and recreated
}

// asLeft is the condition that the blob has not changed since this writer's last write.
func (s *segment) asLeft() *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: s.etag}}
}

func (s *segment) takes(t time.Time) bool {
	return !t.Before(s.bound) && (s.records == 0 || !t.Before(s.last.Add(-disorder)))
}

// openSegment creates a blob for a period, under the next number if the name is taken. Requests: 1; 2 more if another writer has the number.
func (w *Writer) openSegment(ctx context.Context, period, first time.Time) (*segment, error) {
	s := &segment{token: rand.Text(), period: period, bound: first.Add(-disorder)}
	if s.bound.Before(period) {
		s.bound = period
	}
	number := w.numbers[period] + 1
	for attempt := 0; ; attempt++ {
		if number > maxNumber {
			return nil, &tables.Error{Op: "Write", Table: w.log.periodPrefix(period), Kind: tables.ErrTooLarge,
				Err: fmt.Errorf("the period has no free blob number; it has at most %d blobs, so set a larger WriterOptions.BlobBytes or a shorter Options.Period", maxNumber)}
		}
		s.name = w.log.blobName(period, number)
		err := w.create(ctx, s)
		if err == nil {
			if len(w.numbers) > 4*maxOpen {
				clear(w.numbers) // list a period's blobs again to find the next number
			}
			w.numbers[period] = number
			w.addSegment(s)
			return s, nil
		}
		if !wire.HasCode(err, codeBlobExists, codeConditionNotMet) || attempt == nameAttempts {
			return nil, err
		}
		highest, err := w.highest(ctx, period)
		if err != nil {
			return nil, err
		}
		// Writers that have read the same number spread out more with each attempt.
		number = max(highest, number) + 1 + int(backoff.Jitter(time.Duration(attempt+1)))
	}
}

// create creates the blob. BlobAlreadyExists or ConditionNotMet means that another writer has the name. It never returns ErrUnknownOutcome: at
// worst an attempt leaves an empty blob, which readers skip.
func (w *Writer) create(ctx context.Context, s *segment) error {
	kind := contentType
	options := &appendblob.CreateOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}, Metadata: w.log.openMetadata(s.token, s.bound),
		AccessConditions: blobio.Unchanged(""),
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
		if !unsure(&ex) || attempt == attempts || ctx.Err() != nil || backoff.Wait(ctx, attempt) != nil {
			return failure("Write", s.name, err, false)
		}
	}
}

// isOurs reports whether an attempt with a lost response created the blob.
func (w *Writer) isOurs(ctx context.Context, s *segment) bool {
	answer, err := w.log.container.NewBlobClient(s.name).GetProperties(ctx, nil)
	s.etag = answer.ETag
	return err == nil && answer.ContentLength != nil && *answer.ContentLength == 0 && blobowner.Label(answer.Metadata, metaWriter) == s.token
}

// highest returns the highest number in a period. Requests: 1 for each 5,000 blobs.
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

// append sends a batch to the end of its segment. After an unknown outcome it sends it again for the same position: the service refuses it if the
// first attempt was applied, since only this writer appends. moved means that the batch is not in the blob, and cannot be appended any more.
// Requests: 1; after a lost response 2 more.
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
		case wire.HasCode(err, codePosition, codeConditionNotMet), b.unknown && wire.HasCode(err, codeTooMany, codeSealed):
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
			return true, failure("Write", s.name, err, false)
		}
		if !unsure(&ex) || attempt == attempts || ctx.Err() != nil || backoff.Wait(ctx, attempt) != nil {
			return false, failure("Write", s.name, err, b.unknown)
		}
	}
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

// etagOf returns the ETag that blobstorage.Container's client records in the Exchange; for other clients, told, from the SDK's result.
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

// finalise writes the bounds and the number of records into the metadata, after the last append. A repeated or delayed request is harmless, since
// its condition is the ETag after that append. Requests: 1; none for an empty blob.
func (w *Writer) finalise(ctx context.Context, s *segment) error {
	if s.records == 0 {
		return nil
	}
	err := bounded(ctx, func(ctx context.Context) error {
		_, err := w.log.container.NewBlobClient(s.name).SetMetadata(ctx, w.log.finalMetadata(s), &blob.SetMetadataOptions{AccessConditions: s.asLeft()})
		return err
	})
	if wire.HasCode(err, codeBlobNotFound, codeConditionNotMet) {
		return nil // deleted, or a lost attempt was applied
	}
	return failure("Close", s.name, err, false)
}

const (
	codeBlobExists   = "BlobAlreadyExists"
	codePosition     = "AppendPositionConditionNotMet"
	codeBlobNotFound = "BlobNotFound"
	codeTooMany      = "BlockCountExceedsLimit"
	codeOtherType    = "InvalidBlobType"
	codeSealed       = "BlobIsSealed"
	codeInvalidRange = "InvalidRange"
	// codeConditionNotMet is also the code if a blob to create already exists.
	codeConditionNotMet = "ConditionNotMet"
)

// failure makes a tables.Error. unknown says that this or an earlier attempt may have been applied.
func failure(op, name string, err error, unknown bool) error {
	if err == nil {
		return nil
	}
	e := core.ServiceError(op, name, err)
	if unknown {
		e.Kind = tables.ErrUnknownOutcome
	}
	return e
}

// unsure reports whether the failed write, or an earlier attempt, may have been applied: always for clients of others than blobstorage.Container,
// which do not record attempts.
func unsure(ex *wire.Exchange) bool {
	return ex.Last == wire.OutcomeNone || ex.Lost() || ex.EarlierUnknown()
}
