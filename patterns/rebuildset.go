package patterns

import (
	"context"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/sets"
	"github.com/tablepatterns/tablepatterns/tables"
)

// fillPage writes the rows and facts that the patterns lack for a page of entities. It writes entities again
// in change sets, reconciles under shared intents those that lack something only outside of their partitions,
// and processes the other entities one by one.
func (b *rebuildPage) fillPage(ctx context.Context, page []*rebuilt) error {
	lacks, err := b.lackingAll(ctx, page)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var alone []*rebuilt
	leave := func(lacks []*lack) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lacks {
			alone = append(alone, l.x)
		}
	}
	run := func(all [][]*lack, write func(context.Context, []*lack) (failed []*lack, err error)) error {
		return eachSlot(ctx, b.slots, all, func(ctx context.Context, set []*lack) error {
			refused, err := b.fillSet(ctx, set, func(ctx context.Context, set []*lack) error {
				failed, err := write(ctx, set)
				leave(failed)
				return err
			})
			leave(refused)
			return err
		})
	}
	again, outside, rest := b.sets(lacks)
	leave(rest)
	if err := run(again, b.writeSet); err != nil {
		return err
	}
	if err := run(outside, b.reconcileSet); err != nil {
		return err
	}
	return eachSlot(ctx, b.slots, alone, b.fill)
}

// eachSlot calls pagejob.Each for the items of one page. All pages together process at most as many items at
// once as there are slots.
func eachSlot[I any](ctx context.Context, slots chan struct{}, items []I, do func(context.Context, I) error) error {
	return pagejob.Each(ctx, cap(slots), items, func(ctx context.Context, item I) error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-slots }()
		return do(ctx, item)
	})
}

// mostReconciled limits the entities of one intent, so that its message has room for all of them if keys have usual lengths.
const mostReconciled = 250

// sets groups the entities: again has change sets of one partition, outside has sets that share an intent,
// and alone has the entities to process one by one.
func (b *rebuildPage) sets(lacks []*lack) (again, outside [][]*lack, alone []*lack) {
	most := tables.MaxTransactionOperations / (1 + len(b.r.Copies))
	last := map[string]int{} // for each partition, the index of the set that has room
	for _, l := range lacks {
		partition := l.x.row.Key.Partition
		switch at, known := last[partition]; {
		case l.err != nil || l.taken != nil || l.twice:
			alone = append(alone, l) // fill reports the error
		case l.write && known && len(again[at]) < most:
			again[at] = append(again[at], l)
		case l.write:
			last[partition] = len(again)
			again = append(again, []*lack{l})
		case len(l.outside) == 0:
			b.add(func(r *rebuildCounts) { r.Skipped++ })
		case len(outside) > 0 && len(outside[len(outside)-1]) < mostReconciled:
			outside[len(outside)-1] = append(outside[len(outside)-1], l)
		default:
			outside = append(outside, []*lack{l})
		}
	}
	return again, outside, alone
}

// fillSet writes the entities of a set. If the service refuses a set, it is divided, so that an entity that
// concurrent writers change all the time, or one that is too large, delays only itself. It returns the
// entities that the caller must write one by one.
func (b *rebuildPage) fillSet(ctx context.Context, set []*lack, write func(context.Context, []*lack) error) (refused []*lack, err error) {
	return division.Divided[*lack]{
		Write: func(set []*lack) error { return b.locked(ctx, set, write) },
		Ends:  func(err error) bool { return ctx.Err() != nil || sets.Ends(err) },
	}.Run(set)
}

// locked writes a set while no other worker of the run writes a row that its entities share with others.
func (b *rebuildPage) locked(ctx context.Context, set []*lack, write func(context.Context, []*lack) error) error {
	var names []string
	for _, l := range set {
		names = append(names, b.r.SharedBy(l.x.row.Key, l.x.value)...)
	}
	release, err := b.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return write(ctx, set)
}

// writeSet writes the entities of a set again in one transaction, each under its own ETag, and reconciles the
// locations that the transaction does not write. It returns the entities that could not be reconciled.
func (b *rebuildPage) writeSet(ctx context.Context, set []*lack) (failed []*lack, err error) {
	all := make([]*engine.Again, len(set))
	var intended []*lack
	for i, l := range set {
		all[i] = l.again()
		if len(l.intended) > 0 {
			intended = append(intended, &lack{x: l.x, outside: l.intended})
		}
	}
	if err := b.r.WriteAgainTogether(ctx, b.op, all); err != nil {
		return nil, err
	}
	b.add(func(r *rebuildCounts) { r.Written += int64(len(set) - len(intended)) })
	if len(intended) == 0 {
		return nil, nil
	}
	if failed, err = b.reconcileSet(ctx, intended); err != nil { // these locations need an intent of their own, since rewriting the entities does not write them
		return intended, nil // each entity is then processed alone, which reports the error
	}
	return failed, nil
}

// reconcileSet reconciles the locations of entities outside of their partitions under one intent. It returns
// the entities that could not be reconciled, with their errors.
func (b *rebuildPage) reconcileSet(ctx context.Context, set []*lack) (failed []*lack, err error) {
	all := make([]*engine.Again, len(set))
	for i, l := range set {
		all[i] = l.again()
	}
	if err := b.r.RunReconcile(ctx, "", all); err != nil {
		return nil, err
	}
	for i, l := range set {
		if l.err = all[i].Err; l.err != nil {
			failed = append(failed, l)
		}
	}
	b.add(func(r *rebuildCounts) { r.Written += int64(len(set) - len(failed)) })
	return failed, nil
}
