package patterns

import (
	"context"
	"errors"
	"sync"

	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fillPage writes what the patterns lack of a page of entities: change sets of entities that only need to be written again, and each
// other entity by itself.
func (b *rebuild) fillPage(ctx context.Context, page []*rebuilt) error {
	sets, alone := b.sets(page)
	var mu sync.Mutex
	err := each(ctx, b.options.Concurrency, sets, func(ctx context.Context, set []*rebuilt) error {
		refused, err := b.fillSet(ctx, set)
		mu.Lock()
		defer mu.Unlock()
		alone = append(alone, refused...)
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, b.options.Concurrency, alone, b.fill)
}

// sets divides the entities of a page that an index in their partition does not list into change sets. It does so only for a run without
// patterns outside of the partition: what these lack has to be read for each entity.
func (b *rebuild) sets(page []*rebuilt) (sets [][]*rebuilt, alone []*rebuilt) {
	if len(b.areas) > 1 {
		return nil, page
	}
	most := tables.MaxTransactionOperations / (1 + len(b.r.Copies))
	last := map[string]int{} // the set of a partition that has room
	for _, x := range page {
		unlisted, err := b.unlisted(x)
		if err != nil || !unlisted && !b.always {
			alone = append(alone, x) // fill reports the error
			continue
		}
		at, known := last[x.row.Key.Partition]
		if !known || len(sets[at]) >= most {
			at = len(sets)
			sets, last[x.row.Key.Partition] = append(sets, nil), at
		}
		sets[at] = append(sets[at], x)
	}
	return sets, alone
}

// fillSet writes the entities of a set again, each under its own ETag. A set that cannot be written is halved, so that an entity that
// concurrent writers change all the time, or one that is too large, delays only itself. It returns the entities that were refused alone.
func (b *rebuild) fillSet(ctx context.Context, set []*rebuilt) (refused []*rebuilt, err error) {
	if len(set) < 2 {
		return set, nil
	}
	if err := b.writeSet(ctx, set); err == nil {
		b.add(func(r *rebuildCounts) { r.Written += int64(len(set)) })
		return nil, nil
	} else if ctx.Err() != nil || errors.Is(err, tables.ErrUnavailable) || errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrMissingResource) {
		return nil, err // smaller sets would fail in the same way
	}
	for _, half := range [][]*rebuilt{set[:len(set)/2], set[len(set)/2:]} {
		more, err := b.fillSet(ctx, half)
		if refused = append(refused, more...); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// writeSet writes the entities of a set again in one transaction, while no other worker of the run writes a row that they share with
// others.
func (b *rebuild) writeSet(ctx context.Context, set []*rebuilt) error {
	values, names := make([]any, len(set)), []string{}
	rows := make([]*engine.StoredRow, len(set))
	for i, x := range set {
		values[i], rows[i] = x.value, x.row
		names = append(names, b.r.SharedBy(x.row.Key, x.value)...)
	}
	release, err := b.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return b.r.WriteAgainTogether(ctx, b.op, values, rows)
}
