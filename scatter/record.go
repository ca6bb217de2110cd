package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Epoch is a range of row keys that are spread over the same number of partitions, up to the next Epoch.
type Epoch struct {
	// Time is where the epoch begins, with ByTime and ByTimeDesc; the first epoch has no lower bound.
	Time time.Time
	// Number is where the epoch begins, with ByNumber.
	Number int64
	// Partitions is n, the number of partitions.
	Partitions int
}

type epoch struct {
	from int64
	n    int
}

// layout is the content of the record. It never changes, since goroutines share it.
type layout struct {
	horizon int64
	epochs  []epoch // at least one; the first begins at 0
}

const (
	recordVersion = 1
	maxEpochs     = 1000
)

// record is the row that stores a layout.
type record struct {
	tables.Meta
	PartitionKey string
	RowKey       string
	Version      int32
	Order        string
	Horizon      int64
	Epochs       string
}

// covers reports whether the position is below the layout's horizon.
func (l *layout) covers(position int64) bool { return l != nil && position < l.horizon }

// partitions returns the n at a position, which the layout must cover.
func (l *layout) partitions(position int64) int {
	i, found := slices.BinarySearchFunc(l.epochs, position, func(e epoch, p int64) int { return cmp.Compare(e.from, p) })
	if !found {
		i--
	}
	return l.epochs[i].n
}

// most returns the largest number of partitions that applies within a span.
func (l *layout) most(o Order, span compoundkey.Span) int {
	n := 0
	for i, e := range l.epochs {
		end := l.horizon
		if i+1 < len(l.epochs) {
			end = l.epochs[i+1].from
		}
		if o.overlaps(span, e.from, end) {
			n = max(n, e.n)
		}
	}
	return n
}

// resized returns the layout with another n from the horizon on, or nil if that n already applies.
func (l *layout) resized(n int) *layout {
	if l.epochs[len(l.epochs)-1].n == n {
		return nil
	}
	next := &layout{horizon: l.horizon}
	for _, e := range l.epochs {
		if e.from < l.horizon { // an epoch that begins at the horizon has no entity yet: the new one replaces it
			next.epochs = append(next.epochs, e)
		}
	}
	if last := len(next.epochs); last == 0 || next.epochs[last-1].n != n {
		next.epochs = append(next.epochs, epoch{l.horizon, n})
	}
	return next
}

func (l *layout) store(r *record, o Order) {
	lines := make([]string, len(l.epochs))
	for i, e := range l.epochs {
		lines[i] = fmt.Sprintf("%d %d", e.from, e.n)
	}
	r.Version, r.Order, r.Horizon, r.Epochs = recordVersion, o.name, l.horizon, strings.Join(lines, "\n")
}

var errOtherOrder = errors.New("the table's record was written with another Order; use the same Order in all programs")

func (r *record) read(o Order) (*layout, error) {
	if r.Version != recordVersion {
		return nil, fmt.Errorf("the record has version %d, and this build reads version %d; use a newer build", r.Version, recordVersion)
	}
	if r.Order != o.name {
		return nil, fmt.Errorf("%w: the record has Order %q, and this program has %q", errOtherOrder, r.Order, o.name)
	}
	l := &layout{horizon: r.Horizon}
	last := int64(-1)
	for line := range strings.SplitSeq(r.Epochs, "\n") {
		from, n, _ := strings.Cut(line, " ")
		position, err1 := strconv.ParseInt(from, 10, 64)
		partitions, err2 := strconv.Atoi(n)
		if err1 != nil || err2 != nil || position <= last || partitions < 1 || partitions > MaxPartitions {
			return nil, fmt.Errorf("line %d of the record's Epochs is malformed; restore the record from a backup", len(l.epochs))
		}
		l.epochs, last = append(l.epochs, epoch{position, partitions}), position
	}
	if l.epochs[0].from != 0 || last > l.horizon || l.horizon > o.limit {
		return nil, fmt.Errorf("the record's epochs begin between %d and %d, and its horizon is %d; they must begin at 0 and end below the horizon, so restore the record from a backup", l.epochs[0].from, last, l.horizon)
	}
	return l, nil
}

func (o Order) public(e epoch) Epoch {
	if o.isTime() {
		return Epoch{Time: o.time(e.from), Partitions: e.n}
	}
	return Epoch{Number: e.from, Partitions: e.n}
}

func (s *Spread[T]) recordKey() tables.Key {
	return tables.Key{Partition: compoundkey.Join("scatter", compoundkey.String(s.name)), Row: "epochs"}
}

// load reads the record and its layout. Both are nil if there is no record, and so no entity either.
func (s *Spread[T]) load(ctx context.Context, op string) (*record, *layout, error) {
	r, err := s.records.Get(ctx, s.recordKey())
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := r.read(s.order)
	switch {
	case errors.Is(err, errOtherOrder):
		return nil, nil, invalid(op, s.Repository().Table(), err)
	case err != nil:
		return nil, nil, failure(op, s.Repository().Table(), tables.ErrGarbled, err)
	}
	s.learn(l)
	return r, l, nil
}

// learn keeps a layout for later calls, unless the known one has the same or a higher horizon.
func (s *Spread[T]) learn(l *layout) {
	for {
		known := s.known.Load()
		if known != nil && known.horizon >= l.horizon || s.known.CompareAndSwap(known, l) {
			return
		}
	}
}

// find returns a layout that covers the position, or nil if no entity can exist there. Requests: 0, or 1 if the position is at
// or above the known horizon.
func (s *Spread[T]) find(ctx context.Context, op string, position int64) (*layout, error) {
	if l := s.known.Load(); l.covers(position) {
		return l, nil
	}
	if _, l, err := s.load(ctx, op); err != nil || l.covers(position) {
		return l, err
	}
	return nil, nil
}

// reach moves the horizon above the position, if it is not there yet.
func (s *Spread[T]) reach(ctx context.Context, op string, position int64) error {
	if s.known.Load().covers(position) {
		return nil
	}
	// One goroutine moves the horizon, and the others use its result.
	select {
	case s.moving <- struct{}{}:
		defer func() { <-s.moving }()
	case <-ctx.Done():
		return failure(op, s.Repository().Table(), nil, ctx.Err())
	}
	if s.known.Load().covers(position) {
		return nil
	}
	_, err := s.change(ctx, op, func(l *layout) (*layout, error) {
		if l.covers(position) {
			return nil, nil
		}
		if ahead := s.order.time(position).Sub(s.now()); s.order.isTime() && ahead > s.ahead {
			return nil, fmt.Errorf("the entity's time is %v ahead of the clock, and Options.Ahead allows %v; check the entity's time and the clock", ahead, s.ahead)
		}
		next := &layout{horizon: s.order.behind(position), epochs: []epoch{{0, s.first}}}
		if l != nil {
			next.epochs = l.epochs
		}
		return next, nil
	})
	return err
}

// change writes the layout that edit returns to the record, and retries on conflict. edit gets nil if there is no record, and
// returns nil to leave it unchanged; its error becomes tables.ErrInvalid. After an unknown outcome, edit gets the record as it
// is then, and sees whether the change was made.
func (s *Spread[T]) change(ctx context.Context, op string, edit func(*layout) (*layout, error)) (*layout, error) {
	var last error
	for attempt := range s.attempts {
		if attempt > 0 {
			if err := backoff.Wait(ctx, attempt-1); err != nil {
				return nil, failure(op, s.Repository().Table(), nil, errors.Join(err, last))
			}
		}
		r, l, err := s.load(ctx, op)
		if err != nil {
			return nil, err
		}
		next, err := edit(l)
		if err != nil {
			return nil, invalid(op, s.Repository().Table(), err)
		}
		if next == nil {
			return l, nil
		}
		if len(next.epochs) > maxEpochs {
			return nil, failure(op, s.Repository().Table(), tables.ErrTooLarge, fmt.Errorf("the record would have %d epochs, and it holds at most %d; change the number of partitions less often", len(next.epochs), maxEpochs))
		}
		switch last = s.write(ctx, r, next); {
		case last == nil:
			s.learn(next)
			return next, nil
		case !isConflict(last):
			return nil, last
		}
	}
	return nil, failure(op, s.Repository().Table(), tables.ErrConflict, fmt.Errorf("concurrent writers changed the record in each of %d attempts; try again: %w", s.attempts, last))
}

// write stores a layout under the ETag with which r was read; for nil it inserts a record.
func (s *Spread[T]) write(ctx context.Context, r *record, next *layout) error {
	if r == nil {
		key := s.recordKey()
		r = &record{PartitionKey: key.Partition, RowKey: key.Row}
		next.store(r, s.order)
		return s.records.Insert(ctx, r)
	}
	next.store(r, s.order)
	return s.records.Replace(ctx, r)
}

// isConflict reports whether the record must be read again after a failed write.
func isConflict(err error) bool {
	kinds := []error{tables.ErrUnknownOutcome, tables.ErrConflict, tables.ErrExists, tables.ErrNotFound}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// Resize spreads entities above the horizon over n partitions, and returns the Epoch in which that applies.
// Stored entities stay where they are. Before the horizon moves, another Resize replaces this one. Requests: 2,
// and 2 for each concurrent writer.
func (s *Spread[T]) Resize(ctx context.Context, n int) (Epoch, error) {
	const op = "Resize"
	if err := checkPartitions(n); err != nil {
		return Epoch{}, invalid(op, s.Repository().Table(), err)
	}
	l, err := s.change(ctx, op, func(l *layout) (*layout, error) {
		if l == nil {
			return &layout{epochs: []epoch{{0, n}}}, nil
		}
		return l.resized(n), nil
	})
	if err != nil {
		return Epoch{}, err
	}
	return s.order.public(l.epochs[len(l.epochs)-1]), nil
}

// Epochs returns the epochs, oldest first; none before the first write. The last one has no end. Requests: 1.
func (s *Spread[T]) Epochs(ctx context.Context) ([]Epoch, error) {
	_, l, err := s.load(ctx, "Epochs")
	if l == nil || err != nil {
		return nil, err
	}
	all := make([]Epoch, len(l.epochs))
	for i, e := range l.epochs {
		all[i] = s.order.public(e)
	}
	return all, nil
}

// Partitions returns the keys of all partitions that can hold entities now. Requests: 1.
func (s *Spread[T]) Partitions(ctx context.Context) ([]string, error) {
	_, l, err := s.load(ctx, "Partitions")
	if l == nil || err != nil {
		return nil, err
	}
	return s.partitions(l.most(s.order, compoundkey.All().Under(s.order.prefix))), nil
}

func (s *Spread[T]) partitions(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = s.partition(i)
	}
	return keys
}

// Sync reads the record, so that the Repository accepts every entity that is stored now. Call it before the
// Repository's Repair and Rebuild, which write entities that other programs have inserted. Requests: 1.
func (s *Spread[T]) Sync(ctx context.Context) error {
	_, _, err := s.load(ctx, "Sync")
	return err
}
