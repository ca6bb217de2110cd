package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// RefuseUnattached returns an error if the rows of p cannot be removed. others are the patterns that were given before p.
func RefuseUnattached(r *engine.Engine, p *driver.Implementation, others []*driver.Implementation) error {
	same := func(o *driver.Implementation) bool { return o.Name == p.Name }
	switch {
	case slices.ContainsFunc(r.Patterns, same):
		return errors.New("a pattern of this name is attached to the repository; detach it first")
	case slices.ContainsFunc(others, same):
		return errors.New("the name is given twice; give each pattern once")
	case p.Transform != nil || p.Layout != nil:
		return errors.New("the pattern has changed what entities store, which is not removed with its rows; write the entities without it first")
	case p.Copies == nil && p.Outside == nil && p.Rows == nil && p.Effect.List == nil:
		return errors.New("the pattern stores no rows; leave it out")
	}
	return nil
}

// found is a row that may belong to one of the patterns.
type found struct {
	row     *tablerow.Row
	table   *core.Table
	pattern *driver.Implementation // nil until the entity is known
	owner   entity.Key             // the zero Key for a row that entities share
	done    bool                   // the row was deleted
}

// RemoveUnattached removes the rows of patterns that are no longer attached to a repository.
//
// A run first rewrites the entities whose own rows list a pattern, which removes the name from the list, and
// then deletes the pattern's rows. So an entity never lists copies that were removed, and if the pattern is
// attached again, Rebuild finds what is missing. A run reads each of the pattern's rows before it reads the
// entity, and deletes the row under the ETag that it read. If a writer has changed the row since, the delete
// fails. A run may end at any point; another run continues. If it ends between the rewrite of an entity and the
// deletion of the rows, the next run finds the rows by their keys, although no list names them.
func RemoveUnattached(ctx context.Context, r *engine.Engine, patterns []*driver.Implementation, o *Options) (tally.Report, error) {
	j, err := newJob(r, Remove, o)
	if err != nil {
		return tally.Report{}, err
	}
	x := &removal{run: j, patterns: patterns, tables: []*core.Table{r.Table}}
	for _, p := range patterns {
		j.unattached = append(j.unattached, p.Name)
		if p.Outside != nil {
			x.addTable(engine.OutsideTable(p))
		}
		for _, t := range p.Tables {
			x.addTable((*core.Table)(t))
		}
	}
	j.parts = []part{x.part(r.Table, j.options.Partitions, false)}
	for _, t := range x.tables[1:] {
		j.parts = append(j.parts, x.part(t, nil, false))
	}
	if j.scope != nil && slices.ContainsFunc(patterns, func(p *driver.Implementation) bool { return p.Outside != nil && engine.OutsideTable(p).Same(r.Table) }) {
		j.parts = append(j.parts, x.part(r.Table, nil, true)) // rows of these entities may be in other partitions
	}
	return j.run(ctx, phasePages, false)
}

// removal is a run of RemoveUnattached.
type removal struct {
	run      *job
	patterns []*driver.Implementation
	tables   []*core.Table
}

func (r *removal) addTable(t *core.Table) {
	if t != nil && !slices.ContainsFunc(r.tables, func(o *core.Table) bool { return o.Same(t) }) {
		r.tables = append(r.tables, t)
	}
}

// part returns the scan of a table. If outside is set, it skips rows in the own partitions of their entities.
func (r *removal) part(table *core.Table, partitions []string, outside bool) part {
	return part{table: table, partitions: partitions, span: compoundkey.All(), row: keep(r.examines(table, outside)),
		process: func(ctx context.Context, p *page, _ rangescan.Range) error {
			return (&removed{r, p, table}).process(ctx, p.rows)
		}}
}

// examines returns a function that reports whether the run examines a row of a table.
func (r *removal) examines(table *core.Table, outside bool) func(*tablerow.Row) bool {
	return func(row *tablerow.Row) bool {
		if !row.Own.IsCopy {
			return !outside && table.Same(r.run.r.Table) && r.run.r.Owns(row) && r.lists(row)
		}
		f := r.rowOf(table, row)
		return f != nil && (!outside || row.Own.Outside.Is)
	}
}

// lists reports whether an entity's own row lists copies of one of the patterns.
func (r *removal) lists(row *tablerow.Row) bool {
	list := tablerow.CopyList(row.Own.Copies)
	return slices.ContainsFunc(r.patterns, func(p *driver.Implementation) bool { return list.Names(p.Name) || list.NamesElsewhere(p.Name) })
}

// rowOf returns a row as found if, by the row's own content, it may belong to one of the patterns, and nil
// for any other row.
func (r *removal) rowOf(table *core.Table, row *tablerow.Row) *found {
	f := &found{row: row, table: table}
	switch {
	case row.Own.IsShared && strings.HasPrefix(row.Key.Row, rows.BesidePrefix):
		return nil // a mark of a move or the lock of an outbox: its owner is no pattern, but may have the name of one
	case row.Own.IsShared:
		at := slices.IndexFunc(r.patterns, func(p *driver.Implementation) bool { return p.Name == row.Own.Shared })
		if at < 0 || r.run.scope != nil && (!table.Same(r.run.r.Table) || !r.run.scope[row.Key.Partition]) {
			return nil
		}
		f.pattern = r.patterns[at]
		return f
	case row.Own.Outside.Is:
		f.owner = entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}
		if !r.run.mine(f.owner) {
			return nil
		}
		for _, p := range r.patterns {
			if p.Outside != nil && engine.OutsideTable(p).Same(table) && owns(p, row.Key) {
				f.pattern = p
				return f
			}
		}
		return nil
	}
	f.owner = entity.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
	if !table.Same(r.run.r.Table) || !r.run.mine(f.owner) || row.Own.Layout == engine.FurtherRow && strings.HasPrefix(row.Key.Row, row.Own.Primary) {
		return nil
	}
	for _, p := range r.patterns {
		if p.Copies != nil && named(p.Name, row.Key.Row) {
			f.pattern = p
			return f
		}
	}
	attached := slices.ContainsFunc(r.run.r.Copies, func(p *driver.Implementation) bool { return named(p.Name, row.Key.Row) })
	if !attached && slices.ContainsFunc(r.patterns, func(p *driver.Implementation) bool { return p.Copies != nil }) {
		return f
	}
	return nil
}

// owns reports whether a copy in another partition belongs to a pattern, judging by the copy's key.
func owns(p *driver.Implementation, copied entity.Key) bool {
	if p.Outside.Owns != nil {
		return p.Outside.Owns(copied)
	}
	return named(p.Name, copied.Partition)
}

// removed is a page of a removal.
type removed struct {
	*removal
	*page
	table *core.Table
}

// process removes the patterns' rows of a page, after it has rewritten the page's entities that list the
// patterns. If concurrent writers change rows, it reads these rows again and repeats.
func (r *removed) process(ctx context.Context, page []*tablerow.Row) error {
	r.counts.Rows = int64(len(page))
	for attempt := 0; len(page) > 0; attempt++ {
		changed, err := r.once(ctx, page)
		if err != nil {
			return err
		}
		if attempt+1 >= r.r.Schema.MaxAttempts {
			for _, f := range changed {
				r.tellKept(f, &entity.Error{Op: r.op, Table: r.table.Name(), Key: f.row.Key, Kind: entity.ErrConflict, Err: errors.New("concurrent writers changed the row at each attempt; detach the pattern from the programs that write it, and repeat")})
			}
			return nil
		}
		if len(changed) == 0 {
			return nil
		}
		r.add(func(p *tally.Report) { p.Conflicts += int64(len(changed)) })
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
		if page, err = r.readAgain(ctx, changed); err != nil {
			return err
		}
	}
	return nil
}

// readAgain reads rows again that could not be deleted, and omits those that no longer exist or no longer belong to a pattern.
func (r *removed) readAgain(ctx context.Context, changed []*found) (page []*tablerow.Row, err error) {
	keys := make([]entity.Key, len(changed))
	for i, f := range changed {
		keys[i] = f.row.Key
	}
	read, err := engine.FetchMany(ctx, r.table, r.op, keys)
	for _, key := range keys {
		if row := read[key]; row != nil && row.Own.IsCopy && r.rowOf(r.table, row) != nil {
			page = append(page, row)
		}
	}
	return page, err
}

// once is one attempt of Process. It returns the rows that it could not delete because writers have changed
// them since they were read.
func (r *removed) once(ctx context.Context, page []*tablerow.Row) (changed []*found, err error) {
	var all []*found
	var owners []entity.Key
	listing := map[entity.Key]*tablerow.Row{}
	for _, row := range page {
		if !row.Own.IsCopy {
			listing[row.Key] = row
			continue
		}
		f := r.rowOf(r.table, row)
		if all = append(all, f); f.owner != (entity.Key{}) {
			owners = append(owners, f.owner)
		}
	}
	slices.SortFunc(owners, func(a, b entity.Key) int {
		return strings.Compare(a.Partition+"\x00"+a.Row, b.Partition+"\x00"+b.Row)
	})
	owners = slices.Compact(owners)
	own, err := r.r.FetchOwnAll(ctx, r.op, owners) // entities are read after their rows, so that a later change of the entity makes the rows' ETags outdated
	if err != nil {
		return nil, err
	}
	stored := map[entity.Key]*tablerow.Row{}
	others := map[entity.Key]bool{} // entities of another type in the same table; their copies stay
	for i, row := range own {
		switch {
		case row == nil:
		case !r.r.Owns(row):
			others[owners[i]] = true
		default:
			if stored[owners[i]] = row; r.lists(row) {
				listing[row.Key] = row
			}
		}
	}
	kept, err := r.unlist(ctx, listing)
	if err != nil {
		return nil, err
	}
	maps.Copy(kept, others)
	remove, err := r.decide(ctx, all, stored, kept)
	if err != nil {
		return nil, err
	}
	if r.options.DryRun {
		for _, f := range remove {
			r.tellRemoved(f)
		}
		return nil, nil
	}
	return r.remove(ctx, remove)
}

// unlist removes the unattached patterns from the list that each entity stores of its patterns with copies. To
// do so it rewrites each entity unchanged, since a write lists only the attached patterns. kept has the
// entities that unlist could not write; their rows are not removed.
func (r *removed) unlist(ctx context.Context, listing map[entity.Key]*tablerow.Row) (kept map[entity.Key]bool, err error) {
	kept = map[entity.Key]bool{}
	if r.options.DryRun || len(listing) == 0 {
		return kept, nil
	}
	page := make([]*tablerow.Row, 0, len(listing))
	for _, row := range listing {
		page = append(page, row)
	}
	slices.SortFunc(page, func(a, b *tablerow.Row) int {
		return strings.Compare(a.Key.Partition+"\x00"+a.Key.Row, b.Key.Partition+"\x00"+b.Key.Row)
	})
	var mu sync.Mutex
	w := &Rewriting{Kind: driver.ChangeTouch, asStored: true, CountsAll: true, forgets: r.unattached,
		Outdated: func(row *tablerow.Row, _ bool) (outdated, known bool) { return r.lists(row), true },
		skipped: func(key entity.Key) {
			mu.Lock()
			defer mu.Unlock()
			kept[key] = true
		}}
	return kept, w.page(ctx, r.page, page)
}

// decide returns the rows that belong to one of the patterns and that no attached pattern requires.
func (r *removed) decide(ctx context.Context, all []*found, stored map[entity.Key]*tablerow.Row, kept map[entity.Key]bool) (remove []*found, err error) {
	values := map[entity.Key]any{}
	for _, f := range all {
		row := stored[f.owner]
		switch {
		case kept[f.owner]:
			continue
		case row == nil: // entities share the row, or its entity does not exist
			if f.pattern != nil {
				remove = append(remove, f)
			}
			continue
		case f.pattern != nil && !r.disputed(f) && r.r.Schema.Own.Keyed():
			remove = append(remove, f)
			continue
		}
		v, known := values[f.owner]
		if !known {
			if v, _, err = r.r.LoadStored(ctx, r.r.Table, row, nil, nil); err != nil {
				if e := engine.AsError(err); e == nil || !errors.Is(err, entity.ErrGarbled) && !errors.Is(err, entity.ErrInvalid) && !errors.Is(err, entity.ErrWiring) {
					return nil, err
				}
				r.tellKept(f, err)
				continue
			}
			values[f.owner] = v
		}
		if v == nil || r.r.Schema.Key(v) != f.owner {
			continue // the entity was deleted meanwhile, and another run deletes the row; or it is an entity of another type
		}
		ours, err := r.ours(f, v)
		if err != nil {
			r.tellKept(f, err)
		} else if ours {
			remove = append(remove, f)
		}
	}
	return remove, nil
}

// disputed reports whether an attached pattern may have written a row.
func (r *removed) disputed(f *found) bool {
	if !f.row.Own.Outside.Is {
		return len(r.r.Copies) > 0
	}
	return slices.ContainsFunc(r.r.Outside, func(p *driver.Implementation) bool {
		return engine.OutsideTable(p).Same(f.table) && (p.Outside.Owns == nil || p.Outside.Owns(f.row.Key))
	})
}

// ours reports whether a row belongs to one of the patterns, and no attached pattern requires it for the entity.
func (r *removed) ours(f *found, v any) (bool, error) {
	requires := func(p *driver.Implementation) (bool, error) {
		if f.row.Own.Outside.Is {
			copies, err := engine.CopiesOf(v).Outside(p)
			return slices.ContainsFunc(copies, func(c driver.OutsideCopy) bool { return c.Key == f.row.Key }), err
		}
		copies, err := engine.CopiesOf(v).Near(p)
		return slices.ContainsFunc(copies, func(c driver.Copy) bool {
			return c.RowKey == f.row.Key.Row || f.row.Own.Layout == engine.FurtherRow && strings.HasPrefix(f.row.Key.Row, c.RowKey)
		}), err
	}
	attached := r.r.Copies
	if f.row.Own.Outside.Is {
		attached = slices.DeleteFunc(slices.Clone(r.r.Outside), func(p *driver.Implementation) bool { return !engine.OutsideTable(p).Same(f.table) })
	}
	for _, p := range attached {
		if required, err := requires(p); err != nil || required {
			return false, err // a pattern that now rejects the entity may have written the row earlier
		}
	}
	for _, p := range r.patterns {
		if f.pattern == nil && p.Copies != nil {
			if required, err := requires(p); err == nil && required {
				f.pattern = p
			}
		}
	}
	return f.pattern != nil, nil
}

// remove deletes rows, each under the ETag with which it was read, in one transaction for up to 100 rows of a
// partition. It returns the rows that have changed since.
func (r *removed) remove(ctx context.Context, all []*found) (changed []*found, err error) {
	var chunks [][]*found
	for _, partition := range group(all, func(f *found) string { return f.row.Key.Partition }) {
		chunks = slices.AppendSeq(chunks, slices.Chunk(partition, entity.MaxTransactionOperations))
	}
	var mu sync.Mutex
	err = eachSlot(ctx, r.job, chunks, func(ctx context.Context, chunk []*found) error {
		alone, err := division.Divided[*found]{
			Write:   func(some []*found) error { return r.delete(ctx, some) },
			Refused: func(err error, _ []*found) int { return refusedAt(err) },
			Ends: func(err error) bool {
				return ctx.Err() != nil || engine.Ends(err) || errors.Is(err, entity.ErrUnknownOutcome)
			},
		}.Run(chunk)
		if errors.Is(err, entity.ErrUnknownOutcome) && ctx.Err() == nil { // the caller reads all these rows again, since they may still exist
			mu.Lock()
			defer mu.Unlock()
			for _, f := range chunk {
				if !f.done {
					changed = append(changed, f)
				}
			}
			return nil
		}
		for _, f := range alone {
			if err != nil {
				break
			}
			switch e := r.delete(ctx, []*found{f}); {
			case e == nil || errors.Is(e, entity.ErrNotFound):
			case errors.Is(e, entity.ErrConflict) || errors.Is(e, entity.ErrUnknownOutcome):
				mu.Lock()
				changed = append(changed, f)
				mu.Unlock()
			default:
				err = e
			}
		}
		return err
	})
	return changed, err
}

// refusedAt returns the index of the refused row in its transaction, -1 if it is unknown.
func refusedAt(err error) int {
	if e := engine.AsError(err); e != nil {
		return e.Change - 1
	}
	return -1
}

// delete deletes rows of one partition in one transaction.
func (r *removed) delete(ctx context.Context, all []*found) error {
	operations := make([]tablerow.Row, len(all))
	for i, f := range all {
		operations[i] = tablerow.Row{Verb: wire.VerbDelete, Key: f.row.Key, IfMatch: f.row.ETag, Pattern: f.pattern.Name}
	}
	if _, _, err := r.table.Commit(ctx, r.op, operations...); err != nil {
		return err
	}
	r.add(func(p *tally.Report) { p.Deleted += int64(len(all)) })
	for _, f := range all {
		f.done = true
		r.tellRemoved(f)
	}
	return nil
}

// tellRemoved reports a row that was removed, or that a dry run would remove, to the job's caller.
func (r *removed) tellRemoved(f *found) {
	r.report(entity.Finding{Kind: entity.Spurious, Pattern: f.pattern.Name, Table: r.table.Name(), Location: location(f), Entity: f.owner, Repaired: !r.options.DryRun})
}

// tellKept reports a row that could not be removed to the job's caller.
func (r *removed) tellKept(f *found, err error) {
	is := entity.Finding{Kind: entity.Spurious, Table: r.table.Name(), Location: location(f), Entity: f.owner, Err: err}
	if f.pattern != nil {
		is.Pattern = f.pattern.Name
	}
	r.problem(is)
}

// location returns the location of a row in the form that findings use.
func location(f *found) string {
	if f.owner.Partition == f.row.Key.Partition && !f.row.Own.Outside.Is {
		return f.row.Key.Row
	}
	return driver.JoinKey(f.row.Key)
}
