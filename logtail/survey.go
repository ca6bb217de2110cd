package logtail

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

// stretch is a part of the entries to yield, at most about 1,000: those with from <= LoggedAt < to. If to is
// zero, there is no upper bound and the entries are already read.
type stretch[T any] struct {
	from, to time.Time
	entries  []*T // newest first
}

// survey divides the entries after the horizon into stretches, newest first. If the entries fit into one
// page, it reads them at once. A longer backlog may have any size, and must be yielded in the reverse of the
// stored order. So survey reads only its keys and keeps one border for each 1,000 of them. Requests: 1 for
// each page.
func (f *Follower[T]) survey(ctx context.Context) ([]stretch[T], error) {
	query := f.log.Query(f.partition, f.place.horizon, time.Time{}).PageSize(f.log.page)
	var page tables.Page[T]
	for first := true; len(page.Items) == 0 && (first || page.Next != ""); first = false { // the service may send empty pages
		var err error
		if page, err = query.Page(ctx, page.Next); err != nil {
			return nil, err
		}
		if len(page.Problems) > 0 {
			return nil, page.Problems[0] // an entry that was skipped now would never be yielded
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
	// The page's last tick may continue on the next page: leave it to the next stretch.
	last := times[len(times)-1]
	whole := 0
	for whole < len(times) && times[whole].After(last) {
		whole++
	}
	rest, err := f.borders(ctx, last.Add(tick))
	return append([]stretch[T]{{from: last.Add(tick), entries: page.Items[:whole]}}, rest...), err
}

// borders reads the keys from the horizon up to a time.
func (f *Follower[T]) borders(ctx context.Context, to time.Time) ([]stretch[T], error) {
	var all []stretch[T]
	count, last := 0, to
	for v, err := range f.log.ordered(f.log.Query(f.partition, f.place.horizon, to).Select("LoggedAt").PageSize(f.log.page).All(ctx)) {
		if err != nil {
			return nil, err
		}
		row := f.log.host.MetaOf(v).Key().Row
		at, err := f.log.timeOf(row)
		if err != nil {
			return nil, f.garbled(row, err)
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
		key := f.log.host.MetaOf(v).Key()
		var err error
		if times[i], err = f.log.timeOf(key.Row); err != nil {
			return nil, f.garbled(key.Row, err)
		}
		if i > 0 && f.log.NewestFirst(entries[i-1], v) >= 0 {
			return nil, f.garbled(key.Row, errUnordered)
		}
	}
	return times, nil
}

// read reads a stretch, newest first.
func (f *Follower[T]) read(ctx context.Context, s stretch[T]) ([]*T, error) {
	var entries []*T
	for v, err := range f.log.Between(ctx, f.partition, s.from, s.to) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, v)
	}
	return entries, nil
}
