package jobs

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// Rewriting is a job that rewrites entities that are stored in an old form.
type Rewriting struct {
	Op      string
	Kind    driver.ChangeKind
	Pattern string             // name of the pattern that the job is for, in reports
	Where   []entity.Condition // what every entity in the old form meets, nil for nothing
	// Outdated reports whether an entity is stored in the old form, judging by the entity's own row. whole is
	// true if the row has all stored properties; otherwise Outdated may return false as known.
	Outdated func(row *tablerow.Row, whole bool) (outdated, known bool)
	// CountsAll makes the report count all entities as read, and those that need no write as unchanged.
	// Otherwise it counts only the entities in the old form, as read.
	CountsAll bool

	asStored bool             // write the stored properties unchanged, and skip entities of other types
	forgets  []string         // with asStored, Again.Forgets of each entity
	skipped  func(entity.Key) // called with each entity that cannot be written; nil calls nothing
}

// Run runs the job.
func (r *Rewriting) Run(ctx context.Context, e *engine.Engine, o *Options) (tally.Report, error) {
	j, err := newJob(e, r.Op, o)
	if err != nil {
		return tally.Report{}, err
	}
	j.parts = []part{{table: e.Table, partitions: j.options.Partitions, span: e.Primary.Span, where: slices.Concat(e.Primary.Where, r.Where), row: keep(e.Owns),
		process: func(ctx context.Context, p *page, _ rangescan.Range) error {
			if r.CountsAll {
				p.read = int64(len(p.rows))
			}
			return r.page(ctx, p, p.rows)
		}}}
	return j.run(ctx, phasePages, false)
}

// page writes those of some entities of a page that are in the old form.
func (r *Rewriting) page(ctx context.Context, p *page, rows []*tablerow.Row) error {
	most := len(rows)
	if heavy(p.r) {
		most = p.options.Concurrency
	}
	for some := range slices.Chunk(rows, max(most, 1)) {
		if err := (&rewritten{r, p}).process(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// rewritten is a page of a rewriting.
type rewritten struct {
	*Rewriting
	*page
}

// process writes the entities of some rows that are in the old form. It holds all of them in memory.
func (r *rewritten) process(ctx context.Context, rows []*tablerow.Row) error {
	all := make([]*item, len(rows))
	at := make([]int, len(rows))
	for i := range rows {
		at[i] = i
	}
	err := eachSlot(ctx, r.job, at, func(ctx context.Context, i int) (err error) {
		all[i], err = r.load(ctx, rows[i])
		return err
	})
	if err != nil {
		return err
	}
	sets := r.group(slices.DeleteFunc(all, func(x *item) bool { return x == nil }))
	alone, err := r.together(ctx, sets, r.writeSet, r.refused)
	if err != nil {
		return err
	}
	return eachSlot(ctx, r.job, alone, r.writeAlone)
}

// load makes the entity of a row. It returns nil if the entity need not be written or cannot be read.
func (r *rewritten) load(ctx context.Context, row *tablerow.Row) (*item, error) {
	outdated, known := r.Outdated(row, row.Own.Layout == "")
	known = known && row.Problem == nil
	if known && !outdated {
		r.unchanged()
		return nil, nil
	}
	v, now, err := r.r.LoadStored(ctx, r.r.Table, row, nil, nil)
	switch {
	case err == nil && v == nil:
		return nil, nil // deleted since the page was read
	case err == nil && !known:
		if outdated, _ = r.Outdated(now, true); !outdated {
			r.unchanged()
			return nil, nil
		}
	}
	r.read()
	if err != nil {
		return nil, r.giveUp(ctx, row.Key, err)
	}
	if r.asStored && r.r.Schema.Key(v) != row.Key {
		return nil, nil
	}
	x := &item{value: v, row: now, key: row.Key, rows: r.rowsOf(now)}
	for _, p := range now.Properties {
		x.size += (1 + len(r.r.Copies)) * edm.PropertySize(p.Name, edm.Value(p.Value))
	}
	return x, nil
}

// rowsOf estimates the rows of an entity in its partition.
func (r *rewritten) rowsOf(row *tablerow.Row) int {
	e, n := r.r, 1
	if e.Layout != nil && row.Own.Layout != "" {
		further, _ := e.Layout.Layout.Versions(row.Own.Layout) // reading the entity has validated the directory
		n += len(further)
	}
	return n * (1 + len(e.Copies))
}

func (r *rewritten) unchanged() {
	if r.CountsAll {
		r.add(func(p *tally.Report) { p.Unchanged++ })
	}
}

func (r *rewritten) read() {
	if !r.CountsAll {
		r.add(func(p *tally.Report) { p.Read++ })
	}
}

// mostBytes limits the bytes of a change set's rows, by the service's formula. As JSON, rows of this size fit into the 4 MiB of a
// transaction.
const mostBytes = 2 << 20

// group divides entities into change sets, each of one partition.
func (r *rewritten) group(all []*item) (groups [][]*item) {
	type open struct{ at, room, size int }
	last := map[string]open{} // the last set of a partition, and the rows and bytes for which it has room
	for _, x := range all {
		set, known := last[x.key.Partition]
		if !known || set.room < x.rows || set.size < x.size {
			set = open{len(groups), r.r.BulkRows(), mostBytes}
			groups = append(groups, nil)
		}
		set.room -= x.rows
		set.size -= x.size
		last[x.key.Partition] = set
		groups[set.at] = append(groups[set.at], x)
	}
	return groups
}

// writeSet writes a set, each entity under its own ETag.
func (r *rewritten) writeSet(ctx context.Context, set []*item) error {
	err := r.commit(ctx, set)
	for _, x := range set {
		x.done, x.unknown = err == nil, errors.Is(err, entity.ErrUnknownOutcome)
	}
	if err == nil {
		r.add(func(p *tally.Report) { p.Written += int64(len(set)) })
	}
	return err
}

// refused returns the index of the entity because of which the service has refused a set, -1 if that is unknown.
func (r *rewritten) refused(err error, set []*item) int {
	if e := engine.AsError(err); e != nil && e.Change <= len(set) {
		x := set[max(e.Change-1, 0)]
		x.stale = e.Change > 0 && (engine.Lost(err) || errors.Is(err, context.Canceled))
		return e.Change - 1
	}
	return -1
}

// commit writes entities in one transaction.
func (r *rewritten) commit(ctx context.Context, set []*item) error {
	if r.asStored {
		all := make([]*engine.Again, len(set))
		for i, x := range set {
			all[i] = &engine.Again{Key: x.key, Value: x.value, Row: x.row, Forgets: r.forgets}
		}
		return r.r.WriteAgainTogether(ctx, r.op, all)
	}
	changes := make([]*engine.Work, len(set))
	for i, x := range set {
		w, err := r.r.Replacing(r.op, x.value)
		if err != nil {
			return errs.Amend(err, func(e *entity.Error) { e.Change = i + 1 })
		}
		w.Change.Kind, w.Change.Rewritten, changes[i] = r.Kind, true, w
	}
	if err := r.r.FetchOrphans(ctx, r.op, changes); err != nil {
		return err
	}
	return r.r.NewSet(changes...).Run(ctx)
}

// writeAlone writes one entity. After a conflict or an unknown outcome it reads the entity again, and writes it if it is still in the old
// form.
func (r *rewritten) writeAlone(ctx context.Context, x *item) error {
	if x.stale || x.unknown {
		if again, err := r.reload(ctx, x); err != nil || !again {
			return r.giveUp(ctx, x.key, err)
		}
	}
	err := r.attempts(ctx, func() error {
		set := []*item{x}
		return r.locked(ctx, r.sharedBy(set), func() error { return r.writeSet(ctx, set) })
	}, func() (bool, error) { return r.reload(ctx, x) })
	return r.giveUp(ctx, x.key, err)
}

// reload reads an entity again. It returns false if the entity no longer exists, or if a concurrent writer has written it in
// the current form.
func (r *rewritten) reload(ctx context.Context, x *item) (again bool, err error) {
	v, row, err := r.r.ReadOwn(ctx, r.op, x.key)
	if err != nil || v == nil {
		return false, err
	}
	if outdated, _ := r.Outdated(row, true); !outdated && !x.unknown {
		r.unchanged()
		return false, nil
	}
	x.value, x.row, x.stale, x.unknown = v, row, false, false
	return true, nil
}

// giveUp reports an entity that could not be written, unless the error concerns the whole run.
func (r *rewritten) giveUp(ctx context.Context, key entity.Key, err error) error {
	failed := err != nil
	if err = r.page.giveUp(ctx, key, r.Pattern, err); failed && err == nil && r.skipped != nil {
		r.skipped(key)
	}
	return err
}
