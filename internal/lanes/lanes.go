// Package lanes schedules a bulk write. It takes units, each a few rows of one partition, packs the units of a partition into transactions,
// and commits transactions of several partitions concurrently, but only one at a time for each partition. It holds a bounded number of
// rows, and knows up to which position of the sequence every unit is done. The caller decides what a unit is and how a transaction is
// committed.
package lanes

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// heldRows limits the rows that a Scheduler holds: those that wait for their transaction to fill, are ready, or are being committed.
const heldRows = 20_000

// Unit is rows of one partition that stay in one transaction.
type Unit[T any] struct {
	Sequence  int64 // the unit's position in the sequence of values, from 1
	Partition string
	Rows      []string // row keys; units that share a row key are in different transactions
	More      int      // number of rows besides Rows
	Bytes     int      // number of bytes that the unit adds to a transaction
	Value     T        // set by the caller
}

// weight is how many rows the unit adds to a transaction.
func (u *Unit[T]) weight() int { return len(u.Rows) + u.More }

// Options are the options of a Scheduler.
type Options[T any] struct {
	Concurrency int   // maximum number of transactions that are committed at once
	Skip        int64 // number of values at the beginning of the sequence that Run leaves out
	MaxRows     int   // maximum number of rows of a transaction
	MaxBytes    int   // maximum number of bytes of a transaction
	// Commit commits one transaction, and calls Done for the units that are done. An error stops the Scheduler.
	Commit func(ctx context.Context, units []*Unit[T]) error
}

// lane is one partition's units: those waiting for a transaction to fill, and the transactions that are ready. A partition has a lane
// only while it has units.
type lane[T any] struct {
	partition string
	pending   []*Unit[T]
	rows      int // rows of the pending units
	bytes     int
	keys      map[string]struct{}
	waiting   *list.Element // the lane's element of Scheduler.waiting, nil without pending units
	ready     [][]*Unit[T]
	running   bool // the lane is in Scheduler.queue, or one of its transactions is being committed
}

// Scheduler is one bulk write. Everything below mu is shared with the workers.
type Scheduler[T any] struct {
	options Options[T]
	ctx     context.Context // of commits
	begin   context.Context // ends at a failure, so that no further transaction begins
	stop    context.CancelFunc
	running sync.WaitGroup
	moved   chan struct{} // wakes add when a worker takes a transaction or has committed one

	mu       sync.Mutex
	lanes    map[string]*lane[T]
	waiting  *list.List // lanes with pending units; the first has waited longest
	queue    []*lane[T] // lanes with a ready transaction and without a transaction that is being committed
	workers  int
	rows     int // rows of all units that are not done
	ready    int // number of ready transactions
	resume   int64
	finished map[int64]struct{} // sequence numbers of units that are done although an earlier unit is not
	err      error
}

// New returns a Scheduler, which can Run once. After a failure no further transaction begins; those that are being
// committed continue under ctx, since cancelling them would leave their outcome unknown.
func New[T any](ctx context.Context, options Options[T]) *Scheduler[T] {
	s := &Scheduler[T]{
		options: options, ctx: ctx, moved: make(chan struct{}, 1), resume: options.Skip,
		lanes: map[string]*lane[T]{}, waiting: list.New(), finished: map[int64]struct{}{},
	}
	s.begin, s.stop = context.WithCancel(ctx)
	return s
}

// Run calls plan for each value, schedules the resulting units, and waits for all transactions that are being
// committed. It returns the first error of values, of plan or of a commit. If plan returns a nil unit, it must have
// called Done for the value.
func Run[V, T any](s *Scheduler[T], values iter.Seq2[V, error], plan func(v V, sequence int64) (*Unit[T], error)) error {
	defer s.stop()
	var sequence int64
	for v, err := range values {
		if err != nil {
			s.fail(err)
			break
		}
		sequence++
		if sequence <= s.options.Skip {
			continue
		}
		u, err := plan(v, sequence)
		if err == nil && u != nil {
			u.Sequence = sequence
			err = s.add(u)
		}
		if err != nil {
			s.fail(err)
			break
		}
	}
	return s.finish()
}

// add waits for room, puts a unit into its lane, and makes a transaction of a lane that is full.
func (s *Scheduler[T]) add(u *Unit[T]) error {
	if err := s.makeRoom(u.weight()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[u.Partition]
	if l == nil {
		l = &lane[T]{partition: u.Partition, keys: map[string]struct{}{}}
		s.lanes[u.Partition] = l
	}
	if l.rows+u.weight() > s.options.MaxRows || l.bytes+u.Bytes > s.options.MaxBytes || l.holds(u) {
		s.flush(l)
	}
	if l.waiting == nil {
		l.waiting = s.waiting.PushBack(l)
	}
	l.pending = append(l.pending, u)
	l.rows += u.weight()
	l.bytes += u.Bytes
	s.rows += u.weight()
	for _, row := range u.Rows {
		l.keys[row] = struct{}{}
	}
	if l.rows >= s.options.MaxRows {
		s.flush(l)
	}
	s.flushStragglers(u.Sequence)
	return nil
}

// flushStragglers flushes lanes whose oldest unit is far behind in the sequence. Without it these lanes would wait for
// the end of the sequence, and Scheduler.finished would grow without limit. It is called under mu.
func (s *Scheduler[T]) flushStragglers(sequence int64) {
	for s.waiting.Len() > 0 {
		oldest := s.waiting.Front().Value.(*lane[T])
		if oldest.pending[0].Sequence+heldRows > sequence {
			return
		}
		s.flush(oldest)
	}
}

// makeRoom waits until the Scheduler may hold this many more rows. If there is no room and fewer than Concurrency
// transactions are ready, it flushes the lanes that have waited longest, since without room they cannot fill.
func (s *Scheduler[T]) makeRoom(rows int) error {
	for {
		s.mu.Lock()
		full := s.rows+rows > heldRows
		for full && s.ready < s.options.Concurrency && s.waiting.Len() > 0 {
			s.flush(s.waiting.Front().Value.(*lane[T]))
		}
		full = full || s.ready >= 4*s.options.Concurrency
		s.mu.Unlock()
		if !full {
			return s.begin.Err()
		}
		select {
		case <-s.moved:
		case <-s.begin.Done():
			return s.begin.Err()
		}
	}
}

func (l *lane[T]) holds(u *Unit[T]) bool {
	return slices.ContainsFunc(u.Rows, func(row string) bool {
		_, ok := l.keys[row]
		return ok
	})
}

// flush makes a transaction of the lane's pending units, and starts a worker for it if necessary. It is called under mu.
func (s *Scheduler[T]) flush(l *lane[T]) {
	if l.waiting == nil {
		return
	}
	s.waiting.Remove(l.waiting)
	l.ready = append(l.ready, l.pending)
	l.waiting, l.pending, l.rows, l.bytes = nil, nil, 0, 0
	clear(l.keys)
	s.ready++
	if l.running {
		return
	}
	l.running = true
	s.queue = append(s.queue, l)
	if s.workers < s.options.Concurrency {
		s.workers++
		s.running.Go(s.work)
	}
}

// work commits transactions, one of each lane in turn, until none is ready.
func (s *Scheduler[T]) work() {
	for {
		l, units := s.take()
		if l == nil {
			return
		}
		if s.begin.Err() == nil {
			if err := s.options.Commit(s.ctx, units); err != nil {
				s.fail(err)
			}
		}
		s.leave(l, units)
	}
}

// take returns a lane and its next transaction. If no transaction is ready, both are nil, and the worker must end.
func (s *Scheduler[T]) take() (*lane[T], []*Unit[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.workers--
		return nil, nil
	}
	l := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	units := l.ready[0]
	l.ready = l.ready[1:]
	s.ready--
	s.tell()
	return l, units
}

// leave ends the transaction of a lane. It puts the lane back into the queue if another transaction is ready, and
// removes it if it is empty.
func (s *Scheduler[T]) leave(l *lane[T], units []*Unit[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range units {
		s.rows -= u.weight()
	}
	l.running = len(l.ready) > 0
	switch {
	case l.running:
		s.queue = append(s.queue, l)
	case l.waiting == nil:
		delete(s.lanes, l.partition)
	}
	s.tell()
}

// tell wakes add, if it waits.
func (s *Scheduler[T]) tell() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// fail keeps the first error, but replaces a context.Canceled by a later other error. It lets no further transaction
// begin.
func (s *Scheduler[T]) fail(err error) {
	s.mu.Lock()
	if s.err == nil || errors.Is(s.err, context.Canceled) && !errors.Is(err, context.Canceled) {
		s.err = err
	}
	s.mu.Unlock()
	s.stop()
}

// finish flushes all lanes, unless there was a failure, and waits for all transactions that are being committed.
func (s *Scheduler[T]) finish() error {
	s.mu.Lock()
	for s.waiting.Len() > 0 && s.begin.Err() == nil {
		s.flush(s.waiting.Front().Value.(*lane[T]))
	}
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.ctx.Err() != nil {
		s.err = s.ctx.Err()
	}
	return s.err
}

// Done marks units as done, and calls report with resume, the number of values at the beginning of the sequence that
// are all done. Calls of report do not overlap.
func (s *Scheduler[T]) Done(units []*Unit[T], report func(resume int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range units {
		s.finished[u.Sequence] = struct{}{}
	}
	for {
		if _, ok := s.finished[s.resume+1]; !ok {
			break
		}
		s.resume++
		delete(s.finished, s.resume)
	}
	report(s.resume)
}

// Named returns the index of the unit that has the given change of a transaction, counted from 1, and -1 if no unit has it. changes
// returns how many changes a unit has.
func Named[T any](units []*Unit[T], change int, changes func(T) int) int {
	last := 0
	for i, u := range units {
		if last += changes(u.Value); 0 < change && change <= last {
			return i
		}
	}
	return -1
}
