package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// repairAll repairs findings: first those with spurious rows in the partition, which may block the other repairs, and last those with
// spurious rows elsewhere, since such a row may be the copy that another entity lacks. It repairs findings in groups, and those that remain
// one by one, concurrently.
func (v *verifier) repairAll(ctx context.Context, findings []*finding) error {
	var spurious, rest, elsewhere []*finding
	for _, f := range findings {
		switch {
		case f.Kind == Undecodable:
			f.NotRepaired = f.Err
		case v.options.DryRun:
		case f.Kind == Spurious && len(v.areas[f.site.area].outside) > 0:
			elsewhere = append(elsewhere, f)
		case f.Kind == Spurious:
			spurious = append(spurious, f)
		default:
			rest = append(rest, f)
		}
	}
	for _, group := range [][]*finding{spurious, rest, elsewhere} {
		err := v.repairSets(ctx, group)
		if err == nil {
			alone := slices.DeleteFunc(slices.Clone(group), func(f *finding) bool { return f.Repaired })
			err = pagejob.Each(ctx, v.options.Concurrency, alone, func(ctx context.Context, f *finding) error {
				err := v.locked(ctx, v.shared(f), func() error { return v.repairFinding(ctx, f) })
				f.Repaired, f.NotRepaired = err == nil, err
				return fatal(ctx, err)
			})
		}
		for _, f := range group {
			if f.Repaired {
				v.state.Repaired++
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fatal returns an error that ends the run, or nil if err concerns only one entity.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, kind := range []error{tables.ErrDenied, tables.ErrMissingResource, tables.ErrBeingDeleted} {
		if errors.Is(err, kind) {
			return err
		}
	}
	return nil
}

// locked calls write while it holds the locks with these names, so that no other goroutine of the run writes
// the same shared rows. Engine.SharedBy and engine.HeldName return the names.
func (v *verifier) locked(ctx context.Context, names []string, write func() error) error {
	release, err := v.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	return write()
}

// shared returns the names of the locks for the rows that the repair of findings writes and that other repairs
// may write, too.
func (v *verifier) shared(findings ...*finding) []string {
	var names []string
	for _, f := range findings {
		names = append(names, v.r.SharedBy(f.Entity, nil)...)
		if a := v.areas[f.site.area].auditor; a != nil {
			names = append(names, engine.HeldName(a, f.Location))
		}
	}
	return names
}

func (v *verifier) repairFinding(ctx context.Context, f *finding) error {
	a := &v.areas[f.site.area]
	removes, intends := a.auditor != nil && a.auditor.Effect.Remove != nil, a.auditor != nil && a.auditor.Effect.OutsideKeys != nil
	switch {
	case len(a.outside) > 0:
		return v.agree(ctx, f)
	case f.Kind == Spurious && a.auditor == nil:
		return v.removeSpurious(ctx, f)
	case f.Kind == Spurious && removes:
		return a.auditor.Effect.Remove(ctx, f.Location, f.Entity, func(ctx context.Context) (bool, error) {
			e, err := v.readEntity(ctx, f.Entity)
			if err != nil {
				return false, err
			}
			wanted, refused := wantedHeld(a.auditor, e, f.Location)
			return wanted != nil || refused || !e.known(), nil // keep the fact if it is unknown what the entity requires
		})
	case f.site.area == nearArea, a.auditor != nil && (removes || !intends && f.Kind != Spurious):
		return v.rewrite(ctx, f)
	case intends:
		return reconcileOne(ctx, v.r, &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
	}
	return &tables.Error{Op: v.op, Table: v.r.Table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: tables.ErrInvalid,
		Err: errors.New("no entity requires what the pattern has stored, and its Implementation has neither Effect.Remove nor Effect.OutsideKeys; remove it by hand")}
}

// wrongStill checks a finding again, since another process may have repaired it, or Repair itself together with
// another finding. It returns the finding as it is now, or nil if nothing is wrong, and the content of its
// site. For a finding that needs no Lag, this one check proves that it exists. For any other finding, confirm
// has already waited for Lag.
func (v *verifier) wrongStill(ctx context.Context, f *finding) (*finding, *seenPlace, error) {
	s := &candidate{site: f.site}
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return nil, nil, err
	}
	return v.compare(s, e, p), p, nil
}

// removeSpurious deletes the wrong row under the ETag with which it was found wrong. A row that is wrong
// under an ETag stays wrong as long as it has that ETag, so a delayed delete is harmless.
func (v *verifier) removeSpurious(ctx context.Context, f *finding) error {
	if f.wrong == nil {
		return nil
	}
	_, _, err := v.areas[f.site.area].table.Commit(ctx, v.op, f.delete())
	if err == nil {
		return nil
	}
	is, _, again := v.wrongStill(ctx, f)
	if again == nil && is == nil {
		return nil // nothing is wrong any more, so another process has repaired it
	}
	return err
}

// delete returns the operation that deletes the wrong row.
func (f *finding) delete() tablerow.Row {
	return tablerow.Row{Verb: wire.VerbDelete, Key: f.wrong.key, IfMatch: azcore.ETag(f.wrong.etag), Pattern: f.Pattern}
}

// rewrite writes the entity of a finding again with all its rows, unless the discrepancy has disappeared.
func (v *verifier) rewrite(ctx context.Context, f *finding) error {
	return backoff.Retry(ctx, v.r.Schema.MaxAttempts, func() (again bool, err error) {
		is, _, err := v.wrongStill(ctx, f)
		if err != nil || is == nil {
			return false, err
		}
		if is.Kind == Spurious {
			return false, v.repairFinding(ctx, is) // the entity was deleted or changed meanwhile
		}
		err = v.r.RewriteNow(ctx, v.op, f.Entity)
		return engine.Lost(err), err
	})
}

// markedSite is a row that Repair has marked, since it was damaged.
type markedSite struct {
	*engine.Site
	table *core.Table
	at    time.Time
}

// agree makes the row of a finding in another partition agree with its entity.
func (v *verifier) agree(ctx context.Context, f *finding) error {
	if err := v.agreeTogether(ctx, []*finding{f}); err != nil {
		return err
	}
	return f.NotRepaired
}

// agreeTogether makes rows of one table agree with their entities.
func (v *verifier) agreeTogether(ctx context.Context, all []*finding) error {
	sites := make([]*engine.Site, len(all))
	for i, f := range all {
		key, err := driver.SplitKey(f.site.place)
		if err != nil {
			return err
		}
		sites[i] = &engine.Site{Key: key, Entity: f.Entity}
	}
	err := v.agreeAll(ctx, all[0].site.area, sites)
	for i, s := range sites {
		all[i].Repaired, all[i].NotRepaired = err == nil && s.Err == nil, s.Err
	}
	return err
}

// mostAgreed is the number of rows, and of entities, that are read together to compare them.
const mostAgreed = 1000

// agreeAll makes rows of one area agree with their entities, and notes those that it has marked.
func (v *verifier) agreeAll(ctx context.Context, at int, all []*engine.Site) error {
	table := v.areas[at].table
	for sites := range slices.Chunk(all, mostAgreed) {
		if err := v.r.Agree(ctx, v.op, table, v.id, sites); err != nil {
			return err
		}
		v.mu.Lock()
		for _, s := range sites {
			if s.Mark != "" && len(v.marked) < mostMarked {
				v.marked = append(v.marked, &markedSite{s, table, time.Now()})
			}
		}
		v.mu.Unlock()
	}
	return nil
}

// mostMarked limits how many marks Repair settles itself. Whoever meets the others after the term settles them.
const mostMarked = 100_000

// settleMarked settles what the run has marked, once no change that was under way before can commit any more: it could have relied on a row
// that was damaged since.
func (v *verifier) settleMarked(ctx context.Context) error {
	for len(v.marked) > 0 {
		table, until := v.marked[0].table, v.marked[len(v.marked)-1].at.Add(marks.Term+marks.Grace)
		if lease.Holds(ctx, lease.Terms) {
			if err := backoff.Sleep(ctx, time.Until(until)); err != nil {
				return err
			}
		}
		var sites []*engine.Site
		rest := v.marked[:0:0]
		for _, m := range v.marked {
			if m.table == table {
				sites = append(sites, m.Site)
			} else {
				rest = append(rest, m)
			}
		}
		v.marked = rest
		if err := v.r.Settle(ctx, v.op, table, true, sites, nil); err != nil {
			return err
		}
	}
	return nil
}

// repairSet holds findings that are repaired together in the same way.
type repairSet struct {
	repair func(ctx context.Context, findings []*finding) error // repairs all findings or none, and marks those that are repaired
	most   int
	all    []*finding
}

// repairSets repairs findings together, and marks those that it has repaired: spurious rows of a partition in
// one transaction, entities of a partition in one change set, and facts under one intent.
// The caller repairs the other findings one by one.
func (v *verifier) repairSets(ctx context.Context, findings []*finding) error {
	var order []string
	grouped := map[string]*repairSet{}
	for _, f := range findings {
		name, s := v.setOf(f)
		if s == nil {
			continue
		}
		if grouped[name] == nil {
			order, grouped[name] = append(order, name), s
		}
		grouped[name].all = append(grouped[name].all, f)
	}
	var chunks []*repairSet
	for _, name := range order {
		s := grouped[name]
		if pagejob.Heavy(v.r) {
			s.most = min(s.most, pagejob.MostHeavy)
		}
		for chunk := range slices.Chunk(s.all, s.most) {
			if len(chunk) >= fewestTogether {
				chunks = append(chunks, &repairSet{repair: s.repair, all: chunk})
			}
		}
	}
	return pagejob.Each(ctx, v.options.Concurrency, chunks, func(ctx context.Context, s *repairSet) error {
		return v.locked(ctx, v.shared(s.all...), func() error { return s.run(ctx) })
	})
}

// setOf returns the name of the group with which a finding can be repaired, and an empty set for that group. It
// returns a nil set if the finding must be repaired alone.
func (v *verifier) setOf(f *finding) (name string, s *repairSet) {
	a := &v.areas[f.site.area]
	switch {
	case len(a.outside) > 0:
		return fmt.Sprintf("agree %d", f.site.area), &repairSet{repair: v.agreeTogether, most: mostReconciled}
	case f.Kind == Spurious && a.auditor == nil:
		if f.wrong == nil {
			return "", nil
		}
		return fmt.Sprintf("delete %d\t%s", f.site.area, f.wrong.key.Partition), &repairSet{repair: v.deleteTogether, most: tables.MaxTransactionOperations}
	case f.Kind == Spurious:
		return "", nil
	case f.site.area == nearArea:
		return "write " + f.Entity.Partition, &repairSet{repair: v.rewriteTogether, most: max(1, v.r.BulkRows()/(1+len(v.r.Copies)))}
	case a.auditor != nil && a.auditor.Effect.OutsideKeys != nil && a.auditor.Effect.Remove == nil:
		return "reconcile", &repairSet{repair: v.reconcileTogether, most: mostReconciled}
	}
	return "", nil
}

// run repairs the set. If the service refuses the set, run divides it, so that a finding that cannot be repaired delays
// only itself.
func (s *repairSet) run(ctx context.Context) error {
	_, err := division.Divided[*finding]{
		Write: func(all []*finding) error {
			all = slices.DeleteFunc(slices.Clone(all), func(f *finding) bool { return f.Repaired })
			if len(all) == 0 {
				return nil // an earlier attempt has found nothing wrong at these sites
			}
			return s.repair(ctx, all)
		},
		Ends: func(err error) bool {
			return ctx.Err() != nil || engine.Ends(err) || errors.Is(err, tables.ErrUnknownOutcome)
		},
	}.Run(s.all)
	if err != nil && ctx.Err() == nil {
		return fatal(ctx, err) // the caller rechecks and repairs each finding alone
	}
	return err
}

// deleteTogether deletes spurious rows of one partition, each under the ETag with which it was found wrong.
func (v *verifier) deleteTogether(ctx context.Context, all []*finding) error {
	var operations []tablerow.Row
	for _, f := range all {
		operations = append(operations, f.delete())
	}
	_, _, err := v.areas[all[0].site.area].table.Commit(ctx, v.op, operations...)
	for _, f := range all {
		f.Repaired = err == nil
	}
	return err
}

// recheck reads the sites of findings again, and then their entities, several with one request; wrongStill does
// so for one finding. All are of rows in the entities' partitions. It marks the findings at whose sites nothing is wrong any more.
// It returns the findings that can be repaired together, and the entities by key.
func (v *verifier) recheck(ctx context.Context, all []*finding) (wrong []*finding, entities map[tables.Key]*seenEntity, err error) {
	var keys, owners []tables.Key
	for _, f := range all {
		keys = append(keys, tables.Key{Partition: f.Entity.Partition, Row: f.site.place})
		if !slices.Contains(owners, f.Entity) {
			owners = append(owners, f.Entity)
		}
	}
	rows, err := engine.FetchMany(ctx, v.r.Table, v.op, keys)
	if err != nil {
		return nil, nil, err
	}
	own, err := v.r.FetchOwnAll(ctx, v.op, owners)
	if err != nil {
		return nil, nil, err
	}
	entities = map[tables.Key]*seenEntity{}
	for i, key := range owners {
		if entities[key] = (&seenEntity{key: key}); own[i] == nil {
			continue
		}
		if entities[key], err = v.decode(ctx, own[i]); err != nil {
			return nil, nil, err
		}
	}
	for i, f := range all {
		p := &seenPlace{entity: f.Entity, row: rows[keys[i]]}
		is := v.compare(&candidate{site: f.site}, entities[f.Entity], p)
		switch e := entities[f.Entity]; {
		case is == nil:
			f.Repaired = e.known() // if it is unknown what the entity requires, the finding stays open
		case is.Kind != Spurious && !e.gone() && p.occupant() == nil:
			wrong = append(wrong, f)
		}
	}
	return wrong, entities, nil
}

// rewriteTogether writes the entities of findings in their partition again, in one change set.
func (v *verifier) rewriteTogether(ctx context.Context, all []*finding) error {
	wrong, entities, err := v.recheck(ctx, all)
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
	err = v.r.WriteAgainTogether(ctx, v.op, again)
	for _, f := range wrong {
		f.Repaired = err == nil
	}
	return err
}

// reconcileTogether reconciles facts that are missing or different, under one intent.
func (v *verifier) reconcileTogether(ctx context.Context, all []*finding) error {
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
	err := v.r.RunReconcile(ctx, again)
	for i, a := range again {
		for _, f := range of[i] {
			f.Repaired = err == nil && a.Err == nil
		}
	}
	return err
}
