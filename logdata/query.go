package logdata

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const defaultConcurrency = 8

// QueryOptions are the options of Query; nil is the same as the zero value.
type QueryOptions struct {
	// Concurrency is how many blobs are read at once, and ahead (default 8).
	Concurrency int
	// Damaged gets each stretch of a blob that is not a record, in the goroutine that iterates (default: skipped silently).
	Damaged func(Damage)
}

// Query yields the records with from <= Time < to in the order of their times, then of blobs, then as written. It reads a blob that is being
// written up to its current end, and skips one that is deleted meanwhile. An error is yielded once, as the last element. If the loop ends early,
// all requests stop.
//
// Requests: those of Blobs, and at most 1 for each started MiB of each blob that Blobs yields.
func (l *Log) Query(ctx context.Context, from, to time.Time, options *QueryOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		from, to, err := checkRange("Query", from, to)
		if err != nil {
			yield(Record{}, err)
			return
		}
		if options == nil {
			options = &QueryOptions{}
		}
		q := &query{log: l, from: from, to: to, concurrency: cmp.Or(options.Concurrency, defaultConcurrency), damaged: options.Damaged}
		if q.concurrency < 0 {
			yield(Record{}, errs.Wiringf("Query", l.prefix, "QueryOptions.Concurrency is %d; it must be 0 (meaning 8) or more", q.concurrency))
			return
		}
		if err := q.run(ctx, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

// query merges the records of all blobs by time. It begins to read a blob when that may hold the next record.
type query struct {
	log         *Log
	from, to    time.Time
	concurrency int
	damaged     func(Damage)

	ctx     context.Context
	slots   chan struct{} // one element for each request under way
	readers sync.WaitGroup

	next    func() (Blob, error, bool)
	peeked  *Blob
	waiting []*stream // not merged yet; by the lower bounds of their records' times, then by name
	merging merge     // streams whose first record is known
}

func (q *query) run(ctx context.Context, yield func(Record, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer q.readers.Wait()
	defer cancel()
	next, stop := iter.Pull2(q.log.list(ctx, q.from, q.to))
	defer stop()
	q.ctx, q.next, q.slots = ctx, next, make(chan struct{}, q.concurrency)
	for {
		done, err := q.ready()
		if err != nil || done {
			return err
		}
		top := q.merging[0]
		record := top.pop()
		if err := top.fill(); err != nil {
			return err
		}
		if top.empty() {
			heap.Pop(&q.merging)
		} else {
			heap.Fix(&q.merging, 0)
		}
		if !yield(record, nil) {
			return nil
		}
	}
}

// ready moves the streams that may have the next record to merging. done means that no record is left.
func (q *query) ready() (done bool, err error) {
	for {
		if err := q.lookAhead(); err != nil {
			return false, err
		}
		if len(q.merging) == 0 && len(q.waiting) == 0 {
			return true, nil
		}
		if len(q.waiting) == 0 || len(q.merging) > 0 && q.waiting[0].blob.First.After(q.merging[0].head()) {
			return false, nil
		}
		s := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.start(s)
		if err := s.fill(); err != nil {
			return false, err
		}
		if !s.empty() {
			heap.Push(&q.merging, s)
		}
	}
}

// lookAhead adds to waiting the blobs that may hold the next record, and further ones while fewer than q.concurrency wait, and starts to read as
// many.
func (q *query) lookAhead() error {
	for {
		b, err := q.peek()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		// Blobs come by the start of their periods: if this one cannot hold the next record, no later one can.
		needed := len(q.merging) == 0 && len(q.waiting) == 0 ||
			len(q.merging) > 0 && !b.Start.After(q.merging[0].head()) ||
			len(q.waiting) > 0 && !b.Start.After(q.waiting[0].blob.First)
		if !needed && len(q.waiting) >= q.concurrency {
			break
		}
		q.peeked = nil
		s := &stream{query: q, blob: *b}
		at, _ := slices.BinarySearchFunc(q.waiting, s, func(a, b *stream) int {
			if c := a.blob.First.Compare(b.blob.First); c != 0 {
				return c
			}
			return strings.Compare(a.blob.Name, b.blob.Name)
		})
		q.waiting = slices.Insert(q.waiting, at, s)
	}
	for _, s := range q.waiting[:min(len(q.waiting), q.concurrency)] {
		q.start(s)
	}
	return nil
}

// peek returns the next listed blob that can hold a record of the range; nil after the last.
func (q *query) peek() (*Blob, error) {
	for q.peeked == nil {
		b, err, ok := q.next()
		if !ok {
			return nil, nil
		}
		if err != nil {
			return nil, failure("Query", q.log.prefix, err, false)
		}
		if !b.mayHold(q.from, q.to) {
			continue
		}
		if b.format != "" && b.format != strconv.Itoa(formatVersion) {
			return nil, &tables.Error{Op: "Query", Table: b.Name, Kind: tables.ErrGarbled,
				Err: fmt.Errorf("the blob has format version %q, and this build reads version %d; use a newer build", b.format, formatVersion)}
		}
		q.peeked = &b
	}
	return q.peeked, nil
}

func (q *query) start(s *stream) {
	if s.chunks != nil {
		return
	}
	s.decoder.damaged = func(offset, n int64) {
		if q.damaged != nil {
			q.damaged(Damage{Blob: s.blob.Name, Offset: offset, Bytes: n})
		}
	}
	ctx, cancel := context.WithCancel(q.ctx)
	s.cancel, s.chunks = cancel, make(chan chunk)
	q.readers.Go(func() {
		defer cancel()
		defer close(s.chunks)
		s.read(ctx)
	})
}

type merge []*stream

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m merge) Less(i, j int) bool {
	if c := m[i].head().Compare(m[j].head()); c != 0 {
		return c < 0
	}
	return m[i].blob.Name < m[j].blob.Name
}
func (m *merge) Push(s any) { *m = append(*m, s.(*stream)) }
func (m *merge) Pop() any {
	old := *m
	s := old[len(old)-1]
	*m = old[:len(old)-1]
	return s
}

const (
	// chunkBytes is read by one request.
	chunkBytes = 1 << 20
	// readAttempts limits requests for a chunk whose response is cut off.
	readAttempts = 5
)

// stream yields a blob's records of the query's range, by time.
type stream struct {
	query  *query
	blob   Blob
	chunks chan chunk // nil until the blob is read
	cancel context.CancelFunc

	decoder decoder
	ended   bool      // no more records follow
	latest  time.Time // of all records so far
	sorted  []Record  // those of the range, by time; a late record may still precede them
}

type chunk struct {
	data []byte
	err  error
}

// read downloads the blob up to its current end, one chunk ahead of the query.
func (s *stream) read(ctx context.Context) {
	for offset, total := int64(0), s.blob.Size; offset < total; {
		select {
		case s.query.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p, err := s.query.log.download(ctx, s.blob.Name, offset, chunkBytes)
		<-s.query.slots
		select {
		case s.chunks <- chunk{p.data, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || len(p.data) == 0 {
			return
		}
		offset, total = offset+int64(len(p.data)), p.size
	}
}

// fill reads until no further record of the blob can be older than the first of sorted.
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
	s.sorted[0] = Record{} // to free the record
	s.sorted = s.sorted[1:]
	return r
}

// piece is a part of a blob, with the blob's size and ETag. It is empty for a missing blob, or after its end.
type piece struct {
	data []byte
	size int64
	etag *azcore.ETag
}

// download reads a piece, shorter than count only at the blob's end. Requests: 1.
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

var errCutOff = errors.New("the response was cut off; repeat the query")

func (l *Log) downloadOnce(ctx context.Context, name string, offset, count int64) (piece, error) {
	answer, err := l.container.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: count}})
	if err != nil {
		if refused, ok := errors.AsType[*azcore.ResponseError](err); ok && refused.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return piece{size: offset}, nil // the blob ends before the piece
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
