package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/patterns/internal/sets"
	"github.com/tablepatterns/tablepatterns/tables"
)

// repairSet holds findings that are repaired together in the same way.
type repairSet struct {
	v      *verifier
	repair func(ctx context.Context, findings []*finding) error // all or none; it marks those that it has repaired
	most   int
	all    []*finding
}

// repairSets repairs findings together, and marks those that it has repaired: spurious rows of a partition in
// one transaction, entities of a partition in one change set, and outside copies and facts under one intent.
// The caller repairs the unmarked findings one by one.
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
				chunks = append(chunks, &repairSet{v: v, repair: s.repair, all: chunk})
			}
		}
	}
	return pagejob.Each(ctx, v.options.Concurrency, chunks, func(ctx context.Context, s *repairSet) error { return s.run(ctx) })
}

// setOf returns how a finding is repaired together with others, and the name of its group; nil if the finding must be repaired alone.
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

// run repairs the set while no other worker of the run writes a row that its entities share with others. If the service refuses the set,
// run divides it, so that a finding that cannot be repaired delays only itself.
func (s *repairSet) run(ctx context.Context) error {
	var names []string
	for _, f := range s.all {
		names = append(names, s.v.r.SharedBy(f.Entity, nil)...)
		if a := s.v.areas[f.site.area].auditor; a != nil {
			names = append(names, engine.HeldName(a, f.Location))
		}
	}
	release, err := s.v.locks.Acquire(ctx, names)
	if err != nil {
		return err
	}
	defer release()
	_, err = division.Divided[*finding]{
		Write: func(all []*finding) error {
			all = slices.DeleteFunc(slices.Clone(all), func(f *finding) bool { return f.Repaired })
			if len(all) == 0 {
				return nil // an earlier attempt found that nothing is wrong any more
			}
			return s.repair(ctx, all)
		},
		Ends: func(err error) bool {
			return ctx.Err() != nil || sets.Ends(err) || errors.Is(err, tables.ErrUnknownOutcome)
		},
	}.Run(s.all)
	if err != nil && ctx.Err() == nil {
		return fatal(ctx, err) // the caller rechecks and repairs each finding alone
	}
	return err
}

// deleteTogether deletes spurious rows of one partition, each under the ETag with which it was found wrong.
func (v *verifier) deleteTogether(ctx context.Context, all []*finding) error {
	var operations []engine.Operation
	for _, f := range all {
		for _, e := range f.wrongRows {
			operations = append(operations, engine.Operation{Verb: wire.VerbDelete, Key: e.key, IfMatch: azcore.ETag(e.etag), Meaning: engine.Meaning{Pattern: f.Pattern}})
		}
	}
	_, err := engine.Commit(ctx, v.areas[all[0].site.area].table, v.op, operations...)
	for _, f := range all {
		f.Repaired = err == nil
	}
	return err
}

// recheck reads the sites of findings and then their entities again, in groups; wrongStill does the same for
// one finding. It marks the findings at whose sites nothing is wrong any more, and returns those that can be
// repaired together, with the current content of their sites and entities.
func (v *verifier) recheck(ctx context.Context, all []*finding) (wrong []*finding, places []*seenPlace, entities map[tables.Key]*seenEntity, err error) {
	table, near := v.areas[all[0].site.area].table, all[0].site.area == nearArea
	keysOf := func(f *finding) (copied, claim tables.Key) {
		if near {
			return tables.Key{Partition: f.Entity.Partition, Row: f.site.place}, tables.Key{}
		}
		copied, _ = driver.SplitKey(f.site.place) // it was read
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
			f.Repaired = e.known() // if the entity could not be read, the finding stays open
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
		row.Copies = ""
		again = append(again, &engine.Again{Key: f.Entity, Value: e.value, Row: row, Orphans: true})
	}
	err = v.r.WriteAgainTogether(ctx, v.op, again)
	for _, f := range wrong {
		f.Repaired = err == nil
	}
	return err
}

// reconcileTogether reconciles under one intent the outside copies and facts that are missing or different.
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
