package tables

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// maxBulkRows bounds the rows that a bulk write holds: waiting for their transaction to fill, waiting for their turn,
// and under way.
const maxBulkRows = 20_000

// batchOverhead is what an operation adds to a transaction beside its body: headers and boundaries, and its address
// at its longest escape.
const batchOverhead = 512

// unit is the rows of one entity, which stay in one transaction.
type unit struct {
	sequence int64
	writes   []RawWrite
	bytes    int
	written  func(etag azcore.ETag)
	alone    func(ctx context.Context) error // writes it with all the means of its repository; nil for a bag
}

// lane is one partition's units: those waiting for a transaction to fill, and the transactions waiting for their turn.
// A partition has a lane only while it has units.
type lane struct {
	partition string
	pending   []*unit
	rows      int // pending
	bytes     int
	keys      map[string]struct{}
	waiting   *list.Element // its place in bulk.waiting, nil without pending units
	ready     [][]*unit
	running   bool // in bulk.queue, or at work
}

// bulk is one bulk write. One goroutine feeds it; everything below mu is shared with the workers.
type bulk struct {
	table   *Table
	op      string
	options BulkOptions
	running sync.WaitGroup
	stop    context.CancelFunc // begins nothing more
	started time.Time
	scratch []byte
	moved   chan struct{} // tells the feeder that something went on

	mu       sync.Mutex
	lanes    map[string]*lane
	waiting  *list.List // lanes with pending units, the one that waits longest first
	queue    []*lane    // lanes with a transaction whose turn may come, none of them at work
	workers  int
	rows     int // of all units that are not done
	ready    int // transactions that wait for their turn
	progress BulkProgress
	finished map[int64]struct{} // units done beyond progress.Resume
	err      error
}

func newBulk(t *Table, op string, options *BulkOptions) *bulk {
	b := &bulk{
		table: t, op: op, started: time.Now(), moved: make(chan struct{}, 1),
		lanes: map[string]*lane{}, waiting: list.New(), finished: map[int64]struct{}{},
	}
	if options != nil {
		b.options = *options
	}
	if b.options.Concurrency == 0 {
		b.options.Concurrency = defaultConcurrency
	}
	b.progress.Resume = b.options.Skip
	return b
}

// add puts a unit into its lane, once there is room, and sends what is full on its way.
func (b *bulk) add(begin, ctx context.Context, u *unit) error {
	if err := b.measure(u); err != nil {
		return err
	}
	if err := b.makeRoom(begin, ctx, len(u.writes)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	partition := u.writes[0].Key.Partition
	l := b.lanes[partition]
	if l == nil {
		l = &lane{partition: partition, keys: map[string]struct{}{}}
		b.lanes[partition] = l
	}
	if l.rows+len(u.writes) > MaxTransactionOperations || l.bytes+u.bytes > MaxTransactionSize-1024 || l.holds(u) {
		b.flush(begin, ctx, l)
	}
	if l.waiting == nil {
		l.waiting = b.waiting.PushBack(l)
	}
	l.pending = append(l.pending, u)
	l.rows += len(u.writes)
	l.bytes += u.bytes
	b.rows += len(u.writes)
	for i := range u.writes {
		l.keys[u.writes[i].Key.Row] = struct{}{}
	}
	if l.rows == MaxTransactionOperations {
		b.flush(begin, ctx, l)
	}
	b.flushStragglers(begin, ctx, u.sequence)
	return nil
}

// flushStragglers sends units that the sequence has left far behind: their lane would wait for the sequence's end, and
// what is done beyond progress.Resume would grow without bound. It is called under mu.
func (b *bulk) flushStragglers(begin, ctx context.Context, sequence int64) {
	for b.waiting.Len() > 0 {
		oldest := b.waiting.Front().Value.(*lane)
		if oldest.pending[0].sequence+maxBulkRows > sequence {
			return
		}
		b.flush(begin, ctx, oldest)
	}
}

// makeRoom waits until so many more rows may be held. While nothing else is ready it sends the units that have waited
// longest, so that workers never wait for lanes to fill that cannot.
func (b *bulk) makeRoom(begin, ctx context.Context, rows int) error {
	for {
		b.mu.Lock()
		full := b.rows+rows > maxBulkRows
		for full && b.ready < b.options.Concurrency && b.waiting.Len() > 0 {
			b.flush(begin, ctx, b.waiting.Front().Value.(*lane))
		}
		full = full || b.ready >= 4*b.options.Concurrency
		b.mu.Unlock()
		if !full {
			return begin.Err()
		}
		select {
		case <-b.moved:
		case <-begin.Done():
			return begin.Err()
		}
	}
}

// measure checks a unit as it would be sent alone, so that a bad entity fails by itself and not with its neighbours.
func (b *bulk) measure(u *unit) error {
	if e := checkTransaction(u.writes); e != nil {
		return e
	}
	for i := range u.writes {
		w := &u.writes[i]
		size, e := w.Check()
		if e != nil {
			e.Op = b.op
			return e
		}
		b.scratch, _ = w.append(b.scratch[:0], size, anyWriteID)
		u.bytes += len(b.scratch) + batchOverhead + len(b.table.account.endpoints.Table) + 3*(len(w.Key.Partition)+len(w.Key.Row))
	}
	return nil
}

func (l *lane) holds(u *unit) bool {
	return slices.ContainsFunc(u.writes, func(w RawWrite) bool {
		_, ok := l.keys[w.Key.Row]
		return ok
	})
}

// flush makes the lane's pending units a transaction, and sees that somebody will send it. It is called under mu.
func (b *bulk) flush(begin, ctx context.Context, l *lane) {
	if l.waiting == nil {
		return
	}
	b.waiting.Remove(l.waiting)
	l.ready = append(l.ready, l.pending)
	l.waiting, l.pending, l.rows, l.bytes = nil, nil, 0, 0
	clear(l.keys)
	b.ready++
	if l.running {
		return
	}
	l.running = true
	b.queue = append(b.queue, l)
	if b.workers < b.options.Concurrency {
		b.workers++
		b.running.Go(func() { b.work(begin, ctx) })
	}
}

// work commits transactions, one of each lane in turn, until none is ready.
func (b *bulk) work(begin, ctx context.Context) {
	for {
		l, units := b.take()
		if l == nil {
			return
		}
		if begin.Err() == nil {
			if err := b.commit(ctx, units); err != nil {
				b.fail(err)
			}
		}
		b.leave(l, units)
	}
}

// take returns the transaction whose turn it is, with its lane.
func (b *bulk) take() (*lane, []*unit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.workers--
		return nil, nil
	}
	l := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	units := l.ready[0]
	l.ready = l.ready[1:]
	b.ready--
	b.tell()
	return l, units
}

// leave gives a lane back after a transaction, and forgets one that is empty.
func (b *bulk) leave(l *lane, units []*unit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range units {
		b.rows -= len(u.writes)
	}
	switch {
	case len(l.ready) > 0:
		b.queue = append(b.queue, l)
	case l.waiting == nil:
		l.running = false
		delete(b.lanes, l.partition)
	default:
		l.running = false
	}
	b.tell()
}

// tell wakes the feeder, if it waits.
func (b *bulk) tell() {
	select {
	case b.moved <- struct{}{}:
	default:
	}
}

// fail keeps the first error and stops everything.
func (b *bulk) fail(err error) {
	b.mu.Lock()
	if b.err == nil || errors.Is(b.err, context.Canceled) && !errors.Is(err, context.Canceled) {
		b.err = err
	}
	b.mu.Unlock()
	b.stop()
}

// finish sends what is pending, unless something failed, and waits for all that is under way.
func (b *bulk) finish(begin, ctx context.Context) {
	b.mu.Lock()
	for b.waiting.Len() > 0 && begin.Err() == nil {
		b.flush(begin, ctx, b.waiting.Front().Value.(*lane))
	}
	b.mu.Unlock()
	b.running.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && ctx.Err() != nil {
		b.err = ctx.Err()
	}
	b.progress.Elapsed = time.Since(b.started)
}
