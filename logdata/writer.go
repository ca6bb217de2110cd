package logdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	defaultInterval      = time.Second
	defaultBufferBytes   = 8 << 20
	defaultBufferRecords = 10_000
	defaultBlobBytes     = 64 << 20
	defaultBlockBytes    = 4 << 20 // all versions of the service's protocol allow this size
	maxBlockBytes        = 100 << 20
	maxAppends           = 50_000 // the service's limit
)

// WriterOptions are the options of NewWriter; nil is the same as the zero value.
type WriterOptions struct {
	// Buffered makes Write return as soon as the record is in memory; a crash loses the records in memory. If
	// it is false, Write returns when the record is stored.
	Buffered bool
	// Interval is how long a record stays in memory before it is sent, and the pause after a failed flush (default 1
	// s).
	Interval time.Duration
	// BufferBytes and BufferRecords limit the records in memory, and so what a crash of a buffered writer can lose
	// (defaults 8 MiB and 10,000). A Write that finds no room waits until there is room, a flush fails or its context
	// ends. At half of a limit, the writer sends records before their Interval is over. For an unbuffered writer they
	// limit the Writes that wait at once.
	BufferBytes, BufferRecords int
	// BlockBytes is the maximum size of an append, and so of a record (default 4 MiB, at most 100 MiB). Over 4 MiB
	// the service must support version 2022-11-02. A record must also fit into BufferBytes: for records over 8 MiB
	// raise both.
	BlockBytes int
	// BlobBytes is the size at which a new blob is begun (default 64 MiB).
	BlobBytes int64
	// BlobAppends is the number of appends after which a new blob is begun (default 50,000, the service's limit).
	BlobAppends int
}

func (o *WriterOptions) withDefaults() (WriterOptions, error) {
	var all WriterOptions
	if o != nil {
		all = *o
	}
	for _, n := range []struct {
		name        string
		value       *int
		zero, limit int
	}{
		{"BufferBytes", &all.BufferBytes, defaultBufferBytes, 0},
		{"BufferRecords", &all.BufferRecords, defaultBufferRecords, 0},
		{"BlockBytes", &all.BlockBytes, defaultBlockBytes, maxBlockBytes},
		{"BlobAppends", &all.BlobAppends, maxAppends, maxAppends},
	} {
		if *n.value < 0 || n.limit > 0 && *n.value > n.limit {
			return all, fmt.Errorf("WriterOptions.%s is %d; it must be 0 (meaning the default) or more, and within the service's limit", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if all.Interval < 0 || all.BlobBytes < 0 {
		return all, fmt.Errorf("WriterOptions.Interval is %v and BlobBytes %d; both must be 0 (meaning the default) or more", all.Interval, all.BlobBytes)
	}
	all.Interval = cmp.Or(all.Interval, defaultInterval)
	all.BlobBytes = cmp.Or(all.BlobBytes, defaultBlobBytes)
	return all, nil
}

// Writer writes records. It is safe for concurrent use. Each writer has its own blobs: any number of writers, in any
// number of processes, can write to one Log. Close it when done.
type Writer struct {
	log     *Log
	options WriterOptions

	// The following fields are used only by the writer's goroutine.
	open      []*segment
	retired   []*segment        // to be made final
	tidyAfter time.Time         // zero unless making a segment final has failed
	numbers   map[time.Time]int // number of this writer's last blob in each period
	tick      uint64

	mu       sync.Mutex
	queue    []*entry // in the order of seq
	flying   *batch   // the batch in flight, or with unknown outcome
	bytes    int      // stored size of the records in queue and flying
	records  int
	seq      uint64
	starving int // Writes that wait for room
	flushes  []flush
	closers  []chan error
	closed   bool
	err      error // error of a failed flush that no call has returned yet
	failures uint64
	lastErr  error
	pause    time.Time // after a failure: no flush before this time, unless one is requested
	running  bool
	cancel   context.CancelFunc
	changed  chan struct{} // closed, and replaced, when a Write that waits for room may go on or fail
	wake     chan struct{}
}

// entry is a record that is not yet stored.
type entry struct {
	seq      uint64
	time     time.Time
	frame    []byte
	accepted time.Time
	done     chan error // nil with a buffered writer
	kept     bool       // no Write waits for the record any more, but the writer must send it: Write has returned ErrUnknownOutcome
}

// flush waits until all records up to a number are stored.
type flush struct {
	upTo uint64
	done chan error
}

// NewWriter makes a writer. It makes no request; the first Write starts a goroutine, which Close ends.
func (l *Log) NewWriter(options *WriterOptions) (*Writer, error) {
	complete, err := options.withDefaults()
	if err != nil {
		return nil, errs.Wiringf("NewWriter", l.prefix, "%w", err)
	}
	return &Writer{log: l, options: complete, numbers: map[time.Time]int{}, changed: make(chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// Write writes a record. It copies Data.
//
// Unbuffered: nil means that the record is stored. tables.ErrUnknownOutcome means that it may be stored, and
// that the writer itself will send it until it is: do not write it again, but call Flush, which returns nil
// only when the record is stored. Until then the record takes up buffer space. If the context ends while the
// record is in flight, Write also returns tables.ErrUnknownOutcome. Any other error means that the record is
// not stored and will not be.
//
// Buffered: nil means that the record is in memory. An error means that the record is not in memory and will not be
// written: tables.ErrInvalid, tables.ErrTooLarge, tables.ErrWiring after Close, the context's error, or the error of
// a failed background flush, whose records are still in memory. One call returns that error, or none if the records
// were stored meanwhile; but each Write that waits for room when a flush fails returns that flush's error.
func (w *Writer) Write(ctx context.Context, r Record) error {
	const op = "Write"
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	at := r.Time.UTC().Round(0) // removes the monotonic clock reading, which blobs do not store
	if at.Before(minTime()) || !at.Before(maxTime()) {
		return errs.InvalidIn(op, w.log.prefix, "Record.Time is %v; its year must be 1 to 9999", at)
	}
	limit := min(w.options.BlockBytes, w.options.BufferBytes)
	if len(r.Data)+minFrame > limit {
		return w.tooLarge(len(r.Data), limit)
	}
	e := &entry{time: at, frame: appendFrame(make([]byte, 0, len(r.Data)+maxHeader+1), at, r.Data)}
	if len(e.frame) > limit {
		return w.tooLarge(len(e.frame), limit)
	}
	if !w.options.Buffered {
		e.done = make(chan error, 1)
	}
	if err := w.accept(ctx, e); err != nil || e.done == nil {
		return err
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return w.withdraw(e, ctx.Err())
	}
}

func (w *Writer) tooLarge(size, limit int) error {
	return &tables.Error{Op: "Write", Table: w.log.prefix, Kind: tables.ErrTooLarge,
		Err: fmt.Errorf("the record has %d bytes as stored; it must have at most %d", size, limit)}
}

// accept queues a record as soon as there is room for it.
func (w *Writer) accept(ctx context.Context, e *entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for seen := w.failures; ; {
		if err := ctx.Err(); err != nil {
			return failure("Write", w.log.prefix, err, false)
		}
		if w.closed {
			return errs.Wiringf("Write", w.log.prefix, "the writer is closed; make another one with NewWriter")
		}
		if err := w.err; err != nil {
			w.err = nil
			return notAccepted(err)
		}
		if w.records < w.options.BufferRecords && w.bytes+len(e.frame) <= w.options.BufferBytes {
			break
		}
		if w.failures != seen {
			return notAccepted(w.lastErr)
		}
		w.starving++
		w.nudge()
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		w.mu.Lock()
		w.starving--
	}
	w.seq++
	e.seq, e.accepted = w.seq, time.Now()
	w.queue = append(w.queue, e)
	w.bytes += len(e.frame)
	w.records++
	w.nudge()
	return nil
}

// nudge wakes the goroutine that flushes in the background, and starts it if it does not run.
func (w *Writer) nudge() {
	if !w.running {
		ctx, cancel := context.WithCancel(context.Background())
		w.running, w.cancel = true, cancel
		go w.run(ctx)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// withdraw removes a record whose context has ended from the queue. If the record is in flight, it stays, and Write
// returns ErrUnknownOutcome.
func (w *Writer) withdraw(e *entry, cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-e.done: // the record was sent meanwhile
		return err
	default:
	}
	for i, waiting := range w.queue {
		if waiting == e {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			w.forget(e)
			w.reached()
			return failure("Write", w.log.prefix, cause, false)
		}
	}
	e.kept = true
	return failure("Write", w.log.prefix, cause, true)
}

// forget frees the buffer space of records, and wakes the Writes that wait for space.
func (w *Writer) forget(gone ...*entry) {
	for _, e := range gone {
		w.bytes -= len(e.frame)
		w.records--
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Flush returns nil when all records accepted before the call are stored, including those of a Write that returned
// tables.ErrUnknownOutcome. After an error, the accepted records of a buffered writer, and the records of Writes that
// returned ErrUnknownOutcome, are still in memory.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	if w.flying == nil && len(w.queue) == 0 {
		w.mu.Unlock()
		return nil
	}
	if w.closed {
		w.mu.Unlock()
		return errs.Wiringf("Flush", w.log.prefix, "the writer is closed; call Close again to send what is left")
	}
	f := flush{w.seq, make(chan error, 1)}
	w.flushes = append(w.flushes, f)
	w.nudge()
	w.mu.Unlock()
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
		return failure("Flush", w.log.prefix, ctx.Err(), false)
	}
}

// Close stores all records in memory, makes the writer's blobs final by writing their metadata, and ends the
// writer's goroutine, even if the context ends first. After an error, records may still be in memory, and
// Close can be called again; it returns tables.ErrUnknownOutcome if some of them may be stored. After Close
// has returned nil, further calls of Close do nothing.
func (w *Writer) Close(ctx context.Context) error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.closed = true
	w.closers = append(w.closers, done)
	w.nudge()
	cancel := w.cancel
	w.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		cancel()
		return because(<-done, ctx.Err()) // returns soon, since all requests were cancelled
	}
}

// Stats describes what a writer has in memory.
type Stats struct {
	// Records is the number of records in memory, and Bytes their stored size, including those in flight.
	Records, Bytes int
	// Failures is the number of failed flushes.
	Failures uint64
	// LastError is the error of the last failed flush, whether or not it was returned to a caller.
	LastError error
}

// Stats returns the present number and size of the records in memory. It makes no request.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{Records: w.records, Bytes: w.bytes, Failures: w.failures, LastError: w.lastErr}
}

// pauseFrom returns the end of the pause after a failure: Interval plus a random part of up to half of it, so that
// writers spread out.
func (w *Writer) pauseFrom(now time.Time) time.Time {
	return now.Add(w.options.Interval + backoff.Jitter(w.options.Interval/2))
}

// because adds the reason why Close has cancelled the writer's context to err. Without it, the caller would only see that
// some context was cancelled.
func because(err, cause error) error {
	var e *tables.Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Err = fmt.Errorf("%w: %w", cause, e.Err)
	return &told
}
