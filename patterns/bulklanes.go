package patterns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// maxPendingRows bounds the rows that wait for their transaction to fill.
const maxPendingRows = 20_000

// batchOverhead is what an operation adds to a transaction beside its body: headers and boundaries, and its address
// at its longest escape.
const batchOverhead = 512

var errNotInBulk = errors.New("a pattern with effects outside of the entity's own rows cannot be written in bulk")

// unit is the rows of one entity, which stay in one transaction.
type unit struct {
	sequence   int64
	operations []operation
	bytes      int
	settle     func(etag azcore.ETag)
}

// lane is one partition's units: those waiting for a transaction to fill, and the transactions waiting for their turn.
type lane struct {
	partition string
	pending   []*unit
	rows      int
	bytes     int
	keys      map[string]struct{}
	ready     [][]*unit
	running   bool
}

// bulk is one bulk write. Everything below mu is shared with the lanes' goroutines.
type bulk struct {
	table   *Table
	op      string
	options BulkOptions
	slots   chan struct{} // transactions under way
	backlog chan struct{} // transactions full and waiting
	running sync.WaitGroup
	stop    context.CancelFunc // begins nothing more
	started time.Time
	lanes   map[string]*lane
	pending int // rows, of the feeding goroutine
	scratch []byte

	mu       sync.Mutex
	progress BulkProgress
	finished map[int64]struct{} // units done beyond progress.Resume
	err      error
}

func newBulk(t *Table, op string, options *BulkOptions) *bulk {
	b := &bulk{table: t, op: op, started: time.Now(), lanes: map[string]*lane{}, finished: map[int64]struct{}{}}
	if options != nil {
		b.options = *options
	}
	if b.options.Concurrency <= 0 {
		b.options.Concurrency = defaultConcurrency
	}
	b.slots = make(chan struct{}, b.options.Concurrency)
	b.backlog = make(chan struct{}, 4*b.options.Concurrency)
	b.progress.Resume = b.options.Skip
	return b
}

// add puts a unit into its lane, after what is full was sent on its way.
func (b *bulk) add(begin, ctx context.Context, u *unit) error {
	if err := b.measure(u); err != nil {
		return err
	}
	key := u.operations[0].key
	l := b.lanes[key.Partition]
	if l == nil {
		l = &lane{partition: key.Partition, keys: map[string]struct{}{}}
		b.lanes[key.Partition] = l
	}
	if l.rows+len(u.operations) > MaxTransactionOperations || l.bytes+u.bytes > MaxTransactionSize-1024 || l.holds(u) {
		if err := b.flush(begin, ctx, l); err != nil {
			return err
		}
	}
	if b.pending+len(u.operations) > maxPendingRows {
		if err := b.flush(begin, ctx, b.fullest()); err != nil {
			return err
		}
	}
	l.pending = append(l.pending, u)
	l.rows += len(u.operations)
	l.bytes += u.bytes
	b.pending += len(u.operations)
	for i := range u.operations {
		l.keys[u.operations[i].key.Row] = struct{}{}
	}
	if l.rows == MaxTransactionOperations {
		return b.flush(begin, ctx, l)
	}
	return nil
}

// measure checks a unit as it would be sent alone, so that a bad entity fails by itself and not with its neighbours.
func (b *bulk) measure(u *unit) error {
	if e := checkTransaction(u.operations); e != nil {
		return e
	}
	for i := range u.operations {
		o := &u.operations[i]
		row, size, err := o.row()
		if err != nil {
			e := invalid(b.op, err)
			e.Key, e.Pattern = loggable(o.key), o.pattern
			return e
		}
		b.scratch, _ = appendRow(b.scratch[:0], o.key, row, size, anyWriteID)
		u.bytes += len(b.scratch) + batchOverhead + len(b.table.account.endpoints.Table) + 3*(len(o.key.Partition)+len(o.key.Row))
	}
	return nil
}

const anyWriteID = "00000000000000000000000000" // as long as every one

func (l *lane) holds(u *unit) bool {
	return slices.ContainsFunc(u.operations, func(o operation) bool {
		_, ok := l.keys[o.key.Row]
		return ok
	})
}

func (b *bulk) fullest() *lane {
	var fullest *lane
	for _, l := range b.lanes {
		if fullest == nil || l.rows > fullest.rows {
			fullest = l
		}
	}
	return fullest
}

// flush makes the lane's pending units a transaction and starts the lane, once there is room.
func (b *bulk) flush(begin, ctx context.Context, l *lane) error {
	if len(l.pending) == 0 {
		return nil
	}
	select {
	case b.backlog <- struct{}{}:
	case <-begin.Done():
		return begin.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.ready = append(l.ready, l.pending)
	b.pending -= l.rows
	l.pending, l.rows, l.bytes = nil, 0, 0
	clear(l.keys)
	if !l.running {
		l.running = true
		b.running.Go(func() { b.drain(begin, ctx, l) })
	}
	return nil
}

// drain commits the lane's transactions one after the other until none is ready.
func (b *bulk) drain(begin, ctx context.Context, l *lane) {
	for {
		b.mu.Lock()
		if len(l.ready) == 0 {
			l.running = false
			b.mu.Unlock()
			return
		}
		units := l.ready[0]
		l.ready = l.ready[1:]
		b.mu.Unlock()
		<-b.backlog
		select {
		case b.slots <- struct{}{}:
			if begin.Err() == nil {
				if err := b.commit(ctx, units); err != nil {
					b.fail(err)
				}
			}
			<-b.slots
		case <-begin.Done():
		}
	}
}

// commit writes one transaction, without the units that turn out to be there.
func (b *bulk) commit(ctx context.Context, units []*unit) error {
	for len(units) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var operations []operation
		for _, u := range units {
			operations = append(operations, u.operations...)
		}
		etags, err := b.table.commit(ctx, b.op, operations)
		if err == nil {
			b.done(units, etags)
			return nil
		}
		taken := errors.Is(err, ErrExists) || errors.Is(err, ErrDuplicate)
		if !b.options.SkipExisting || !taken || errors.Is(err, ErrUnknownOutcome) {
			return err
		}
		left, checkErr := b.withoutExisting(ctx, units)
		if checkErr != nil {
			return checkErr
		}
		if len(left) == len(units) {
			return err
		}
		units = left
	}
	return nil
}

// withoutExisting leaves out the units whose entity is there.
func (b *bulk) withoutExisting(ctx context.Context, units []*unit) ([]*unit, error) {
	there := make([]bool, len(units))
	keys := make([]Key, len(units))
	index := make(map[Key]int, len(units))
	for i, u := range units {
		keys[i] = u.operations[0].key
		index[keys[i]] = i
	}
	for row, err := range b.table.rawRows().getMany(ctx, keys, &ParallelOptions[storedRow]{Concurrency: 4}) {
		if err != nil {
			return nil, err
		}
		there[index[row.key]] = true
	}
	var left, existing []*unit
	for i, u := range units {
		if there[i] {
			existing = append(existing, u)
		} else {
			left = append(left, u)
		}
	}
	b.met(existing)
	return left, nil
}

// met counts units that were there.
func (b *bulk) met(units []*unit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress.Existing += int64(len(units))
	b.advance(units)
}

// done counts a committed transaction and reports it.
func (b *bulk) done(units []*unit, etags []azcore.ETag) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := 0
	for _, u := range units {
		u.settle(etags[at])
		at += len(u.operations)
	}
	b.progress.Entities += int64(len(units))
	b.progress.Rows += int64(at)
	b.progress.Transactions++
	b.advance(units)
	b.progress.Elapsed = time.Since(b.started)
	if b.options.Progress != nil {
		b.options.Progress(b.progress)
	}
}

// advance moves Resume over every unit that has nothing undone before it.
func (b *bulk) advance(units []*unit) {
	for _, u := range units {
		b.finished[u.sequence] = struct{}{}
	}
	for {
		if _, ok := b.finished[b.progress.Resume+1]; !ok {
			return
		}
		b.progress.Resume++
		delete(b.finished, b.progress.Resume)
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
	for _, l := range b.lanes {
		if begin.Err() != nil {
			break
		}
		if err := b.flush(begin, ctx, l); err != nil {
			break
		}
	}
	b.running.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && ctx.Err() != nil {
		b.err = ctx.Err()
	}
	b.progress.Elapsed = time.Since(b.started)
}
