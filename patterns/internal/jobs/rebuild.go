package jobs

import (
	"cmp"
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// refuseUnfillable returns an error if Options.Patterns names a pattern for which Rebuild has nothing to do.
func (j *job) refuseUnfillable() error {
	for _, p := range j.r.Patterns {
		if slices.Contains(j.options.Patterns, p.Name) && p.Effect.List == nil && p.Totals == nil && p.Copies == nil && p.Outside == nil {
			return errs.Wiringf(j.op, j.r.Table.Name(), "pattern %q stores no copies or facts to fill; remove it from JobOptions.Patterns", p.Name)
		}
	}
	return nil
}

// fillable returns the scan of the entities that Rebuild fills.
func (j *job) fillable() part {
	p := part{table: j.r.Table, partitions: j.options.Partitions, span: j.r.Primary.Span, where: j.r.Primary.Where, row: func(ctx context.Context, p *page, row *tablerow.Row) error { return p.addEntity(ctx, row) },
		process: func(ctx context.Context, p *page, at rangescan.Range) error { return p.fillAll(ctx, at) }, together: true}
	if heavy(j.r) {
		p.size = mostHeavy
	}
	return p
}

// addEntity adds an entity to the page.
func (p *page) addEntity(ctx context.Context, row *tablerow.Row) error {
	if !p.r.Owns(row) || !p.mine(row.Key) {
		return nil
	}
	e, err := p.decode(ctx, row)
	if err != nil || e.foreign || e.gone() {
		return err
	}
	if p.counts.Read++; e.known() {
		p.items = append(p.items, &item{key: e.key, value: e.value, row: e.row.With(slices.Clone(e.stored))})
		return nil
	}
	p.problem(entity.Finding{Kind: entity.Undecodable, Table: p.r.Table.Name(), Entity: e.key, Err: cmp.Or(e.bad, e.busy)})
	return nil
}

// again returns the entity for the engine, with locations to reconcile.
func (x *item) again(named map[string][]string) *engine.Again {
	return &engine.Again{Key: x.key, Value: x.value, Row: x.row, Named: named}
}

// reconcileOne reconciles facts of one entity outside of its partition, under an intent.
func reconcileOne(ctx context.Context, r *engine.Engine, a *engine.Again) error {
	return cmp.Or(r.RunReconcile(ctx, []*engine.Again{a}), a.Err)
}

// unlisted reports whether the entity has copies in an index that its row does not list.
func (j *job) unlisted(x *item) (bool, error) {
	for _, p := range j.r.Copies {
		if !j.chosen(p.Name) || tablerow.CopyList(x.row.Own.Copies).Names(p.Name) {
			continue
		}
		copies, err := engine.AppendCopies(nil, p, engine.CopiesOf(x.value), x.key, j.r.Spreading(x.row.Properties))
		if err != nil {
			return false, engine.PatternError(p, err, entity.ErrInvalid)
		}
		if len(copies) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// lacking finds out which rows and facts are missing or wrong for entities. It reads rows and lists that lie
// close together with one request.
func (j *job) lacking(ctx context.Context, all []*item) error {
	for _, x := range all {
		x.outside, x.intended = map[string][]string{}, map[string][]string{}
		x.write, x.err = j.unlisted(x)
	}
	for at := range j.areas {
		if p := j.areas[at].auditor; p != nil {
			if err := j.lackingHeld(ctx, p, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// lackingHeld reads the facts that a pattern with Effect.List stores for entities, and records those that are
// missing or wrong.
func (j *job) lackingHeld(ctx context.Context, p *driver.Implementation, all []*item) error {
	var asked []driver.Fact
	var of []*item
	for _, x := range all {
		facts, err := p.Effect.Expected(x.value)
		if err != nil {
			x.err = cmp.Or(x.err, engine.PatternError(p, err, entity.ErrInvalid))
			continue
		}
		for i := range facts {
			facts[i].Entity = x.key
			asked, of = append(asked, facts[i]), append(of, x)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	found, err := p.Effect.Read(ctx, asked)
	if err != nil {
		return engine.PatternError(p, err, entity.ErrGarbled)
	}
	removes, intends := p.Effect.Remove != nil, p.Effect.OutsideKeys != nil
	for i, held := range found {
		switch x := of[i]; {
		case held != nil && held.Err == nil && held.Digest == asked[i].Digest:
		case intends && !removes:
			x.outside[p.Name] = append(x.outside[p.Name], asked[i].Place)
			x.intended[p.Name] = x.outside[p.Name]
		default:
			x.write = true
		}
	}
	return nil
}

// fillAll writes the rows and facts that the patterns lack for a page of entities. It writes entities again
// in change sets, reconciles under shared intents those that lack something only outside of their partitions,
// and processes the other entities one by one.
func (p *page) fillAll(ctx context.Context, at rangescan.Range) error {
	if err := p.lacking(ctx, p.items); err != nil {
		if ctx.Err() != nil || engine.Ends(err) {
			return err
		}
		for _, x := range p.items {
			x.err = err // it may be because of one entity
		}
	}
	if err := p.fillEmpty(ctx, p.items, true, p.again(at)); err != nil {
		return err
	}
	again, outside, alone := p.sets(p.items)
	for _, step := range []struct {
		sets  [][]*item
		write func(context.Context, []*item) error
	}{{again, p.writeSet}, {outside, p.reconcileSet}} {
		failed, err := p.together(ctx, step.sets, step.write, nil)
		if err != nil {
			return err
		}
		alone = append(alone, failed...)
	}
	return eachSlot(ctx, p.job, alone, p.fill)
}

// mostReconciled limits the entities of one intent. With keys of usual lengths, the intent then fits into one
// message.
const mostReconciled = 250

// sets groups the entities that lack something. Each element of again is a change set of one partition, each
// element of outside shares an intent, and alone has the entities to process one by one. The other entities
// need nothing, or have got it.
func (p *page) sets(all []*item) (again, outside [][]*item, alone []*item) {
	var write, intend []*item
	for _, x := range all {
		switch {
		case x.err != nil || x.taken != nil:
			alone = append(alone, x) // fill repeats the failure for this entity alone, and reports it
		case x.write:
			write = append(write, x)
		case len(x.outside) > 0:
			intend = append(intend, x)
		case x.copied:
			p.add(func(r *tally.Report) { r.Written++ })
		default:
			p.add(func(r *tally.Report) { r.Unchanged++ })
		}
	}
	for _, partition := range group(write, func(x *item) string { return x.key.Partition }) {
		again = slices.AppendSeq(again, slices.Chunk(partition, max(1, entity.MaxTransactionOperations/(1+len(p.r.Copies)))))
	}
	return again, slices.Collect(slices.Chunk(intend, mostReconciled)), alone
}

// writeSet writes the entities of a set again in one transaction, each under its own ETag, and reconciles the
// locations that the transaction does not write. An entity that could not be reconciled is not done; the caller then processes it alone, and
// reports its error.
func (p *page) writeSet(ctx context.Context, set []*item) error {
	all := make([]*engine.Again, len(set))
	var intended []*item
	for i, x := range set {
		all[i] = x.again(nil)
		if x.outside = x.intended; len(x.intended) > 0 {
			intended = append(intended, x)
		}
	}
	if err := p.r.WriteAgainTogether(ctx, p.op, all); err != nil {
		return err
	}
	for _, x := range set {
		x.done = len(x.intended) == 0
	}
	p.add(func(r *tally.Report) { r.Written += int64(len(set) - len(intended)) })
	if len(intended) == 0 {
		return nil
	}
	if err := p.reconcileSet(ctx, intended); err != nil { // rewriting the entities does not write these locations, so they need an intent of their own
		for _, x := range intended {
			x.err = err
		}
	}
	return nil
}

// reconcileSet reconciles the locations of entities outside of their partitions under one intent.
func (p *page) reconcileSet(ctx context.Context, set []*item) error {
	all := make([]*engine.Again, len(set))
	for i, x := range set {
		all[i] = x.again(x.outside)
	}
	if err := p.r.RunReconcile(ctx, all); err != nil {
		return err
	}
	for i, x := range set {
		if x.err = all[i].Err; x.err == nil {
			x.done = true
			p.add(func(r *tally.Report) { r.Written++ })
		}
	}
	return nil
}

// fill writes the rows and facts of one entity that the patterns lack.
func (p *page) fill(ctx context.Context, x *item) error {
	err := p.attempts(ctx, func() error {
		return p.locked(ctx, p.sharedBy([]*item{x}), func() error { return p.fillOnce(ctx, &item{key: x.key, value: x.value, row: x.row}) })
	}, func() (more bool, err error) {
		x.value, x.row, err = p.r.ReadOwn(ctx, p.op, x.key)
		return x.value != nil, err
	})
	return p.giveUp(ctx, x.key, "", err)
}

// fillOnce reads what the patterns lack for an entity. Then it rewrites the entity, or reconciles what is
// outside of its partition.
func (p *page) fillOnce(ctx context.Context, x *item) error {
	all := []*item{x}
	if err := p.lacking(ctx, all); err != nil {
		return err
	}
	if x.err == nil {
		if err := p.fillEmpty(ctx, all, false, nil); err != nil {
			return err
		}
	}
	taken, err := x.taken, x.err
	x.taken = nil
	switch {
	case err != nil:
	case x.write:
		err = p.writeSet(ctx, all)
	case len(x.outside) > 0:
		err = p.reconcileSet(ctx, all)
	case taken == nil || x.copied:
		p.sets(all) // counts it
	}
	return cmp.Or(err, x.err, taken)
}
