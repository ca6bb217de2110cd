package logdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// chunkBytes is how much of a blob one request reads.
	chunkBytes = 1 << 20
	// readAttempts is how often a chunk is requested if its response is cut off.
	readAttempts = 5
)

// stream yields a blob's records of the query's range, in the order of time.
type stream struct {
	query  *query
	blob   Blob
	chunks chan chunk // nil until the blob is read
	cancel context.CancelFunc

	decoder decoder
	ended   bool      // no more records follow
	latest  time.Time // latest time of all records so far
	sorted  []Record  // records of the range that were read, by time; a late record may still precede them
}

type chunk struct {
	data []byte
	err  error
}

// read downloads the blob in chunks: while one chunk is parsed, the next one is downloaded. It ends at the
// blob's current end.
func (s *stream) read(ctx context.Context) {
	send := func(c chunk) bool {
		select {
		case s.chunks <- c:
			return c.err == nil
		case <-ctx.Done():
			return false
		}
	}
	for offset, total := int64(0), s.blob.Size; offset < total; {
		select {
		case s.query.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p, err := s.query.log.download(ctx, s.blob.Name, offset, chunkBytes)
		<-s.query.slots
		if !send(chunk{p.data, err}) || len(p.data) == 0 {
			return
		}
		offset, total = offset+int64(len(p.data)), p.size
	}
}

// fill reads until the first record of sorted is the stream's next record, because no later record can be
// older.
func (s *stream) fill() error {
	for !s.ended && (len(s.sorted) == 0 || s.sorted[0].Time.After(s.latest.Add(-s.blob.disorder))) {
		record, ok := s.decoder.next()
		if ok {
			s.add(record)
			continue
		}
		if s.decoder.last {
			s.ended = true
			return nil
		}
		c, more := <-s.chunks
		if c.err != nil {
			return c.err
		}
		if !more && s.query.ctx.Err() != nil {
			return failure("Query", s.blob.Name, s.query.ctx.Err(), false)
		}
		s.decoder.add(c.data)
		s.decoder.last = !more
	}
	return nil
}

// add inserts a record by its time.
func (s *stream) add(r Record) {
	if r.Time.After(s.latest) {
		s.latest = r.Time
	}
	if !s.latest.Add(-s.blob.disorder).Before(s.query.to) {
		s.ended = true // all further records are after the range
		s.cancel()
	}
	if r.Time.Before(s.query.from) || !r.Time.Before(s.query.to) {
		return
	}
	at := len(s.sorted)
	for at > 0 && s.sorted[at-1].Time.After(r.Time) {
		at--
	}
	s.sorted = slices.Insert(s.sorted, at, r)
}

func (s *stream) empty() bool     { return len(s.sorted) == 0 }
func (s *stream) head() time.Time { return s.sorted[0].Time }

func (s *stream) pop() Record {
	r := s.sorted[0]
	s.sorted[0] = Record{} // lets the record be freed
	s.sorted = s.sorted[1:]
	return r
}

// piece is a part of a blob, with the blob's size and ETag when it was read. It is empty after the blob's
// end, and if the blob does not exist.
type piece struct {
	data []byte
	size int64
	etag *azcore.ETag
}

// download reads a piece of a blob. It is shorter than count only at the blob's end. Requests: 1.
func (l *Log) download(ctx context.Context, name string, offset, count int64) (piece, error) {
	var p piece
	err := backoff.Retry(ctx, readAttempts+1, func() (again bool, err error) {
		p, err = l.downloadOnce(ctx, name, offset, count)
		return errors.Is(err, errCutOff), err
	})
	if wire.HasCode(err, codeInvalidRange, codeBlobNotFound) {
		return piece{size: offset}, nil
	}
	return p, failure("Query", name, err, false)
}

// errCutOff reports that the end of a response is missing.
var errCutOff = errors.New("the response was cut off; repeat the query")

func (l *Log) downloadOnce(ctx context.Context, name string, offset, count int64) (piece, error) {
	answer, err := l.container.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: count}})
	if err != nil {
		if refused, ok := errors.AsType[*azcore.ResponseError](err); ok && refused.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return piece{size: offset}, nil // a missing blob, whatever the error code
		}
		return piece{}, err
	}
	defer answer.Body.Close()
	first, last, size, err := contentRange(answer.ContentRange)
	if err == nil && first == offset && last == first-1 && size == first {
		return piece{size: offset}, nil // Azurite's response for a range after the end
	}
	if err != nil || last < first || first != offset || last-first >= count {
		return piece{}, fmt.Errorf("%w: the response has another range than the requested one; repeat the query", tables.ErrGarbled)
	}
	data := make([]byte, last-first+1)
	if _, err := io.ReadFull(answer.Body, data); err != nil {
		if ctx.Err() != nil {
			return piece{}, ctx.Err()
		}
		return piece{}, fmt.Errorf("%w: %w", errCutOff, err)
	}
	return piece{data, size, answer.ETag}, nil
}

// contentRange reads "bytes 0-9/100".
func contentRange(text *string) (first, last, size int64, err error) {
	if text == nil {
		return 0, 0, 0, errors.New("the response has no Content-Range header; repeat the query")
	}
	span, all, _ := strings.Cut(strings.TrimPrefix(*text, "bytes "), "/")
	from, to, _ := strings.Cut(span, "-")
	for _, n := range []struct {
		text string
		to   *int64
	}{{from, &first}, {to, &last}, {all, &size}} {
		if *n.to, err = strconv.ParseInt(n.text, 10, 64); err != nil {
			return 0, 0, 0, err
		}
	}
	if first < 0 || last < first-1 || size <= last {
		return 0, 0, 0, errors.New("the response's Content-Range header is malformed; repeat the query")
	}
	return first, last, size, nil
}
