package highvolumedelete

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ReadOptions are the options of Between; nil is the same as the zero value.
type ReadOptions[T any] struct {
	// Newest yields the newest entity first, in place of the oldest.
	Newest bool
	// Partitions are the partitions to read. If it is empty, each table is read whole, and Query must call
	// AllowTableScan.
	Partitions []string
	// Query narrows the query of each table: Rows, Where, Select (which must include the properties that Schema.Time
	// uses), PageSize, AllowTableScan. Its Top would apply to each table separately; break out of the loop instead.
	Query func(tables.Query[T]) tables.Query[T]
	// Limit is the maximum number of entities of a period that are held in memory, if it cannot be read in
	// order of time (default 100,000). More entities cause tables.ErrTooLarge.
	Limit int
}

const (
	defaultLimit = 100_000
	// askedPeriods is the largest number of periods that Between queries without listing the tables first.
	askedPeriods = 100
)

// Between yields the entities with from <= Time < to, of all periods, in order of Time: oldest first, or newest first with
// ReadOptions.Newest. A zero time means no bound. Missing tables, and those dropped meanwhile, are skipped. An error is yielded
// once, as the last element.
//
// With Partitions, and in the direction of Schema.RowOrder, Between streams; it returns tables.ErrInvalid if rows are not in that
// order. Otherwise it reads each period completely, up to Limit entities, and sorts. Two periods between which the clock of
// Schema.Location was set back over midnight are read and sorted together.
//
// Requests: for each period and partition 1 for each page; at most 1 for each partition of a period without a table; 1 more for
// each 1,000 tables to list them, if a bound is missing or there are more than 100 periods.
func (s *Tables[T]) Between(ctx context.Context, from, to time.Time, options *ReadOptions[T]) iter.Seq2[*T, error] {
	ctx = telemetry.ExpectMissing(ctx)
	if options == nil {
		options = &ReadOptions[T]{}
	}
	return func(yield func(*T, error) bool) {
		periods, err := s.periods(ctx, from, to)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, group := range s.grouped(periods, options.Newest) {
			for v, err := range s.inPeriods(ctx, group, options) {
				if err != nil {
					yield(nil, err)
					return
				}
				at := s.schema.Time(v)
				if at.Before(from) || !to.IsZero() && !at.Before(to) {
					continue
				}
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

func (s *Tables[T]) grouped(periods []period, newest bool) [][]period {
	var groups [][]period
	for i, p := range periods {
		if i > 0 && periods[i-1].next() == p && s.calendar.mixed(periods[i-1]) {
			last := &groups[len(groups)-1]
			*last = append(*last, p)
			continue
		}
		groups = append(groups, []period{p})
	}
	if newest {
		slices.Reverse(groups)
	}
	return groups
}

// inPeriods yields the entities of a group in order of time. It holds the entities of several periods in memory.
func (s *Tables[T]) inPeriods(ctx context.Context, group []period, o *ReadOptions[T]) iter.Seq2[*T, error] {
	all := func(yield func(*T, error) bool) {
		for _, p := range group {
			r, err := s.repository(p)
			if err != nil {
				yield(nil, err)
				return
			}
			for v, err := range s.inPeriod(ctx, r, o) {
				if noTable(err, s.tableName(p)) {
					break
				}
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
	if len(group) == 1 {
		return all
	}
	return sorted(all, s.order(o), s.tableName(group[0]), o.Limit)
}

func (s *Tables[T]) order(o *ReadOptions[T]) func(a, b *T) int {
	if o.Newest {
		return func(a, b *T) int { return s.schema.Time(b).Compare(s.schema.Time(a)) }
	}
	return func(a, b *T) int { return s.schema.Time(a).Compare(s.schema.Time(b)) }
}

// periods returns the periods that overlap a span of time, oldest first: all of them if both bounds are given and
// there are at most askedPeriods, otherwise those that have a table.
func (s *Tables[T]) periods(ctx context.Context, from, to time.Time) ([]period, error) {
	if !to.IsZero() && !from.Before(to) {
		return nil, nil
	}
	var first period
	if !from.IsZero() {
		var err error
		if first, err = s.calendar.periodOf(from); err != nil {
			return nil, errs.InvalidIn("Between", "", "%w", err)
		}
		end := from.Add(longestRewind)
		if !to.IsZero() && to.Before(end) {
			end = to
		}
		for _, r := range s.calendar.rewinds(from, end) {
			if r.after.before(first) {
				first = r.after
			}
		}
	}
	if to.IsZero() {
		return s.listed(ctx, first, nil)
	}
	last, err := s.calendar.periodOf(to.Add(-1))
	if err != nil {
		return nil, errs.InvalidIn("Between", "", "%w", err)
	}
	for _, r := range s.calendar.rewinds(to.Add(-longestRewind), to.Add(-1)) {
		if last.before(r.before) && r.at.After(from) {
			last = r.before
		}
	}
	if from.IsZero() {
		return s.listed(ctx, first, &last)
	}
	var all []period
	for p := first; !last.before(p); p = p.next() {
		if all = append(all, p); len(all) > askedPeriods {
			return s.listed(ctx, first, &last)
		}
	}
	return all, nil
}

// listed returns the periods from first to last (nil for no bound) that have a table.
func (s *Tables[T]) listed(ctx context.Context, first period, last *period) ([]period, error) {
	var below *period
	if last != nil && last.next().at.Year() <= 9999 {
		next := last.next()
		below = &next
	}
	all, err := s.list(ctx, below, new(int))
	return slices.DeleteFunc(all, func(p period) bool { return p.before(first) }), err
}

func (s *Tables[T]) inPeriod(ctx context.Context, r *patterns.Repository[T], o *ReadOptions[T]) iter.Seq2[*T, error] {
	query := r.Query()
	if o.Query != nil {
		query = o.Query(query)
	}
	order, streams := s.order(o), OldestFirst
	if o.Newest {
		streams = NewestFirst
	}
	switch {
	case len(o.Partitions) == 0:
		return sorted(query.All(ctx), order, r.Table().Name(), o.Limit)
	case s.schema.RowOrder != streams || s.account.IsCosmos(): // Cosmos DB returns rows in no order
		return sorted(query.AllPartitions(ctx, o.Partitions, nil), order, r.Table().Name(), o.Limit)
	case len(o.Partitions) == 1: // a single partition is read page by page, without reading ahead
		return checked(query.Partition(o.Partitions[0]).All(ctx), order, r.Table())
	}
	return checked(query.AllPartitions(ctx, o.Partitions, &tables.ParallelOptions[T]{Order: order}), order, r.Table())
}

func sorted[T any](all iter.Seq2[*T, error], order func(a, b *T) int, table string, limit int) iter.Seq2[*T, error] {
	if limit <= 0 {
		limit = defaultLimit
	}
	return func(yield func(*T, error) bool) {
		var held []*T
		for v, err := range all {
			if err == nil && len(held) == limit {
				e := errs.InvalidIn("Between", table, "the period has more than %d entities, the most that Between sorts in memory; raise ReadOptions.Limit, or declare Schema.RowOrder", limit)
				e.Kind, err = tables.ErrTooLarge, e
			}
			if err != nil {
				yield(nil, err)
				return
			}
			held = append(held, v)
		}
		slices.SortStableFunc(held, order)
		for _, v := range held {
			if !yield(v, nil) {
				return
			}
		}
	}
}

var errRowOrder = errors.New("the rows of a partition are not in the order of Schema.RowOrder; set it to Unordered")

func checked[T any](all iter.Seq2[*T, error], order func(a, b *T) int, table *tables.Table) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var last *T
		for v, err := range all {
			if err == nil && last != nil && order(last, v) > 0 {
				err = errs.InvalidIn("Between", table.Name(), "%w", errRowOrder)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if last = v; !yield(v, nil) {
				return
			}
		}
	}
}
