package logtail

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
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

	newest   time.Time     // time of the newest entry that was read
	newestAt time.Duration // when a Poll first found that entry, by Log.uptime
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
		return nil, errs.Wiringf(op, l.Table().Name(), "FollowOptions.Interval is %v; it must be 0 (meaning 1s) or more", options.Interval)
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
			return nil, errs.InvalidIn(op, l.Table().Name(), "%w", err)
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
		began, passed := f.log.now(), f.log.uptime() // before the read: an entry that arrives during it is not older than began minus Window
		stretches, err := f.survey(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		complete := f.completeBefore(began, passed)
		for _, s := range slices.Backward(stretches) {
			if s.to.IsZero() {
				s.to = complete
			} else if s.entries, err = collect(f.log.Between(ctx, f.partition, s.from, s.to)); err != nil {
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

// completeBefore returns the time before which no entry can arrive any more: Window before the newest entry or before now,
// whichever is earlier. By the clock alone, a follower whose clock is fast would miss entries.
//
// If the newest entry has been the newest for a whole window by the monotonic clock, everything older has arrived. Then a
// follower of an idle log does not read the last window's entries again with each Poll.
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

// deliver yields the entries that were not yielded before. It marks each as yielded first, so that a Cursor taken in the loop
// body is after it.
func (f *Follower[T]) deliver(newestFirst []*T, yield func(*T, error) bool) bool {
	for _, v := range slices.Backward(newestFirst) {
		row, at, err := f.keyed(v)
		if err != nil {
			yield(nil, err)
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

// keyed returns an entry's row key, and the time in it. A query selects the key whatever its projection.
func (f *Follower[T]) keyed(v *T) (row string, at time.Time, err error) {
	row = f.log.host.MetaOf(v).Key().Row
	if err = compoundkey.Parse(row, f.log.schema.Prefix, compoundkey.ToTimeDesc(&at), compoundkey.ToString(nil)); err != nil {
		err = f.garbled(row, fmt.Errorf("the row key has the prefix of this log and is not that of an entry; give the row another key, or delete it: %w", err))
	}
	return row, at, err
}

func (f *Follower[T]) garbled(row string, err error) error {
	return &tables.Error{Op: "Poll", Table: f.log.Table().Name(), Key: tables.Key{Partition: f.partition, Row: row}, Kind: tables.ErrGarbled, Err: err}
}

// stretch is a part of the entries to yield, at most about 1,000: those with from <= LoggedAt < to. If to is zero, there is no
// upper bound, and entries has them already.
type stretch[T any] struct {
	from, to time.Time
	entries  []*T // newest first
}

// survey divides the entries after the horizon into stretches, newest first. It reads the newest page of entries.
// There may be any number of older entries, and they must be yielded in the reverse of the stored order. So survey
// reads only their keys, and keeps a border for each 1,000. Requests: 1 for each page.
func (f *Follower[T]) survey(ctx context.Context) ([]stretch[T], error) {
	query := f.log.Query(f.partition, f.place.horizon, time.Time{}).PageSize(f.log.page)
	var page tables.Page[T]
	for first := true; len(page.Items) == 0 && (first || page.Next != ""); first = false { // the service may send empty pages
		var err error
		if page, err = query.Page(ctx, page.Next); err != nil {
			return nil, err
		}
		if len(page.Problems) > 0 {
			return nil, page.Problems[0] // to skip the entry would mean never to yield it
		}
	}
	if len(page.Items) == 0 {
		return nil, nil
	}
	times, err := f.times(page.Items)
	if err != nil {
		return nil, err
	}
	if newest := times[0]; !newest.Equal(f.newest) {
		f.newest, f.newestAt = newest, f.log.uptime()
	}
	if page.Next == "" {
		return []stretch[T]{{from: f.place.horizon, entries: page.Items}}, nil
	}
	// The entries of the page's last tick may continue on the next page, so all of them go to the next stretch.
	last := times[len(times)-1]
	whole := 0
	for whole < len(times) && times[whole].After(last) {
		whole++
	}
	rest, err := f.borders(ctx, last.Add(tick))
	return append([]stretch[T]{{from: last.Add(tick), entries: page.Items[:whole]}}, rest...), err
}

// borders divides the entries from the horizon up to a time into stretches, newest first. It reads only their keys.
func (f *Follower[T]) borders(ctx context.Context, to time.Time) ([]stretch[T], error) {
	var all []stretch[T]
	count, last := 0, to
	for v, err := range f.log.ordered(f.log.Query(f.partition, f.place.horizon, to).Select("LoggedAt").PageSize(f.log.page).All(ctx)) {
		if err != nil {
			return nil, err
		}
		_, at, err := f.keyed(v)
		if err != nil {
			return nil, err
		}
		if count >= f.log.page && at.Before(last) { // a border never divides a tick
			all = append(all, stretch[T]{from: last, to: to})
			count, to = 0, last
		}
		count, last = count+1, at
	}
	return append(all, stretch[T]{from: f.place.horizon, to: to}), nil
}

// times returns the times of entries, and checks that they are newest first.
func (f *Follower[T]) times(entries []*T) ([]time.Time, error) {
	times := make([]time.Time, len(entries))
	for i, v := range entries {
		row, at, err := f.keyed(v)
		if err != nil {
			return nil, err
		}
		if i > 0 && f.log.NewestFirst(entries[i-1], v) >= 0 {
			return nil, f.garbled(row, errUnordered)
		}
		times[i] = at
	}
	return times, nil
}
