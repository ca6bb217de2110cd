package logtail

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Latest returns the n newest entries of a partition, newest first, or all if it has fewer. It returns
// tables.ErrInvalid if n is below 1. Requests: 1 for each 1,000 entries returned, whatever the size of the partition.
func (l *Log[T]) Latest(ctx context.Context, partition string, n int) ([]*T, error) {
	if n < 1 {
		return nil, errs.InvalidIn("Latest", l.Table().Name(), "n is %d; it must be at least 1", n)
	}
	return collect(l.ordered(l.Query(partition, time.Time{}, time.Time{}).Top(n).All(ctx)))
}

func collect[T any](entries iter.Seq2[*T, error]) ([]*T, error) {
	all := []*T{}
	for v, err := range entries {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Between yields the entries of a partition with from <= LoggedAt < to, newest first; a zero time means no
// bound. An error is yielded once, as the last element. Requests: 1 for each page of at most 1,000.
func (l *Log[T]) Between(ctx context.Context, partition string, from, to time.Time) iter.Seq2[*T, error] {
	return l.ordered(l.Query(partition, from, to).All(ctx))
}

// Query returns a query of the entries of a partition with from <= LoggedAt < to, to which you can add conditions,
// projections and pages. A zero time means no bound.
func (l *Log[T]) Query(partition string, from, to time.Time) tables.Query[T] {
	return l.repo.Query().Partition(partition).Rows(l.span(from, to))
}

// span returns the range of row keys with from <= LoggedAt < to; the newest entry has the lowest row key.
func (l *Log[T]) span(from, to time.Time) compoundkey.Span {
	newest := lastTick()
	if !to.IsZero() {
		newest = ceil(to).Add(-tick)
	}
	return compoundkey.Through(compoundkey.TimeDesc(newest), compoundkey.TimeDesc(ceil(from))).Under(l.schema.Prefix)
}

var errUnordered = errors.New("the response is not in the order of row keys, so the newest entries are unknown; repeat the operation, and check any proxy before the service")

// ordered yields entries up to the first one that is not in the order of keys, and then an error: without that order, the first
// entries are not the newest.
func (l *Log[T]) ordered(all iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		last := ""
		for v, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			key := l.host.MetaOf(v).Key()
			if last != "" && compoundkey.Compare(last, key.Row) >= 0 {
				yield(nil, &tables.Error{Op: "Query", Table: l.Table().Name(), Key: key, Kind: tables.ErrGarbled, Err: errUnordered})
				return
			}
			last = key.Row
			if !yield(v, nil) {
				return
			}
		}
	}
}

const tick = 100 * time.Nanosecond

// lastTick is .NET's DateTime.MaxValue, whose inverted ticks are zero.
func lastTick() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC) }

// InvertedTicks returns the guide's key for a time: 19 digits that sort newest first. The time must be in the
// years 1 to 9999 and a multiple of 100 ns; otherwise it returns tables.ErrInvalid. The text is the same as
// that of compoundkey.TimeDesc.
func InvertedTicks(t time.Time) (string, error) {
	key, err := compoundkey.Encode("", compoundkey.TimeDesc(t))
	if err != nil {
		return "", errs.InvalidIn("InvertedTicks", "", "%w", err)
	}
	return key, nil
}

// ParseInvertedTicks is the inverse of InvertedTicks; the time is in UTC.
func ParseInvertedTicks(text string) (time.Time, error) {
	var t time.Time
	if err := compoundkey.Parse(text, "", compoundkey.ToTimeDesc(&t)); err != nil {
		return time.Time{}, errs.InvalidIn("ParseInvertedTicks", "", "%w", err)
	}
	return t, nil
}

// ceil returns the first tick that is not before t.
func ceil(t time.Time) time.Time {
	floor := t.UTC().Truncate(tick)
	if floor.Before(t) {
		return floor.Add(tick)
	}
	return floor
}
