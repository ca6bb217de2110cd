package logtail

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Latest returns the n newest entries of a partition, newest first, or all if it has fewer. It returns
// tables.ErrInvalid if n is below 1. Requests: 1 for each 1,000 entries returned, whatever the size of the partition.
func (l *Log[T]) Latest(ctx context.Context, partition string, n int) ([]*T, error) {
	if n < 1 {
		return nil, tables.InvalidIn("Latest", l.Table().Name(), "n is %d; it must be at least 1", n)
	}
	latest := make([]*T, 0, min(n, tables.MaxPageSize))
	for v, err := range l.ordered(l.Query(partition, time.Time{}, time.Time{}).Top(n).All(ctx)) {
		if err != nil {
			return nil, err
		}
		latest = append(latest, v)
	}
	return latest, nil
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

// ordered yields an error if entries are not in the order of their keys, because the first ones would then
// not be the newest.
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
