package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// repairAll repairs findings: first those with spurious rows in the partition, which may block the other repairs, and last those with
// spurious rows elsewhere, since such a row may be the copy that another entity lacks. It repairs findings in groups, and those that remain
// one by one, concurrently.
func (j *job) repairAll(ctx context.Context, findings []*finding) error {
	var spurious, rest, elsewhere []*finding
	for _, f := range findings {
		switch {
		case f.Kind == entity.Undecodable:
			f.NotRepaired = f.Err
		case j.options.DryRun:
		case f.Kind == entity.Spurious && len(j.areas[f.site.area].outside) > 0:
			elsewhere = append(elsewhere, f)
		case f.Kind == entity.Spurious:
			spurious = append(spurious, f)
		default:
			rest = append(rest, f)
		}
	}
	for _, group := range [][]*finding{spurious, rest, elsewhere} {
		err := j.repairSets(ctx, group)
		if err == nil {
			alone := slices.DeleteFunc(slices.Clone(group), func(f *finding) bool { return f.Repaired })
			err = each(ctx, j.options.Concurrency, alone, func(ctx context.Context, f *finding) error {
				err := j.locked(ctx, j.shared(f), func() error { return j.repairFinding(ctx, f) })
				f.Repaired, f.NotRepaired = err == nil, err
				return fatal(ctx, err)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shared returns the names of the locks for the rows that the repair of findings writes and that other repairs
// may write, too.
func (j *job) shared(findings ...*finding) []string {
	var names []string
	for _, f := range findings {
		names = append(names, j.r.SharedBy(f.Entity, nil)...)
		if a := j.areas[f.site.area].auditor; a != nil {
			names = append(names, engine.HeldName(a, f.Location))
		}
	}
	return names
}

func (j *job) repairFinding(ctx context.Context, f *finding) error {
	a := &j.areas[f.site.area]
	removes, intends := a.auditor != nil && a.auditor.Effect.Remove != nil, a.auditor != nil && a.auditor.Effect.OutsideKeys != nil
	switch {
	case len(a.outside) > 0:
		return cmp.Or(j.agreeTogether(ctx, []*finding{f}), f.NotRepaired)
	case f.Kind == entity.Spurious && a.auditor == nil:
		return j.removeSpurious(ctx, f)
	case f.Kind == entity.Spurious && removes:
		return a.auditor.Effect.Remove(ctx, f.Location, f.Entity, func(ctx context.Context) (bool, error) {
			e, err := j.readEntity(ctx, f.Entity)
			if err != nil {
				return false, err
			}
			wanted, _, refused := j.wantedAt(f.site, e)
			return wanted != nil || refused || !e.known(), nil // keep the fact if it is unknown what the entity requires
		})
	case f.site.area == nearArea, a.auditor != nil && (removes || !intends && f.Kind != entity.Spurious):
		return j.rewrite(ctx, f)
	case intends:
		return reconcileOne(ctx, j.r, &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
	}
	return &entity.Error{Op: j.op, Table: j.r.Table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: entity.ErrInvalid,
		Err: errors.New("no entity requires what the pattern has stored, and its Implementation has neither Effect.Remove nor Effect.OutsideKeys; remove it by hand")}
}

// removeSpurious deletes the wrong row, unless nothing is wrong any more.
func (j *job) removeSpurious(ctx context.Context, f *finding) error {
	if f.wrong == nil {
		return nil
	}
	err := j.deleteTogether(ctx, []*finding{f})
	if err != nil {
		if is, _, _, failed := j.look(ctx, f.site); failed == nil && is == nil {
			return nil // another process has repaired it
		}
	}
	return err
}

// rewrite writes the entity of a finding again with all its rows, unless the discrepancy has disappeared.
func (j *job) rewrite(ctx context.Context, f *finding) error {
	return backoff.Retry(ctx, j.r.Schema.MaxAttempts, func() (again bool, err error) {
		is, _, _, err := j.look(ctx, f.site) // another process may have repaired it, or Repair itself together with another finding
		if err != nil || is == nil {
			return false, err
		}
		if is.Kind == entity.Spurious {
			return false, j.repairFinding(ctx, is) // the entity was deleted or changed meanwhile
		}
		err = j.r.RewriteNow(ctx, j.op, f.Entity)
		return engine.Lost(err), err
	})
}

// markedSite is a row that Repair has marked, since it was damaged.
type markedSite struct {
	*engine.Site
	table *core.Table
	at    time.Time
}

// agreeTogether makes rows of one table agree with their entities.
func (j *job) agreeTogether(ctx context.Context, all []*finding) error {
	sites := make([]*engine.Site, len(all))
	for i, f := range all {
		key, err := driver.SplitKey(f.site.place)
		if err != nil {
			return err
		}
		sites[i] = &engine.Site{Key: key, Entity: f.Entity}
	}
	err := j.agreeAll(ctx, all[0].site.area, sites)
	for i, s := range sites {
		all[i].Repaired, all[i].NotRepaired = err == nil && s.Err == nil, s.Err
	}
	return err
}

// mostAgreed is the number of rows, and of entities, that are read together to compare them.
const mostAgreed = 1000

// agreeAll makes rows of one area agree with their entities, and notes those that it has marked.
func (j *job) agreeAll(ctx context.Context, at int, all []*engine.Site) error {
	table := j.areas[at].table
	for sites := range slices.Chunk(all, mostAgreed) {
		if err := j.r.Agree(ctx, j.op, table, j.id, sites); err != nil {
			return err
		}
		j.mu.Lock()
		for _, s := range sites {
			if s.Mark != "" && len(j.marked) < mostMarked {
				j.marked = append(j.marked, &markedSite{s, table, time.Now()})
			}
		}
		j.mu.Unlock()
	}
	return nil
}

// mostMarked limits how many marks Repair settles itself. Whoever meets the others after the term settles them.
const mostMarked = 100_000

// settleMarked settles what the run has marked, once no change that was under way before can commit any more: it could have relied on a row
// that was damaged since.
func (j *job) settleMarked(ctx context.Context) error {
	for len(j.marked) > 0 {
		table, until := j.marked[0].table, j.marked[len(j.marked)-1].at.Add(marks.Term+marks.Grace)
		if lease.Holds(ctx, lease.Terms) {
			if err := backoff.Sleep(ctx, time.Until(until)); err != nil {
				return err
			}
		}
		var sites []*engine.Site
		rest := j.marked[:0:0]
		for _, m := range j.marked {
			if m.table == table {
				sites = append(sites, m.Site)
			} else {
				rest = append(rest, m)
			}
		}
		j.marked = rest
		if err := j.r.Settle(ctx, j.op, table, true, sites, nil); err != nil {
			return err
		}
	}
	return nil
}

// repairSet is a way to repair findings together.
type repairSet struct {
	name   string                                               // findings of one name are repaired together
	repair func(ctx context.Context, findings []*finding) error // repairs all findings or none, and marks those that are repaired
	most   int
}

// fewestTogether is the least number of findings that are repaired together. Fewer findings are repaired
// one by one, which costs little more.
const fewestTogether = 4

// repairSets repairs findings together, and marks those that it has repaired: spurious rows of a partition in
// one transaction, entities of a partition in one change set, and facts under one intent.
// The caller repairs the other findings one by one.
func (j *job) repairSets(ctx context.Context, findings []*finding) error {
	var chunks [][]*finding
	for _, all := range group(findings, func(f *finding) string { return j.setOf(f).name }) {
		set := j.setOf(all[0])
		if set.repair == nil {
			continue
		}
		if heavy(j.r) {
			set.most = min(set.most, mostHeavy)
		}
		for chunk := range slices.Chunk(all, set.most) {
			if len(chunk) >= fewestTogether {
				chunks = append(chunks, chunk)
			}
		}
	}
	return each(ctx, j.options.Concurrency, chunks, func(ctx context.Context, chunk []*finding) error {
		return j.locked(ctx, j.shared(chunk...), func() error { return j.repairTogether(ctx, chunk) })
	})
}

// setOf returns how a finding can be repaired together with others; the zero repairSet if it must be repaired alone.
func (j *job) setOf(f *finding) repairSet {
	a := &j.areas[f.site.area]
	switch {
	case len(a.outside) > 0:
		return repairSet{fmt.Sprintf("agree %d", f.site.area), j.agreeTogether, mostReconciled}
	case f.Kind == entity.Spurious && (a.auditor != nil || f.wrong == nil):
		return repairSet{}
	case f.Kind == entity.Spurious:
		return repairSet{fmt.Sprintf("delete %d\t%s", f.site.area, f.wrong.key.Partition), j.deleteTogether, entity.MaxTransactionOperations}
	case f.site.area == nearArea:
		return repairSet{"write " + f.Entity.Partition, j.rewriteTogether, max(1, j.r.BulkRows()/(1+len(j.r.Copies)))}
	case a.auditor != nil && a.auditor.Effect.OutsideKeys != nil && a.auditor.Effect.Remove == nil:
		return repairSet{"reconcile", j.reconcileTogether, mostReconciled}
	}
	return repairSet{}
}

// repairTogether repairs findings of one set. If the service refuses the set, it is divided, so that a finding that cannot be repaired delays
// only itself.
func (j *job) repairTogether(ctx context.Context, all []*finding) error {
	_, err := division.Divided[*finding]{
		Write: func(some []*finding) error {
			some = slices.DeleteFunc(slices.Clone(some), func(f *finding) bool { return f.Repaired })
			if len(some) == 0 {
				return nil // an earlier attempt has found nothing wrong at these sites
			}
			return j.setOf(some[0]).repair(ctx, some)
		},
		Ends: func(err error) bool {
			return ctx.Err() != nil || engine.Ends(err) || errors.Is(err, entity.ErrUnknownOutcome)
		},
	}.Run(all)
	if err != nil && ctx.Err() == nil {
		return fatal(ctx, err) // the caller rechecks and repairs each finding alone
	}
	return err
}

// deleteTogether deletes spurious rows of one partition, each under the ETag with which it was found wrong. A row that is wrong
// under an ETag stays wrong as long as it has that ETag, so a delayed delete is harmless.
func (j *job) deleteTogether(ctx context.Context, all []*finding) error {
	operations := make([]tablerow.Row, len(all))
	for i, f := range all {
		operations[i] = tablerow.Row{Verb: wire.VerbDelete, Key: f.wrong.key, IfMatch: azcore.ETag(f.wrong.etag), Pattern: f.Pattern}
	}
	_, _, err := j.areas[all[0].site.area].table.Commit(ctx, j.op, operations...)
	for _, f := range all {
		f.Repaired = err == nil
	}
	return err
}

// recheck reads the sites of findings again, and then their entities, several with one request; look does
// so for one finding. All are of rows in the entities' partitions. It marks the findings at whose sites nothing is wrong any more.
// It returns the findings that can be repaired together, and the entities by key.
func (j *job) recheck(ctx context.Context, all []*finding) (wrong []*finding, entities map[entity.Key]*seenEntity, err error) {
	var keys, owners []entity.Key
	for _, f := range all {
		keys = append(keys, entity.Key{Partition: f.Entity.Partition, Row: f.site.place})
		if !slices.Contains(owners, f.Entity) {
			owners = append(owners, f.Entity)
		}
	}
	rows, err := engine.FetchMany(ctx, j.r.Table, j.op, keys)
	if err != nil {
		return nil, nil, err
	}
	own, err := j.r.FetchOwnAll(ctx, j.op, owners)
	if err != nil {
		return nil, nil, err
	}
	entities = map[entity.Key]*seenEntity{}
	for i, key := range owners {
		if entities[key] = (&seenEntity{key: key}); own[i] == nil {
			continue
		}
		if entities[key], err = j.decode(ctx, own[i]); err != nil {
			return nil, nil, err
		}
	}
	for i, f := range all {
		p := &seenPlace{entity: f.Entity, row: rows[keys[i]]}
		is := j.compare(f.site, entities[f.Entity], p)
		switch e := entities[f.Entity]; {
		case is == nil:
			f.Repaired = e.known() // if it is unknown what the entity requires, the finding stays open
		case is.Kind != entity.Spurious && !e.gone() && p.occupant() == nil:
			wrong = append(wrong, f)
		}
	}
	return wrong, entities, nil
}

// rewriteTogether writes the entities of findings in their partition again, in one change set.
func (j *job) rewriteTogether(ctx context.Context, all []*finding) error {
	wrong, entities, err := j.recheck(ctx, all)
	if err != nil || len(wrong) == 0 {
		return err
	}
	var again []*engine.Again
	for _, f := range wrong {
		if slices.ContainsFunc(again, func(a *engine.Again) bool { return a.Key == f.Entity }) {
			continue
		}
		e := entities[f.Entity]
		row := e.row.With(slices.Clone(e.stored))
		row.Own.Copies = ""
		again = append(again, &engine.Again{Key: f.Entity, Value: e.value, Row: row, Orphans: true})
	}
	err = j.r.WriteAgainTogether(ctx, j.op, again)
	for _, f := range wrong {
		f.Repaired = err == nil
	}
	return err
}

// reconcileTogether reconciles facts that are missing or different, under one intent.
func (j *job) reconcileTogether(ctx context.Context, all []*finding) error {
	var again []*engine.Again
	var of [][]*finding
	for _, f := range all {
		at := slices.IndexFunc(again, func(a *engine.Again) bool { return a.Key == f.Entity })
		if at < 0 {
			at = len(again)
			again, of = append(again, &engine.Again{Key: f.Entity, Named: map[string][]string{}}), append(of, nil)
		}
		a := again[at]
		of[at], a.Named[f.Pattern] = append(of[at], f), append(a.Named[f.Pattern], f.Location)
	}
	err := j.r.RunReconcile(ctx, again)
	for i, a := range again {
		for _, f := range of[i] {
			f.Repaired = err == nil && a.Err == nil
		}
	}
	return err
}
