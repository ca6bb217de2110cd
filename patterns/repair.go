package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// repairAll repairs findings: first those with spurious rows, which may block the other repairs. It repairs
// findings in groups, and those that remain one by one, concurrently.
func (v *verifier) repairAll(ctx context.Context, findings []*finding) error {
	var spurious, rest []*finding
	for _, f := range findings {
		switch {
		case f.Kind == Undecodable:
			f.NotRepaired = f.Err
		case v.options.DryRun:
		case f.Kind == Spurious:
			spurious = append(spurious, f)
		default:
			rest = append(rest, f)
		}
	}
	for _, group := range [][]*finding{spurious, rest} {
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
	removes, intends := a.auditor != nil && a.auditor.Audit.Remove != nil, a.auditor != nil && a.auditor.OutsideKeys != nil
	switch {
	case f.Kind == Spurious && a.auditor == nil:
		return v.removeSpurious(ctx, f)
	case f.Kind == Spurious && removes:
		return a.auditor.Audit.Remove(ctx, f.Location, f.Entity, func(ctx context.Context) (bool, error) {
			e, err := v.readEntity(ctx, f.Entity)
			if err != nil {
				return false, err
			}
			wanted, refused := wantedHeld(a.auditor, e, f.Location)
			return wanted != nil || refused || !e.known(), nil // keep the fact if it is unknown what the entity requires
		})
	case f.site.area == nearArea, a.auditor != nil && (removes || !intends && f.Kind != Spurious):
		return v.rewrite(ctx, f)
	case a.auditor == nil:
		return v.repairOutside(ctx, f)
	case intends:
		return reconcileOne(ctx, v.r, "", &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
	}
	return &tables.Error{Op: v.op, Table: v.r.Table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: tables.ErrInvalid,
		Err: errors.New("no entity requires what the pattern has stored, and its Implementation has neither Audit.Remove nor OutsideKeys; remove it by hand")}
}

// wrongStill checks a finding again, since another process may have repaired it, or Repair itself together with
// another finding. It returns the finding as it is now, or nil if nothing is wrong, and the content of its
// site. For a finding that needs no Lag, this one check proves that it exists. For any other finding, confirm
// has already waited for Lag.
func (v *verifier) wrongStill(ctx context.Context, f *finding) (*finding, *seenPlace, error) {
	s := &candidate{site: f.site, extraClaims: f.extraClaims}
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

// removeSpurious deletes the wrong rows under the ETags with which they were found wrong. A row that is wrong
// under an ETag stays wrong as long as it has that ETag, so a delayed delete is harmless.
func (v *verifier) removeSpurious(ctx context.Context, f *finding) error {
	if errors.Is(f.Err, errNoTerm) {
		return &tables.Error{Op: v.op, Table: v.areas[f.site.area].table.Name(), Key: f.Entity, Pattern: f.Pattern, Kind: tables.ErrConflict, Err: errNoTerm}
	}
	table := v.areas[f.site.area].table
	var operations []tablerow.Row
	for _, e := range f.wrongRows {
		if e.misplaced {
			if err := v.removeMisplaced(ctx, table, e); err != nil {
				return err
			}
			continue
		}
		operations = append(operations, tablerow.Row{Verb: wire.VerbDelete, Key: e.key, IfMatch: azcore.ETag(e.etag), Pattern: f.Pattern})
	}
	if len(operations) == 0 {
		return nil
	}
	_, _, err := table.Commit(ctx, v.op, operations...)
	if err == nil {
		return nil
	}
	is, _, again := v.wrongStill(ctx, f)
	if again == nil && is == nil {
		return nil // nothing is wrong any more, so another process has repaired it
	}
	return err
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

// repairOutside removes the spurious rows under the key of an outside copy, then writes the copy that the
// entity requires.
func (v *verifier) repairOutside(ctx context.Context, f *finding) error {
	is, p, err := v.wrongStill(ctx, f)
	if err != nil || is == nil {
		return err
	}
	if is.Kind == Spurious {
		return v.removeSpurious(ctx, f)
	}
	if p.occupant() != nil {
		if err := v.evict(ctx, f, p.row); err != nil {
			return err
		}
	}
	if junk := p.junk(); len(junk) > 0 {
		if err := v.removeSpurious(ctx, &finding{Finding: f.Finding, site: f.site, extraClaims: f.extraClaims, wrongRows: junk}); err != nil {
			return err
		}
	}
	if is.Err == errLeftOver {
		return nil
	}
	change := ""
	if own := p.own(); own != nil {
		change = own.Own.Outside.Reserved
	}
	return reconcileOne(ctx, v.r, change, &engine.Again{Key: f.Entity, Named: map[string][]string{f.Pattern: {f.Location}}})
}

// junk returns the rows that block the required copy: claims of reservations. It leaves out the claim of the
// reserved row itself, since filling the row removes that claim. junk never contains the reserved row: if the
// key were free for a moment, another entity could take it.
func (p *seenPlace) junk() []rowVersion {
	var junk []rowVersion
	for _, extraClaim := range p.extraClaims {
		if p.reserved() && extraClaim.Key == engine.ClaimKey(p.row.Key, p.entity, p.row.Own.Outside.Reserved) {
			continue
		}
		junk = append(junk, rowVersionOf(extraClaim))
	}
	return junk
}

// evict removes the row that blocks a copy, if that row is itself a copy and its entity does not require it.
// Otherwise it returns ErrDuplicate.
func (v *verifier) evict(ctx context.Context, f *finding, row *tablerow.Row) error {
	taken := &tables.Error{Op: v.op, Table: v.areas[f.site.area].table.Name(), Key: row.Key, Pattern: f.Pattern, Kind: tables.ErrDuplicate, Err: engine.OwnerOf(row)}
	owner := tables.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}
	if !row.Own.Outside.Is || row.Own.IsShared || row.Own.Outside.IsClaim || !v.r.Schema.Own.Keeps(owner) {
		return taken
	}
	s := &candidate{site: site{f.site.area, f.Location, owner}}
	if err := v.inspectFirst(ctx, s); err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, v.areas[s.area].lag); err != nil {
		return err
	}
	if err := v.inspectAgain(ctx, s); err != nil {
		return err
	}
	if s.is == nil || s.is.Kind != Spurious {
		return taken
	}
	return v.removeSpurious(ctx, s.is)
}

// repairSet holds findings that are repaired together in the same way.
type repairSet struct {
	repair func(ctx context.Context, findings []*finding) error // repairs all findings or none, and marks those that are repaired
	most   int
	all    []*finding
}

// repairSets repairs findings together, and marks those that it has repaired: spurious rows of a partition in
// one transaction, entities of a partition in one change set, and outside copies and facts under one intent.
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
	case f.Kind == Spurious && a.auditor == nil:
		if errors.Is(f.Err, errNoTerm) || len(f.wrongRows) == 0 || slices.ContainsFunc(f.wrongRows, func(e rowVersion) bool { return e.misplaced }) {
			return "", nil
		}
		// An outside finding has at most three rows: a copy, its claim and one more claim.
		return fmt.Sprintf("delete %d\t%s", f.site.area, f.wrongRows[0].key.Partition), &repairSet{repair: v.deleteTogether, most: tables.MaxTransactionOperations / max(len(f.wrongRows), 1)}
	case f.Kind == Spurious:
		return "", nil
	case f.site.area == nearArea:
		return "write " + f.Entity.Partition, &repairSet{repair: v.rewriteTogether, most: max(1, v.r.BulkRows()/(1+len(v.r.Copies)))}
	case a.auditor == nil && len(f.extraClaims) == 0, a.auditor != nil && a.auditor.OutsideKeys != nil && a.auditor.Audit.Remove == nil:
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
		for _, e := range f.wrongRows {
			operations = append(operations, tablerow.Row{Verb: wire.VerbDelete, Key: e.key, IfMatch: azcore.ETag(e.etag), Pattern: f.Pattern})
		}
	}
	_, _, err := v.areas[all[0].site.area].table.Commit(ctx, v.op, operations...)
	for _, f := range all {
		f.Repaired = err == nil
	}
	return err
}

// recheck reads the sites of findings again, and then their entities, several with one request; wrongStill does
// so for one finding. It marks the findings at whose sites nothing is wrong any more. It returns the findings
// that can be repaired together, the content of the site of each, and the entities by key.
func (v *verifier) recheck(ctx context.Context, all []*finding) (wrong []*finding, places []*seenPlace, entities map[tables.Key]*seenEntity, err error) {
	table, near := v.areas[all[0].site.area].table, all[0].site.area == nearArea
	keysOf := func(f *finding) (copied, claim tables.Key) {
		if near {
			return tables.Key{Partition: f.Entity.Partition, Row: f.site.place}, tables.Key{}
		}
		copied, _ = driver.SplitKey(f.site.place) // it is valid, since a scan has read it
		return copied, engine.ClaimKey(copied, f.Entity, "")
	}
	var keys, owners []tables.Key
	for _, f := range all {
		copied, claim := keysOf(f)
		if keys = append(keys, copied); !near {
			keys = append(keys, claim)
		}
		if !slices.Contains(owners, f.Entity) {
			owners = append(owners, f.Entity)
		}
	}
	rows, err := engine.FetchMany(ctx, table, v.op, keys)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := v.r.FetchOwnAll(ctx, v.op, owners)
	if err != nil {
		return nil, nil, nil, err
	}
	entities = map[tables.Key]*seenEntity{}
	for i, key := range owners {
		if entities[key] = (&seenEntity{key: key}); own[i] == nil {
			continue
		}
		if entities[key], err = v.decode(ctx, own[i]); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, f := range all {
		copied, claim := keysOf(f)
		p := &seenPlace{entity: f.Entity, row: rows[copied], claim: rows[claim]}
		is := v.compare(&candidate{site: f.site}, entities[f.Entity], p)
		switch e := entities[f.Entity]; {
		case is == nil:
			f.Repaired = e.known() // if it is unknown what the entity requires, the finding stays open
		case is.Kind != Spurious && !e.gone() && !p.reserved() && p.occupant() == nil:
			wrong, places = append(wrong, f), append(places, p)
		}
	}
	return wrong, places, entities, nil
}

// rewriteTogether writes the entities of findings in their partition again, in one change set.
func (v *verifier) rewriteTogether(ctx context.Context, all []*finding) error {
	wrong, _, entities, err := v.recheck(ctx, all)
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

// reconcileTogether reconciles outside copies and facts that are missing or different, under one intent.
func (v *verifier) reconcileTogether(ctx context.Context, all []*finding) error {
	var again []*engine.Again
	var of [][]*finding
	add := func(f *finding, free bool) {
		at := slices.IndexFunc(again, func(a *engine.Again) bool { return a.Key == f.Entity })
		if at < 0 {
			at = len(again)
			again, of = append(again, &engine.Again{Key: f.Entity, Named: map[string][]string{}, Free: map[string]bool{}}), append(of, nil)
		}
		a := again[at]
		of[at], a.Named[f.Pattern] = append(of[at], f), append(a.Named[f.Pattern], f.Location)
		if free {
			a.Free[f.Pattern+"\t"+f.Location] = true
		}
	}
	copies := map[int][]*finding{} // by area
	for _, f := range all {
		if v.areas[f.site.area].auditor != nil {
			add(f, false)
			continue
		}
		copies[f.site.area] = append(copies[f.site.area], f)
	}
	for at := range v.areas {
		if len(copies[at]) == 0 {
			continue
		}
		wrong, places, _, err := v.recheck(ctx, copies[at])
		if err != nil {
			return err
		}
		for i, f := range wrong {
			add(f, places[i].row == nil && places[i].claim == nil)
		}
	}
	if len(again) == 0 {
		return nil
	}
	err := v.r.RunReconcile(ctx, "", again)
	for i, a := range again {
		for _, f := range of[i] {
			f.Repaired = err == nil && a.Err == nil
		}
	}
	return err
}

// rowVersionOf returns the version of a row that was read.
func rowVersionOf(r *tablerow.Row) rowVersion {
	return rowVersion{r.Key, string(r.ETag), engine.IsMisplaced(r)}
}

// removeMisplaced removes a claim whose content does not match its row key. If a copy needs a claim under this key, it
// corrects the content instead, since deleting the claim would leave the copy without one. Both writes are conditional
// on the row's ETag; if a concurrent writer changed the row, the next run handles it. Requests: 1, and 1 for each page
// of the index's partition.
func (v *verifier) removeMisplaced(ctx context.Context, table *core.Table, e rowVersion) error {
	o := tablerow.Row{Verb: wire.VerbDelete, Key: e.key}
	copied, err := engine.CopyNamedBy(ctx, table, e.key)
	if err != nil {
		return err
	}
	if copied != nil {
		w := &engine.OutsideWriter{Table: table, Entity: tables.Key{Partition: copied.Own.Outside.Partition, Row: copied.Own.Primary}}
		o = w.Claim(wire.VerbReplace, copied.Key, copied.Own.Outside.Reserved)
	}
	o.IfMatch = azcore.ETag(e.etag)
	_, _, err = table.Commit(ctx, v.op, o)
	if errors.Is(err, tables.ErrConflict) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	return err
}
