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
	defaultBlockBytes    = 4 << 20 // in all versions of the service's protocol
	maxBlockBytes        = 100 << 20
	maxAppends           = 50_000 // the service's limit
)

// WriterOptions are the options of NewWriter; nil is the same as the zero value.
type WriterOptions struct {
	// Buffered makes Write return as soon as the record is in memory, where a crash loses it, and not when it is stored.
	Buffered bool
	// Interval is how long a record stays in memory before it is sent, and the pause after a failed flush (default 1 s).
	Interval time.Duration
	// BufferBytes and BufferRecords limit the records in memory, and so what a crash of a buffered writer can lose (defaults 8 MiB and 10,000). A
	// Write without room waits until there is some, a flush fails or its context ends. At half of a limit, records are sent before their Interval
	// is over. For an unbuffered writer they limit the Writes that wait at once.
	BufferBytes, BufferRecords int
	// BlockBytes limits an append, and so a record (default 4 MiB, at most 100 MiB). Over 4 MiB the service must support version 2022-11-02, as
	// Azurite does. A record must also fit into BufferBytes: over 8 MiB raise both.
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

// Writer writes records, into blobs of its own. It is safe for concurrent use. Close it when done.
type Writer struct {
	log     *Log
	options WriterOptions

	// For the writer's goroutine alone:
	open      []*segment
	retired   []*segment        // to be made final
	tidyAfter time.Time         // set if that has failed
	numbers   map[time.Time]int // this writer's last blob in each period
	tick      uint64

	mu       sync.Mutex
	queue    []*entry // in the order of seq
	flying   *batch   // in flight, or with unknown outcome
	bytes    int      // stored size of queue and flying
	records  int
	seq      uint64
	starving int // Writes that wait for room
	flushes  []flush
	closers  []chan error
	closed   bool
	err      error // of a failed flush that no call has returned yet
	failures uint64
	lastErr  error
	pause    time.Time // after a failure: no flush before this time, unless requested
	running  bool
	cancel   context.CancelFunc
	changed  chan struct{} // closed, and replaced, when a Write that waits for room may continue
	wake     chan struct{}
}

type entry struct {
	seq      uint64
	time     time.Time
	frame    []byte
	accepted time.Time
	done     chan error // nil with a buffered writer
	kept     bool       // Write has returned ErrUnknownOutcome, but the writer must still send the record
}

type flush struct {
	upTo uint64
	done chan error
}

// NewWriter makes a writer. Requests: none; the first Write starts a goroutine, which Close ends.
func (l *Log) NewWriter(options *WriterOptions) (*Writer, error) {
	complete, err := options.withDefaults()
	if err != nil {
		return nil, errs.Wiringf("NewWriter", l.prefix, "%w", err)
	}
	return &Writer{log: l, options: complete, numbers: map[time.Time]int{}, changed: make(chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// Write writes a record, and copies Data.
//
// Unbuffered: nil means that the record is stored. tables.ErrUnknownOutcome, also if the context ends while the record is in flight, means that it
// may be stored, and that the writer sends it until it is: do not write it again, but call Flush. Until then it takes up buffer space. After any
// other error the record is not stored and will not be.
//
// Buffered: nil means that the record is in memory. After an error it is not, and will not be written: tables.ErrInvalid, tables.ErrTooLarge,
// tables.ErrWiring after Close, the context's error, or that of a failed background flush, whose records are still in memory. One call returns the
// latter, or none if the records were stored meanwhile, and each Write that waits for room when the flush fails.
func (w *Writer) Write(ctx context.Context, r Record) error {
	const op = "Write"
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	at := r.Time.UTC().Round(0) // without the monotonic clock reading, which blobs do not store
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

// nudge wakes or starts the goroutine that flushes in the background.
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

// withdraw removes a record whose context has ended from the queue. One in flight stays: ErrUnknownOutcome.
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

// forget frees the records' buffer space for waiting Writes.
func (w *Writer) forget(gone ...*entry) {
	for _, e := range gone {
		w.bytes -= len(e.frame)
		w.records--
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Flush returns nil when all records accepted before are stored, including those of a Write that returned tables.ErrUnknownOutcome. After an error,
// those, and the accepted records of a buffered writer, are still in memory.
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

// Close stores all records in memory, makes the blobs final, and ends the writer's goroutine, even if the context ends first. After an error,
// records may still be in memory, and Close can be called again; tables.ErrUnknownOutcome means that some may be stored. After it has returned nil,
// Close does nothing.
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
		return because(<-done, ctx.Err()) // soon, since all requests were cancelled
	}
}

// Stats describes what a writer has in memory.
type Stats struct {
	// Records counts the records in memory and in flight, and Bytes their stored size.
	Records, Bytes int
	// Failures is the number of failed flushes.
	Failures uint64
	// LastError is that of the last failed flush, whether or not a caller got it.
	LastError error
}

// Stats returns what is in memory. Requests: none.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{Records: w.records, Bytes: w.bytes, Failures: w.failures, LastError: w.lastErr}
}

// pauseFrom returns the end of the pause after a failure: Interval plus up to half of it at random, so that writers spread out.
func (w *Writer) pauseFrom(now time.Time) time.Time {
	return now.Add(w.options.Interval + backoff.Jitter(w.options.Interval/2))
}

// because adds to err why Close has cancelled the writer's context.
func because(err, cause error) error {
	var e *tables.Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Err = fmt.Errorf("%w: %w", cause, e.Err)
	return &told
}
