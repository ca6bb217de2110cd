package patterns

import (
	"cmp"
	"context"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// lack describes the rows and facts that patterns still have to store for one entity.
type lack struct {
	x        *rebuilt
	outside  map[string][]string // by pattern: locations outside of the partition whose content is missing or wrong
	intended map[string][]string // by pattern: those of outside that rewriting the entity does not repair
	write    bool                // the entity must be written again
	taken    error               // ErrDuplicate if another entity owns one of the required outside keys
	copied   bool                // copies in other partitions were written
	err      error               // error of a pattern that rejects the entity, or of its reconciliation
}

// again returns the entity for the engine.
func (l *lack) again() *engine.Again {
	return &engine.Again{Key: l.x.row.Key, Value: l.x.value, Row: l.x.row, Named: l.outside}
}

// reconcileOne reconciles the copies and facts of one entity outside of its partition, under an intent.
func reconcileOne(ctx context.Context, r *engine.Engine, a *engine.Again) error {
	return cmp.Or(r.RunReconcile(ctx, []*engine.Again{a}), a.Err)
}

// fillOnce reads what the patterns lack for an entity. Then it rewrites the entity, or reconciles what is
// outside of its partition.
func (b *rebuildPage) fillOnce(ctx context.Context, x *rebuilt) error {
	lacks, err := b.lacking(ctx, []*rebuilt{x})
	if err != nil {
		return err
	}
	l := lacks[0]
	if l.err == nil {
		if err := b.fillAllEmpty(ctx, lacks, false, nil); err != nil {
			return err
		}
	}
	switch {
	case l.err != nil:
		return l.err
	case l.write:
		if err = b.r.WriteAgain(ctx, b.op, x.value, x.row, false); err == nil && len(l.intended) > 0 {
			err = reconcileOne(ctx, b.r, &engine.Again{Key: x.row.Key, Named: l.intended}) // the intent of the rewrite does not name these keys
		}
	case len(l.outside) > 0:
		err = reconcileOne(ctx, b.r, l.again())
	case l.taken == nil && !l.copied:
		b.add(func(r *rebuildCounts) { r.Skipped++ })
		return nil
	case l.copied:
	default:
		return l.taken
	}
	if err == nil {
		b.add(func(r *rebuildCounts) { r.Written++ })
		err = l.taken
	}
	return err
}

// unlisted reports whether the entity has copies in an index that its row does not list.
func (b *rebuild) unlisted(x *rebuilt) (bool, error) {
	for _, p := range b.r.Copies {
		if !b.chosen(p.Name) || tablerow.CopyList(x.row.Own.Copies).Names(p.Name) {
			continue
		}
		copies, err := engine.AppendCopies(nil, p, engine.CopiesOf(x.value), x.row.Key, b.r.Spreading(x.row.Properties))
		if err != nil {
			return false, engine.PatternError(p, err, tables.ErrInvalid)
		}
		if len(copies) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// lackingAll calls lacking for a page. If that fails because of one entity, it marks all entities of the page
// to be processed one by one.
func (b *rebuild) lackingAll(ctx context.Context, page []*rebuilt) ([]*lack, error) {
	lacks, err := b.lacking(ctx, page)
	if err == nil || ctx.Err() != nil || engine.Ends(err) {
		return lacks, err
	}
	lacks = lacks[:0]
	for _, x := range page {
		lacks = append(lacks, &lack{x: x, err: err})
	}
	return lacks, nil
}

// lacking finds out which rows and facts are missing or wrong for entities. It reads rows and lists that lie
// close together with one request.
func (b *rebuild) lacking(ctx context.Context, page []*rebuilt) ([]*lack, error) {
	lacks := make([]*lack, len(page))
	for i, x := range page {
		unlisted, err := b.unlisted(x)
		lacks[i] = &lack{x: x, outside: map[string][]string{}, intended: map[string][]string{}, write: unlisted || b.always, err: err}
	}
	for at := 1; at < len(b.areas); at++ {
		a := &b.areas[at]
		if a.auditor != nil {
			if err := b.lackingHeld(ctx, a.auditor, lacks); err != nil {
				return lacks, err
			}
		}
	}
	return lacks, nil
}

// lackingHeld reads the facts that a pattern with Effect.List stores for entities, and records those that are
// missing or wrong.
func (b *rebuild) lackingHeld(ctx context.Context, p *driver.Implementation, lacks []*lack) error {
	var asked []driver.Fact
	var of []*lack
	for _, l := range lacks {
		facts, err := p.Effect.Expected(l.x.value)
		if err != nil {
			l.err = cmp.Or(l.err, engine.PatternError(p, err, tables.ErrInvalid))
			continue
		}
		for i := range facts {
			facts[i].Entity = l.x.row.Key
			asked, of = append(asked, facts[i]), append(of, l)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	found, err := p.Effect.Read(ctx, asked)
	if err != nil {
		return engine.PatternError(p, err, tables.ErrGarbled)
	}
	removes, intends := p.Effect.Remove != nil, p.Effect.OutsideKeys != nil
	for i, held := range found {
		switch l := of[i]; {
		case held != nil && held.Err == nil && held.Digest == asked[i].Digest:
		case intends && !removes:
			l.outside[p.Name] = append(l.outside[p.Name], asked[i].Place)
			l.intended[p.Name] = l.outside[p.Name]
		default:
			l.write = true
		}
	}
	return nil
}

// fillPage writes the rows and facts that the patterns lack for a page of entities. It writes entities again
// in change sets, reconciles under shared intents those that lack something only outside of their partitions,
// and processes the other entities one by one.
func (b *rebuildPage) fillPage(ctx context.Context, at rangescan.Range, page []*rebuilt) error {
	lacks, err := b.lackingAll(ctx, page)
	if err == nil {
		err = b.fillAllEmpty(ctx, lacks, true, b.again(at))
	}
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
			// If the service refuses a set, it is divided, so that an entity that concurrent writers change all the time, or one
			// that is too large, delays only itself.
			refused, err := division.Divided[*lack]{
				Write: func(set []*lack) error {
					var names []string
					for _, l := range set {
						names = append(names, b.r.SharedBy(l.x.row.Key, l.x.value)...)
					}
					return b.locked(ctx, names, func() error {
						failed, err := write(ctx, set)
						leave(failed)
						return err
					})
				},
				Ends: func(err error) bool { return ctx.Err() != nil || engine.Ends(err) },
			}.Run(set)
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

// eachSlot calls pagejob.Each for the items of one page. The slots limit how many items of all pages together
// are processed at once.
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

// mostReconciled limits the entities of one intent. With keys of usual lengths, the intent then fits into one
// message.
const mostReconciled = 250

// sets groups the entities that lack something. Each element of again is a change set of one partition, each
// element of outside shares an intent, and alone has the entities to process one by one. The other entities
// count as skipped.
func (b *rebuildPage) sets(lacks []*lack) (again, outside [][]*lack, alone []*lack) {
	most := tables.MaxTransactionOperations / (1 + len(b.r.Copies))
	last := map[string]int{} // for each partition, the index of the set that has room
	for _, l := range lacks {
		partition := l.x.row.Key.Partition
		switch at, known := last[partition]; {
		case l.err != nil || l.taken != nil:
			alone = append(alone, l) // fill repeats the failure for this entity alone, and reports it
		case l.write && known && len(again[at]) < most:
			again[at] = append(again[at], l)
		case l.write:
			last[partition] = len(again)
			again = append(again, []*lack{l})
		case len(l.outside) == 0 && l.copied:
			b.add(func(r *rebuildCounts) { r.Written++ })
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
	if failed, err = b.reconcileSet(ctx, intended); err != nil { // rewriting the entities does not write these locations, so they need an intent of their own
		return intended, nil // the caller then processes each entity alone, and reports its error
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
	if err := b.r.RunReconcile(ctx, all); err != nil {
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
