package patterns

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// visit counts the facts that one row of the entities' table shows: what an entity requires, or what is stored.
func (pg *page) visit(ctx context.Context, row *tablerow.Row) error {
	pg.enter(row.Key.Partition)
	switch {
	case row.Problem != nil && row.Own.IsCopy:
		pg.unreadable(pg.r.Table, row)
	case row.Own.Outside.Is:
		if at := pg.outsideIn(pg.r.Table); at >= 0 && pg.scope == nil {
			pg.visitOutside(at, row)
		}
	case row.Own.IsShared:
	case row.Own.IsCopy:
		owner := tables.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
		if pg.nearby && pg.mine(owner) {
			pg.count(&fact{site: site{nearArea, row.Key.Row, owner}, digest: pg.hash.row(row.Properties, nearMark(row.Own.Layout, row.WriteID, row.Own.Incarnation))}, false)
		}
	default:
		return pg.visitEntity(ctx, row)
	}
	return nil
}

// unreadable records a finding for a copy or other row of an entity if the row cannot be read.
func (pg *page) unreadable(table *core.Table, row *tablerow.Row) {
	owner := tables.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
	if row.Own.Outside.Is {
		owner.Partition = row.Own.Outside.Partition
	}
	if row.Own.IsShared || pg.mine(owner) {
		pg.fail(Finding{Kind: Undecodable, Table: table.Name(), Location: row.Key.Row, Entity: owner, Err: row.Problem})
	}
}

// visitOutside records that a copy is stored.
func (pg *page) visitOutside(at int, row *tablerow.Row) {
	owner := tables.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}
	if !pg.outside || !row.Own.Outside.Is || row.Own.IsShared || !pg.mine(owner) {
		return
	}
	name, known := pg.areas[at].ownerName(row.Key)
	if !known || !pg.chosen(name) {
		return
	}
	f := fact{site: site{at, driver.JoinKey(row.Key), owner}, digest: pg.hash.row(row.Properties, outsideMark(row))}
	if row.Own.Outside.Mark != "" {
		if f.mark = markYoung; engine.Expired(row) {
			f.mark = markOld
		}
	}
	if pg.first {
		if pg.stored(name, stock{Stored: 1}); f.mark == markOld {
			pg.marked++
		}
	}
	pg.count(&f, false)
}

// stored counts copies of a pattern.
func (pg *page) stored(pattern string, n stock) {
	if pg.copies == nil {
		pg.copies = stocks{}
	}
	sum := pg.copies[pattern]
	pg.copies[pattern] = stock{sum.Required + n.Required, sum.Stored + n.Stored}
}

// outsideMark identifies the incarnation and version of the entity from which a copy was made. A marked copy never
// equals what the entity requires.
func outsideMark(row *tablerow.Row) string {
	if row.Own.Outside.Mark != "" {
		return "marked " + row.Own.Outside.Mark
	}
	return versionMark(row.Own.Incarnation, row.Own.Outside.Version)
}

// versionMark joins an entity's incarnation and the ETag or write id of its version.
func versionMark(incarnation, version string) string { return incarnation + " " + version }

// visitEntity counts the facts that an entity requires.
func (pg *page) visitEntity(ctx context.Context, row *tablerow.Row) error {
	if !pg.mine(row.Key) {
		return nil
	}
	e, err := pg.decode(ctx, row)
	if err != nil {
		return err
	}
	if e.foreign || e.busy != nil || e.gone() {
		return nil // without the entity's required facts, every row stored for it differs and becomes a candidate
	}
	if pg.first {
		pg.entities++
		pg.fail(Finding{Kind: Undecodable, Table: pg.r.Table.Name(), Entity: row.Key, Err: e.bad})
	}
	if e.bad != nil {
		return nil
	}
	pg.wantNear(e)
	for at := 1; at < len(pg.areas) && pg.outside; at++ {
		if pg.areas[at].auditor != nil {
			pg.wantHeld(at, e)
			continue
		}
		for _, p := range pg.areas[at].outside {
			pg.wantOutside(at, p, e)
		}
	}
	return nil
}

// fail records a finding for a row or fact that cannot be read. It records nothing if d.Err is nil, if the
// run does not verify the pattern, or in a second scan, since the first scan has reported the finding.
func (pg *page) fail(d Finding) {
	if d.Err == nil || !pg.first || !pg.chosen(d.Pattern) {
		return
	}
	pg.failures = append(pg.failures, &finding{Finding: d})
}

// seenEntity is an entity according to one read of its own row.
type seenEntity struct {
	key         tables.Key
	value       any // nil if the entity does not exist or cannot be read
	row         *tablerow.Row
	etag        string
	writeID     string
	stored      tables.Properties
	incarnation string
	bad         error // why the entity cannot be read
	foreign     bool  // the row belongs to another type
	busy        error // the ErrConflict if a writer replaced the entity during each attempt to read it
}

// mark returns the outsideMark that a copy of the entity must have. A projection does not name the version.
func (e *seenEntity) mark(copied *driver.OutsideCopy) string {
	if copied.Keep != nil {
		return versionMark(e.incarnation, "")
	}
	return versionMark(e.incarnation, e.etag)
}

// gone reports whether the entity does not exist.
func (e *seenEntity) gone() bool { return e.value == nil && e.known() }

// known reports whether the read shows what the entity requires.
func (e *seenEntity) known() bool { return e.bad == nil && !e.foreign && e.busy == nil }

// decode makes an entity from its own row. It returns an error only if a request for further rows or blobs
// fails.
func (v *verifier) decode(ctx context.Context, row *tablerow.Row) (*seenEntity, error) {
	e := &seenEntity{key: row.Key, row: row, etag: string(row.ETag), writeID: row.WriteID, incarnation: row.Own.Incarnation}
	switch {
	case row.Problem != nil: // Schema.Where may compare the property that cannot be read
		e.bad = &tables.Error{Kind: tables.ErrGarbled, Err: row.Problem}
		return e, nil
	case !v.r.Schema.Own.Meets(row.Key, row.Properties):
		e.foreign = true
		return e, nil
	case row.Lossy:
		e.bad = &tables.Error{Kind: tables.ErrGarbled, Err: errors.New("a text has half of a surrogate pair, which its copies could not repeat; correct the text: see Meta.Lossy")}
		return e, nil
	}
	var err error
	if v.r.Layout == nil && len(v.r.Transformers) == 0 {
		e.value, e.stored, err = v.r.DecodePlain(row)
	} else {
		var now *tablerow.Row
		if e.value, now, err = v.r.LoadStored(ctx, v.r.Table, row, nil, nil); now != nil {
			e.row, e.stored, e.etag, e.writeID, e.incarnation = now, now.Properties, string(now.ETag), now.WriteID, now.Own.Incarnation
		} else if err == nil {
			return &seenEntity{key: row.Key}, nil // deleted since the row was read
		}
	}
	switch {
	case err == nil && v.r.Schema.Key(e.value) == row.Key:
		return e, nil
	case err == nil && !v.r.Schema.Own.Declared():
		e.value, e.foreign = nil, true // the row can be of another type, since the schema does not say which rows are entities
		return e, nil
	case err == nil:
		err = errors.New("the entity is stored under another key than Schema.Key returns for it; insert it under that key and delete this row")
	case errors.Is(err, tables.ErrConflict):
		e.value, e.busy = nil, err
		return e, nil
	case !errors.Is(err, tables.ErrGarbled) && !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrWiring):
		return nil, v.r.Primary.DecodeError(v.op, row.Key, err)
	}
	e.value, e.bad = nil, err
	return e, nil
}

// nearMark identifies the version of the entity to which a row in its partition belongs. A merge does not
// rewrite further rows whose content stays the same; the directory in the first row says which version of
// each is current.
func nearMark(layout, writeID, incarnation string) string {
	if layout == engine.FurtherRow {
		writeID = ""
	}
	return versionMark(incarnation, writeID) + layout
}

// wantNear records the rows that an entity requires in its partition.
func (pg *page) wantNear(e *seenEntity) {
	if !pg.nearby {
		return
	}
	rows, refusals := nearRows(pg.r, e)
	for _, refused := range refusals {
		pg.fail(Finding{Kind: Undecodable, Pattern: refused.Pattern, Table: pg.r.Table.Name(), Entity: e.key, Err: refused.Err})
	}
	for i := range rows {
		pg.count(&fact{site: site{nearArea, rows[i].Key.Row, e.key}, digest: pg.hash.row(rows[i].Properties, nearMark(rows[i].Own.Layout, e.writeID, e.incarnation))}, true)
	}
}

// nearRows returns the rows that follow from an entity, except its own first row. If an index's key function
// rejects the entity, the index has no copy of it, and refusals has the error.
func nearRows(r *engine.Engine, e *seenEntity) (rows []tablerow.Row, refusals []*tables.Error) {
	refuse := func(pattern string, err error) {
		refusals = append(refusals, &tables.Error{Pattern: pattern, Err: err})
	}
	s := r.Spreading(e.stored)
	if r.Layout != nil {
		own, err := s.Spread(nil, "", e.key, nil)
		if err != nil {
			refuse(r.Layout.Name, err)
			return nil, refusals
		}
		for _, row := range own[1:] {
			row.Pattern = r.Layout.Name
			rows = append(rows, row)
		}
	}
	for _, p := range r.Copies {
		with, err := engine.AppendCopies(rows, p, engine.CopiesOf(e.value), e.key, s)
		if err != nil {
			refuse(p.Name, err)
			continue
		}
		rows = with
	}
	return rows, refusals
}

// wantOutside records the copies that an entity requires of one pattern.
func (pg *page) wantOutside(at int, p *driver.Implementation, e *seenEntity) {
	if !pg.chosen(p.Name) {
		return
	}
	copies, err := engine.CopiesOf(e.value).Outside(p)
	if pg.first {
		pg.stored(p.Name, stock{Required: int64(len(copies))})
	}
	pg.fail(Finding{Kind: Undecodable, Pattern: p.Name, Table: pg.areas[at].table.Name(), Entity: e.key, Err: err})
	for i := range copies {
		f := fact{site: site{at, driver.JoinKey(copies[i].Key), e.key}}
		f.digest = pg.hash.row(e.stored.Only(copies[i].Keep), e.mark(&copies[i]))
		pg.count(&f, true)
	}
}

// wantHeld records the facts that an entity requires of an auditor.
func (pg *page) wantHeld(at int, e *seenEntity) {
	p := pg.areas[at].auditor
	facts, err := p.Effect.Expected(e.value)
	pg.fail(Finding{Kind: Undecodable, Pattern: p.Name, Entity: e.key, Err: err})
	if err != nil {
		return
	}
	for i := range facts {
		pg.count(&fact{site: site{at, facts[i].Place, e.key}, digest: facts[i].Digest}, true)
	}
}

// visitHeld counts a fact that an auditor has stored.
func (pg *page) visitHeld(at int, held *driver.Fact) {
	pg.rows++
	p := pg.areas[at].auditor
	if held.Err != nil {
		pg.fail(Finding{Kind: Undecodable, Pattern: p.Name, Location: held.Place, Entity: held.Entity, Err: held.Err})
		return
	}
	if pg.outside && pg.mine(held.Entity) {
		pg.count(&fact{site: site{at, held.Place, held.Entity}, digest: held.Digest}, false)
	}
}
