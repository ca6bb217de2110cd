package logtail

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FollowOptions are the options of a Follower; nil is the same as the zero value.
type FollowOptions struct {
	// From is the time from which a follower without a cursor reads; zero means the log's oldest entry.
	From time.Time
	// Interval is how long All waits after a Poll that found nothing (default 1 s), with jitter.
	Interval time.Duration
}

// Follower yields the entries of one partition as they arrive, each once. Use it from one goroutine only.
type Follower[T any] struct {
	log       *Log[T]
	partition string
	interval  time.Duration
	place     place

	newest   time.Time // newest is the time of the newest entry; the next field is since when it has been the newest, by this process's monotonic time
	newestAt time.Duration
}

// Follower starts to follow a partition at a cursor, or, if cursor is "", where the options say. It makes no
// request. It returns an error of kind tables.ErrInvalid for a damaged cursor and for a cursor of another log
// or partition.
func (l *Log[T]) Follower(partition, cursor string, options *FollowOptions) (*Follower[T], error) {
	const op = "Follower"
	if options == nil {
		options = &FollowOptions{}
	}
	if options.Interval < 0 {
		return nil, tables.Wiringf(op, l.Table().Name(), "FollowOptions.Interval is %v; it must be 0 (meaning 1s) or more", options.Interval)
	}
	f := &Follower[T]{log: l, partition: partition, interval: options.Interval}
	f.interval = cmp.Or(f.interval, time.Second)
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

// Cursor returns the follower's position after all entries that it has yielded, including the one that a loop body is
// handling. A Follower that is made with it, in this process or another, continues from there. If you store the cursor
// together with the result of handling an entry, each entry takes effect exactly once.
func (f *Follower[T]) Cursor() string { return f.place.encode(f.log.fingerprint(f.partition)) }

// All calls Poll repeatedly and yields its entries, until the context ends or an error occurs. The error is
// yielded once, as the last element; call All again to continue.
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
			if err := backoff.Sleep(ctx, f.interval/2+backoff.Jitter(f.interval)); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Poll yields the present entries that were not yielded before, oldest first, and returns. An error is
// yielded once, as the last element; the next Poll continues after the last yielded entry. Requests: 1 for up
// to 1,000 entries since the start of the window; 2 for each 1,000 if there are more.
func (f *Follower[T]) Poll(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		began, passed := f.log.now(), f.log.uptime() // taken before the read: all entries that are older than this time by a whole window are already visible
		stretches, err := f.survey(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		complete := f.completeBefore(began, passed)
		for _, s := range slices.Backward(stretches) {
			if s.to.IsZero() {
				s.to = complete
			} else if s.entries, err = f.read(ctx, s); err != nil {
				yield(nil, err)
				return
			}
			if !f.deliver(s.entries, yield) {
				return
			}
			if s.to.After(complete) {
				s.to = complete
			}
			f.place.moveHorizon(s.to)
		}
	}
}

// completeBefore returns the time before which no entry can arrive any more: it subtracts Window from the
// time of the newest entry or from the clock, whichever is earlier. With the clock alone, a fast clock would
// miss entries; a slow clock, or an entry with a time in the future, only delays the result. If the newest
// entry has not changed for a whole window, everything older has arrived, so that an idle log is not read
// again and again. That window is measured by monotonic time, since the clock may be set.
func (f *Follower[T]) completeBefore(now time.Time, passed time.Duration) time.Time {
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

// deliver yields the entries that were not yielded before. It marks an entry as yielded before the loop body
// runs, so that a Cursor taken in the loop body is after that entry.
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
