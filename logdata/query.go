package logdata

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

const defaultConcurrency = 8

// QueryOptions are the options of Query; nil is the same as the zero value.
type QueryOptions struct {
	// Concurrency is how many blobs are read at once, and how many are read ahead (default 8).
	Concurrency int
	// Damaged is called for each stretch of a blob that is not a record, by the goroutine that iterates. If it is
	// nil, such bytes are skipped silently.
	Damaged func(Damage)
}

// Query yields the records with from <= Time < to in the order of their times; records of the same time are
// ordered by blob, and within a blob as written. It reads a blob that is being written up to its current end.
// It skips a blob that is deleted meanwhile. An error is yielded once, as the last element. If the loop ends
// early, all requests stop.
//
// Requests: those of Blobs, and at most 1 for each MiB of the blobs that Blobs yields.
func (l *Log) Query(ctx context.Context, from, to time.Time, options *QueryOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		from, to, err := checkRange("Query", from, to)
		if err != nil {
			yield(Record{}, err)
			return
		}
		q := &query{log: l, from: from, to: to, concurrency: defaultConcurrency}
		if options != nil {
			q.damaged = options.Damaged
			if q.concurrency = options.Concurrency; q.concurrency == 0 {
				q.concurrency = defaultConcurrency
			}
		}
		if q.concurrency < 0 {
			yield(Record{}, tables.Wiringf("Query", l.prefix, "QueryOptions.Concurrency is %d; it must be 0 (meaning 8) or more", q.concurrency))
			return
		}
		if err := q.run(ctx, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

// query is one run of Query: it merges the streams of blobs by time. It reads a blob at the latest when the
// blob's first record may be the next one.
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
	waiting []*stream // streams that are not merged yet: a heap by the earliest possible times of their records
	merging merge     // the streams that have a record
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

// ready adds to the merge all streams that may have the next record. It returns true if no record is left.
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

// lookAhead lists the blobs that may begin before the next record, and some more, and starts to read the first of
// them.
func (q *query) lookAhead() error {
	for {
		b, err := q.peek()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		// A blob's first record may be as early as the beginning of its period.
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

// peek returns the next listed blob that can hold a record of the range, nil after the last.
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

// start begins to read a blob, unless it is being read.
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

// merge is a heap of streams, each with a record.
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
