// Package rewriting is the job that writes entities again: it reads them page by page, and writes those of a
// partition in change sets.
package rewriting

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/sharedlocks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
)

// Rewriting is a job that rewrites entities that are stored in an old form.
type Rewriting struct {
	Kind    driver.ChangeKind
	Pattern string // name of the pattern that the job is for, in reports
	// Outdated reports whether an entity is stored in the old form, judging by the entity's own row. whole is
	// true if the row has all stored properties; otherwise Outdated may return false as known.
	Outdated func(row *tablerow.Row, whole bool) (outdated, known bool)
	// AsStored makes the job write the stored properties unchanged, and skip entities of other types.
	AsStored bool
	// Forgets, with AsStored, is Again.Forgets of each entity.
	Forgets []string
	// Failed is called with each entity that the job skips; nil calls nothing.
	Failed func(entity entity.Key)
	// CountsAll makes the report count all entities as read, and those that need no write as unchanged.
	// Otherwise it counts only the entities in the old form, as read.
	CountsAll   bool
	Concurrency int

	job   *pagejob.Job
	locks sharedlocks.Locks
}

// old is an entity in the old form.
type old struct {
	value   any
	row     *tablerow.Row // as it was read, with all stored properties
	key     entity.Key
	rows    int  // number of rows that the entity has in its partition
	size    int  // their size in bytes
	stale   bool // the entity must be read again before it is written
	unknown bool // the outcome of a write is unknown
	done    bool
}

// Process writes the entities of a page that are in the old form.
func (r *Rewriting) Process(ctx context.Context, job *pagejob.Job, page []*tablerow.Row) error {
	r.job = job
	most := len(page)
	if pagejob.Heavy(job.Engine) {
		most = r.Concurrency
	}
	for some := range slices.Chunk(page, max(most, 1)) {
		if err := r.process(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// process writes the entities of a page that are in the old form. It holds all of them in memory.
func (r *Rewriting) process(ctx context.Context, page []*tablerow.Row) error {
	var mu sync.Mutex
	var all []*old
	err := pagejob.Each(ctx, r.Concurrency, page, func(ctx context.Context, row *tablerow.Row) error {
		x, err := r.load(ctx, row)
		if x != nil {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, x)
		}
		return err
	})
	if err != nil {
		return err
	}
	groups, alone := r.group(inOrder(page, all))
	err = pagejob.Each(ctx, r.Concurrency, groups, func(ctx context.Context, set []*old) error {
		err := r.writeSet(ctx, set)
		mu.Lock()
		defer mu.Unlock()
		for _, x := range set {
			if !x.done {
				alone = append(alone, x)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return pagejob.Each(ctx, r.Concurrency, alone, r.writeAlone)
}

// inOrder sorts entities in the order of their rows on the page.
func inOrder(page []*tablerow.Row, all []*old) []*old {
	byKey := make(map[entity.Key]*old, len(all))
	for _, x := range all {
		byKey[x.key] = x
	}
	sorted := all[:0]
	for _, row := range page {
		if x := byKey[row.Key]; x != nil {
			sorted = append(sorted, x)
		}
	}
	return sorted
}

// load makes the entity of a row. It returns nil if the entity need not be written or cannot be read.
func (r *Rewriting) load(ctx context.Context, row *tablerow.Row) (*old, error) {
	outdated, known := r.Outdated(row, row.Own.Layout == "")
	known = known && row.Problem == nil
	if known && !outdated {
		r.unchanged()
		return nil, nil
	}
	v, now, err := r.job.Engine.LoadStored(ctx, r.job.Engine.Table, row, nil, nil)
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
	if r.AsStored && r.job.Engine.Schema.Key(v) != row.Key {
		return nil, nil
	}
	x := &old{value: v, row: now, key: row.Key, rows: r.rowsOf(now)}
	for _, p := range now.Properties {
		x.size += (1 + len(r.job.Engine.Copies)) * edm.PropertySize(p.Name, edm.Value(p.Value))
	}
	return x, nil
}

// rowsOf estimates the rows of an entity in its partition.
func (r *Rewriting) rowsOf(row *tablerow.Row) int {
	e, n := r.job.Engine, 1
	if e.Layout != nil && row.Own.Layout != "" {
		further, _ := e.Layout.Layout.Versions(row.Own.Layout) // reading the entity has validated the directory
		n += len(further)
	}
	return n * (1 + len(e.Copies))
}

func (r *Rewriting) unchanged() {
	if r.CountsAll {
		r.job.Add(func(p *entity.Report) { p.Unchanged++ })
	}
}

func (r *Rewriting) read() {
	if !r.CountsAll {
		r.job.Add(func(p *entity.Report) { p.Read++ })
	}
}

// mostBytes limits the bytes of a change set's rows, by the service's formula. As JSON, rows of this size fit into the 4 MiB of a
// transaction.
const mostBytes = 2 << 20

// group divides entities into change sets, each of one partition. It returns an entity that is the only one of
// its set in alone.
func (r *Rewriting) group(all []*old) (groups [][]*old, alone []*old) {
	type open struct{ at, room, size int }
	last := map[string]open{} // the last set of a partition, and the rows and bytes for which it has room
	for _, x := range all {
		set, known := last[x.key.Partition]
		if !known || set.room < x.rows || set.size < x.size {
			set = open{len(groups), r.job.Engine.BulkRows(), mostBytes}
			groups = append(groups, nil)
		}
		set.room -= x.rows
		set.size -= x.size
		last[x.key.Partition] = set
		groups[set.at] = append(groups[set.at], x)
	}
	several := groups[:0]
	for _, set := range groups {
		if len(set) == 1 {
			alone = append(alone, set...)
			continue
		}
		several = append(several, set)
	}
	return several, alone
}

// writeSet writes a set, each entity under its own ETag, and leaves out the entities because of which the
// service refuses the set. It sets done of those that it has written.
func (r *Rewriting) writeSet(ctx context.Context, set []*old) error {
	write := func(set []*old) error {
		err := r.locked(ctx, set, func() error { return r.commit(ctx, set) })
		for _, x := range set {
			x.done = err == nil
			x.unknown = errors.Is(err, entity.ErrUnknownOutcome)
		}
		if err == nil {
			r.job.Add(func(p *entity.Report) { p.Written += int64(len(set)) })
		}
		return err
	}
	_, err := division.Divided[*old]{
		Write: write,
		Refused: func(err error, set []*old) int {
			if e := engine.AsError(err); e != nil && e.Change <= len(set) {
				x := set[max(e.Change-1, 0)]
				x.stale = e.Change > 0 && pagejob.Retryable(ctx, err)
				return e.Change - 1
			}
			return -1
		},
		Ends: func(err error) bool {
			return ctx.Err() != nil || engine.Ends(err) || errors.Is(err, entity.ErrUnknownOutcome)
		},
	}.Run(set)
	if errors.Is(err, entity.ErrUnknownOutcome) && ctx.Err() == nil {
		return nil // each entity of the set is read and written again alone
	}
	return err
}

// locked calls write while no other goroutine of the job writes a row that the entities of set share with other
// entities.
func (r *Rewriting) locked(ctx context.Context, set []*old, write func() error) error {
	var names []string
	for _, x := range set {
		names = append(names, r.job.Engine.SharedBy(x.key, x.value)...)
	}
	release, err := r.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return write()
}

// commit writes entities in one transaction.
func (r *Rewriting) commit(ctx context.Context, set []*old) error {
	if r.AsStored {
		all := make([]*engine.Again, len(set))
		for i, x := range set {
			all[i] = &engine.Again{Key: x.key, Value: x.value, Row: x.row, Forgets: r.Forgets}
		}
		return r.job.Engine.WriteAgainTogether(ctx, r.job.Op, all)
	}
	changes := make([]*engine.Work, len(set))
	for i, x := range set {
		w, err := r.job.Engine.Replacing(r.job.Op, x.value)
		if err != nil {
			return errs.Amend(err, func(e *entity.Error) { e.Change = i + 1 })
		}
		w.Change.Kind, w.Change.Rewritten, changes[i] = r.Kind, true, w
	}
	if err := r.job.Engine.FetchOrphans(ctx, r.job.Op, changes); err != nil {
		return err
	}
	return r.job.Engine.NewSet(changes...).Run(ctx)
}

// writeAlone writes one entity. After a conflict or an unknown outcome it reads the entity again, and writes it if it is still in the old
// form.
func (r *Rewriting) writeAlone(ctx context.Context, x *old) error {
	for attempt := 0; ; attempt++ {
		if x.stale || x.unknown {
			if again, err := r.reload(ctx, x); err != nil || !again {
				return r.giveUp(ctx, x.key, err)
			}
		}
		err := r.locked(ctx, []*old{x}, func() error { return r.commit(ctx, []*old{x}) })
		if err == nil {
			r.job.Add(func(p *entity.Report) { p.Written++ })
			return nil
		}
		x.stale, x.unknown = true, errors.Is(err, entity.ErrUnknownOutcome)
		if !pagejob.Retryable(ctx, err) || attempt+1 >= r.job.Engine.Schema.MaxAttempts {
			return r.giveUp(ctx, x.key, err)
		}
		r.job.Add(func(p *entity.Report) { p.Conflicts++ })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
}

// reload reads an entity again. It returns false if the entity no longer exists, or if a concurrent writer has written it in
// the current form.
func (r *Rewriting) reload(ctx context.Context, x *old) (again bool, err error) {
	v, row, err := r.job.Engine.ReadOwn(ctx, r.job.Op, x.key)
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

// ofEntity reports whether an error concerns one entity, and not the service.
func ofEntity(_ *entity.Error, err error) bool {
	for _, kind := range []error{entity.ErrInvalid, entity.ErrWiring, entity.ErrTooLarge, entity.ErrGarbled, entity.ErrDuplicate, entity.ErrMissingReference, context.Canceled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.Is(err, entity.ErrConflict)
}

// giveUp reports an entity that could not be written, unless the error concerns the whole run.
func (r *Rewriting) giveUp(ctx context.Context, key entity.Key, err error) error {
	e := engine.AsError(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e == nil || !ofEntity(e, err):
		return err
	}
	if r.Failed != nil {
		r.Failed(key)
	}
	r.job.Add(func(p *entity.Report) { p.Failed++ })
	r.job.Report(pagejob.Problem{Undecodable: errors.Is(err, entity.ErrGarbled), Pattern: r.Pattern, Table: r.job.Engine.Table.Name(), Entity: key, Err: err})
	return nil
}
