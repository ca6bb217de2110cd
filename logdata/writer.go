package logdata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	defaultInterval      = time.Second
	defaultBufferBytes   = 8 << 20
	defaultBufferRecords = 10_000
	defaultBlobBytes     = 64 << 20
	defaultBlockBytes    = 4 << 20 // all versions of the protocol take as much
	maxBlockBytes        = 100 << 20
	maxAppends           = 50_000 // the service's limit
)

// WriterOptions are the options of NewWriter; nil is the same as the zero value.
type WriterOptions struct {
	// Buffered: Write returns when the record is in memory, and a crash loses what is in memory. Otherwise it returns when
	// the record is stored.
	Buffered bool
	// Interval is how long a record stays in memory before it is sent, and the pause after a flush that has failed; zero
	// is a second.
	Interval time.Duration
	// BufferBytes and BufferRecords bound what is in memory, and so what a crash can lose of a buffered writer: 8 MiB and
	// 10,000 if they are zero. A Write that finds no room waits for it. Half of it is sent before its Interval is over. A
	// writer that is not buffered has no more Writes waiting at once.
	BufferBytes, BufferRecords int
	// BlockBytes bounds one append, and so a record: 4 MiB if zero, 100 MiB at most. Over 4 MiB needs a service that
	// speaks version 2022-11-02.
	BlockBytes int
	// BlobBytes is how large a blob grows before another one takes its place: 64 MiB if zero.
	BlobBytes int64
	// BlobAppends is how many appends a blob gets before another one takes its place: 50,000 if zero, which is the
	// service's limit.
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
			return all, fmt.Errorf("%s is %d; it is not below 0, nor over the service's limit", n.name, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if all.Interval < 0 || all.BlobBytes < 0 {
		return all, errors.New("the Interval or BlobBytes is below 0")
	}
	if all.Interval == 0 {
		all.Interval = defaultInterval
	}
	if all.BlobBytes == 0 {
		all.BlobBytes = defaultBlobBytes
	}
	return all, nil
}

// Writer writes records. It is safe for concurrent use. Blobs are never shared: any number of writers, in any number of
// processes, write to one Log. Close it.
type Writer struct {
	log     *Log
	options WriterOptions

	// What the goroutine alone touches.
	open      []*segment
	retired   []*segment        // to be made final
	tidyAfter time.Time         // zero while that works
	numbers   map[time.Time]int // the last number known of a period
	tick      uint64

	mu       sync.Mutex
	queue    []*entry // in the order of their numbers
	flying   *batch   // being sent, or of unknown outcome
	bytes    int      // of both
	records  int
	seq      uint64
	starving int // Writes that wait for room
	flushes  []flush
	closers  []chan error
	closed   bool
	err      error // of a flush that nobody was told of
	failures uint64
	lastErr  error
	pause    time.Time // no flush before, unless one is asked for
	running  bool
	cancel   context.CancelFunc
	changed  chan struct{} // closed when there may be room
	wake     chan struct{}
}

// entry is a record on its way.
type entry struct {
	seq      uint64
	time     time.Time
	frame    []byte
	accepted time.Time
	done     chan error // nil of a buffered writer
	kept     bool       // its Write was told that nobody knows: it is the writer's from then on, and sent until it is stored
}

// flush waits for all records up to a number.
type flush struct {
	upTo uint64
	done chan error
}

// NewWriter makes a writer. It makes no request; the first Write starts a goroutine, which Close ends.
func (l *Log) NewWriter(o *WriterOptions) (*Writer, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, invalidf("NewWriter", l.prefix, "%w", err)
	}
	return &Writer{log: l, options: options, numbers: map[time.Time]int{}, changed: make(chan struct{}), wake: make(chan struct{}, 1)}, nil
}

// Write writes a record, whose Data it does not keep.
//
// Not buffered, nil means that the record is stored; tables.ErrUnknownOutcome that it may be. From then on it is the
// writer's, which sends it until it is stored, also where it turns out that it was not: do not write it again, but ask Flush,
// which has no nil before that. Until then it takes room in memory as Writes that wait do. Any other error means that the
// record is not stored and will not be. A context that ends while the record is on its way is tables.ErrUnknownOutcome, too.
//
// Buffered, nil means that the record is in memory. An error means that it is not, and is not written: it is
// tables.ErrInvalid, tables.ErrTooLarge, the context's, or that of a flush in the background, whose records are in
// memory still. Such an error is returned once, unless the records were stored meanwhile.
func (w *Writer) Write(ctx context.Context, r Record) error {
	const op = "Write"
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	at := r.Time.UTC().Round(0) // without the monotonic clock, which no blob knows
	if at.Before(minTime()) || !at.Before(maxTime()) {
		return invalidf(op, w.log.prefix, "the time %v; a record is of the years 1 to 9999", at)
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
		Err: fmt.Errorf("a record of %d bytes; as it is stored, it has %d at most", size, limit)}
}

// accept puts a record into memory, when there is room for it.
func (w *Writer) accept(ctx context.Context, e *entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for seen := w.failures; ; {
		if err := ctx.Err(); err != nil {
			return failure("Write", w.log.prefix, err, false)
		}
		if w.closed {
			return invalidf("Write", w.log.prefix, "the writer is closed")
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

// nudge has the goroutine look at what there is to do.
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

// withdraw takes back a record whose context has ended, if it is not on its way.
func (w *Writer) withdraw(e *entry, cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case err := <-e.done: // meanwhile
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

// forget makes room where a record was.
func (w *Writer) forget(gone ...*entry) {
	for _, e := range gone {
		w.bytes -= len(e.frame)
		w.records--
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// Flush returns nil when all records that were accepted before are stored, those of a Write that ended in
// tables.ErrUnknownOutcome too. After an error, what a buffered writer has accepted is in memory still, and so are the
// records of such Writes.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	if w.flying == nil && len(w.queue) == 0 {
		w.mu.Unlock()
		return nil
	}
	if w.closed {
		w.mu.Unlock()
		return invalidf("Flush", w.log.prefix, "the writer is closed; Close can be called again")
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

// Close stores what is in memory, writes into the metadata of the writer's blobs what their last records are, and ends the
// writer's goroutine, also when the context ends before. After an error, records may be in memory still, and Close can be
// called again; the error is tables.ErrUnknownOutcome while some of them may be stored. Once it has returned nil it does
// nothing more.
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
		return because(<-done, ctx.Err()) // soon: all requests have ended
	}
}

// Stats is what a writer has in memory.
type Stats struct {
	// Records and Bytes are in memory, those on their way among them.
	Records, Bytes int
	// Failures is how many flushes have failed.
	Failures uint64
	// LastError is that of the last one of them, whoever was told.
	LastError error
}

// Stats returns what the writer has in memory now. It makes no request.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{Records: w.records, Bytes: w.bytes, Failures: w.failures, LastError: w.lastErr}
}

// pauseFrom is the end of the pause after a failure: the Interval, and up to half of it by chance, so that writers part.
func (w *Writer) pauseFrom(now time.Time) time.Time {
	return now.Add(w.options.Interval + backoff.Jitter(w.options.Interval/2))
}
