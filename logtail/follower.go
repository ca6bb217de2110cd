package logtail

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FollowOptions are the options of a Follower; nil is the same as the zero value.
type FollowOptions struct {
	// From is where a follower without a cursor begins; zero is the log's oldest entry.
	From time.Time
	// Interval is how long All waits between two looks that found nothing, 1 s for 0, with jitter.
	Interval time.Duration
}

// Follower yields the entries of one partition as they come, each once. It belongs to one goroutine.
type Follower[T any] struct {
	log       *Log[T]
	partition string
	interval  time.Duration
	place     place

	newest   time.Time // the time of the newest entry, and since when it has been that, by the time that this process has seen pass
	newestAt time.Duration
}

// Follower begins to follow a partition where a cursor says, or where the options do for "". It makes no request. A cursor of
// another log or partition, or one that was damaged, is tables.ErrInvalid.
func (l *Log[T]) Follower(partition, cursor string, options *FollowOptions) (*Follower[T], error) {
	const op = "Follower"
	if options == nil {
		options = &FollowOptions{}
	}
	if options.Interval < 0 {
		return nil, tables.InvalidIn(op, l.Table().Name(), "an interval of %v", options.Interval)
	}
	f := &Follower[T]{log: l, partition: partition, interval: options.Interval}
	if f.interval == 0 {
		f.interval = time.Second
	}
	if _, err := l.Query(partition, options.From, time.Time{}).Plan(); err != nil {
		return nil, err
	}
	f.place = place{horizon: ceil(options.From), seen: map[digest]time.Time{}}
	if cursor != "" {
		var err error
		if f.place, err = decodePlace(cursor, l.fingerprint(partition)); err != nil {
			return nil, tables.InvalidIn(op, l.Table().Name(), "%w", err)
		}
	}
	return f, nil
}

// Cursor says where the follower is, behind all that it has yielded, the entry that a loop is about included. A Follower that
// is made with it, in this process or another, goes on from there. Where what is done with an entry and the cursor are
// stored together, each entry counts exactly once.
func (f *Follower[T]) Cursor() string { return f.place.encode(f.log.fingerprint(f.partition)) }

// All yields what Poll does, again and again, until the context ends or there is an error, which comes once, last. It can be
// called again then, and goes on.
func (f *Follower[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			found := false
			for v, err := range f.Poll(ctx) {
				found = true
				if !yield(v, err) || err != nil {
					return
				}
			}
			if found {
				continue
			}
			timer := time.NewTimer(f.interval/2 + backoff.Jitter(f.interval))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// Poll yields the entries that are there and were not yielded before, oldest first, and ends. An error comes once, last; the
// next Poll goes on behind what was yielded. Requests: 1 for each 1,000 entries since the beginning of the window; 2 where
// that is more than one page.
func (f *Follower[T]) Poll(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		began, passed := f.log.now(), f.log.uptime() // before anything is read: what is older by a window is visible
		stretches, err := f.survey(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		settled := f.settled(began, passed)
		for _, s := range slices.Backward(stretches) {
			if s.to.IsZero() {
				s.to = settled
			} else if s.entries, err = f.read(ctx, s); err != nil {
				yield(nil, err)
				return
			}
			if !f.deliver(s.entries, yield) {
				return
			}
			if s.to.After(settled) {
				s.to = settled
			}
			f.place.settle(s.to)
		}
	}
}

// settled is the time up to which nothing more can come. That is the newest entry's less the window, and not the clock's:
// a clock that is fast would let entries be missed. A clock that is slow, or an entry that is ahead of all clocks, does no harm
// either, since the earlier one of clock and entry counts. When the newest entry has been so for a whole window, all that is
// older has come; so an idle log is not read again and again. That window is not measured by the clock, which may be set ahead.
func (f *Follower[T]) settled(now time.Time, passed time.Duration) time.Time {
	window := f.log.schema.Window
	horizon := earlier(f.newest, now).Add(-window)
	if !f.newest.IsZero() && passed-f.newestAt >= window {
		horizon = earlier(f.newest, now.Add(-window))
	}
	return horizon
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// deliver yields what was not yielded before. An entry counts as yielded before the loop sees it, so that a Cursor taken there is
// behind it.
func (f *Follower[T]) deliver(newestFirst []*T, yield func(*T, error) bool) bool {
	for _, v := range slices.Backward(newestFirst) {
		row := f.log.host.MetaOf(v).Key().Row
		at, err := f.log.timeOf(row)
		if err != nil {
			yield(nil, f.garbled(row, err))
			return false
		}
		d := digestOf(row)
		if _, yielded := f.place.seen[d]; yielded || at.Before(f.place.horizon) {
			continue
		}
		f.place.seen[d] = at
		if !yield(v, nil) {
			return false
		}
	}
	return true
}

func (f *Follower[T]) garbled(row string, err error) error {
	return &tables.Error{Op: "Poll", Table: f.log.Table().Name(), Key: tables.Key{Partition: f.partition, Row: row}, Kind: tables.ErrGarbled, Err: err}
}
