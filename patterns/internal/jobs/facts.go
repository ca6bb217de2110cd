package jobs

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// visit counts the facts that one row of the entities' table shows: what an entity requires, or what is stored.
func (pg *factPage) visit(ctx context.Context, row *tablerow.Row) error {
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
		owner := entity.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
		if pg.nearby && pg.mine(owner) {
			pg.count(&fact{site: site{nearArea, row.Key.Row, owner}, digest: pg.hash.stored(row, false)}, false)
		}
	default:
		return pg.visitEntity(ctx, row)
	}
	return nil
}

// unreadable records a finding for a copy or other row of an entity if the row cannot be read.
func (pg *factPage) unreadable(table *core.Table, row *tablerow.Row) {
	owner := entity.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
	if row.Own.Outside.Is {
		owner.Partition = row.Own.Outside.Partition
	}
	if row.Own.IsShared || pg.mine(owner) {
		pg.fail(entity.Finding{Kind: entity.Undecodable, Table: table.Name(), Location: row.Key.Row, Entity: owner, Err: row.Problem})
	}
}

// visitOutside records that a copy is stored.
func (pg *factPage) visitOutside(at int, row *tablerow.Row) {
	owner := entity.Key{Partition: row.Own.Outside.Partition, Row: row.Own.Primary}
	if !pg.outside || !row.Own.Outside.Is || row.Own.IsShared || !pg.mine(owner) {
		return
	}
	name, known := pg.areas[at].ownerName(row.Key)
	if !known || !pg.compared(name) {
		return
	}
	f := fact{site: site{at, driver.JoinKey(row.Key), owner}, digest: pg.hash.stored(row, true)}
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
func (pg *factPage) stored(pattern string, n stock) {
	if pg.copies == nil {
		pg.copies = stocks{}
	}
	sum := pg.copies[pattern]
	pg.copies[pattern] = stock{sum.Required + n.Required, sum.Stored + n.Stored}
}

// versionMark joins an entity's incarnation and the ETag or write id of its version.
func versionMark(incarnation, version string) string { return incarnation + " " + version }

// visitEntity counts the facts that an entity requires.
func (pg *factPage) visitEntity(ctx context.Context, row *tablerow.Row) error {
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
		pg.fail(entity.Finding{Kind: entity.Undecodable, Table: pg.r.Table.Name(), Entity: row.Key, Err: e.bad})
	}
	if e.bad != nil {
		return nil
	}
	for at := range pg.areas {
		if at == nearArea && pg.nearby || at != nearArea && pg.outside && (pg.areas[at].auditor == nil || pg.op != Rebuild) {
			pg.want(at, e)
		}
	}
	return nil
}

// fail records a finding for a row or fact that cannot be read. It records nothing if d.Err is nil, if the
// run does not verify the pattern, in a second scan, since the first scan has reported the finding, or in Rebuild, whose pages report it.
func (pg *factPage) fail(d entity.Finding) {
	if d.Err == nil || !pg.first || pg.op == Rebuild || !pg.chosen(d.Pattern) {
		return
	}
	pg.found = append(pg.found, &finding{Finding: d})
}

// seenEntity is an entity according to one read of its own row.
type seenEntity struct {
	key         entity.Key
	value       any // nil if the entity does not exist or cannot be read
	row         *tablerow.Row
	etag        string
	writeID     string
	stored      entity.Properties
	incarnation string
	bad         error // why the entity cannot be read
	foreign     bool  // the row belongs to another type
	busy        error // the ErrConflict if a writer replaced the entity during each attempt to read it
}

// mark returns the mark of version that a copy of the entity must have. A projection does not name the version.
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
func (j *job) decode(ctx context.Context, row *tablerow.Row) (*seenEntity, error) {
	e := &seenEntity{key: row.Key, row: row, etag: string(row.ETag), writeID: row.WriteID, incarnation: row.Own.Incarnation}
	switch {
	case row.Problem != nil: // Schema.Where may compare the property that cannot be read
		e.bad = &entity.Error{Kind: entity.ErrGarbled, Err: row.Problem}
		return e, nil
	case !j.r.Schema.Own.Meets(row.Key, row.Properties):
		e.foreign = true
		return e, nil
	case row.Lossy:
		e.bad = &entity.Error{Kind: entity.ErrGarbled, Err: errors.New("a text has half of a surrogate pair, which its copies could not repeat; correct the text: see Meta.Lossy")}
		return e, nil
	}
	var err error
	if j.r.Layout == nil && len(j.r.Transformers) == 0 {
		e.value, e.stored, err = j.r.DecodePlain(row)
	} else {
		var now *tablerow.Row
		if e.value, now, err = j.r.LoadStored(ctx, j.r.Table, row, nil, nil); now != nil {
			e.row, e.stored, e.etag, e.writeID, e.incarnation = now, now.Properties, string(now.ETag), now.WriteID, now.Own.Incarnation
		} else if err == nil {
			return &seenEntity{key: row.Key}, nil // deleted since the row was read
		}
	}
	switch {
	case err == nil && j.r.Schema.Key(e.value) == row.Key:
		return e, nil
	case err == nil && !j.r.Schema.Own.Declared():
		e.value, e.foreign = nil, true // the row can be of another type, since the schema does not say which rows are entities
		return e, nil
	case err == nil:
		err = errors.New("the entity is stored under another key than Schema.Key returns for it; insert it under that key and delete this row")
	case errors.Is(err, entity.ErrConflict):
		e.value, e.busy = nil, err
		return e, nil
	case !errors.Is(err, entity.ErrGarbled) && !errors.Is(err, entity.ErrInvalid) && !errors.Is(err, entity.ErrWiring):
		return nil, j.r.Primary.DecodeError(j.op, row.Key, err)
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

// want records the facts that an entity requires in an area.
func (pg *factPage) want(at int, e *seenEntity) {
	a := &pg.areas[at]
	pg.require(at, e, &pg.hash, func(pattern, place string, digest [16]byte) {
		if len(a.outside) > 0 {
			if !pg.compared(pattern) {
				return
			}
			if pg.first {
				pg.stored(pattern, stock{Required: 1})
			}
		}
		pg.count(&fact{site: site{at, place, e.key}, digest: digest}, true)
	}, func(pattern string, err error) {
		pg.fail(entity.Finding{Kind: entity.Undecodable, Pattern: pattern, Table: a.name(), Entity: e.key, Err: err})
	})
}

// require calls yield with each fact that an entity requires in an area, and refuse with each pattern that rejects the entity.
func (j *job) require(at int, e *seenEntity, h *hasher, yield func(pattern, place string, digest [16]byte), refuse func(pattern string, err error)) {
	a := &j.areas[at]
	switch {
	case e.value == nil:
	case a.auditor != nil:
		facts, err := a.auditor.Effect.Expected(e.value)
		if err != nil {
			refuse(a.auditor.Name, err)
			return
		}
		for i := range facts {
			yield(a.auditor.Name, facts[i].Place, facts[i].Digest)
		}
	case at == nearArea:
		all := nearRows(j.r, e, refuse)
		for i := range all {
			yield(all[i].Pattern, all[i].Key.Row, h.row(all[i].Properties, nearMark(all[i].Own.Layout, e.writeID, e.incarnation)))
		}
	default:
		for _, p := range a.outside {
			copies, err := engine.CopiesOf(e.value).Outside(p)
			if err != nil {
				refuse(p.Name, err)
			}
			for i := range copies {
				yield(p.Name, driver.JoinKey(copies[i].Key), h.row(e.stored.Only(copies[i].Keep), e.mark(&copies[i])))
			}
		}
	}
}

// nearRows returns the rows that follow from an entity, except its own first row. If an index's key function
// rejects the entity, the index has no copy of it.
func nearRows(r *engine.Engine, e *seenEntity, refuse func(pattern string, err error)) (all []tablerow.Row) {
	s := r.Spreading(e.stored)
	if r.Layout != nil {
		own, err := s.Spread(nil, "", e.key, nil)
		if err != nil {
			refuse(r.Layout.Name, err)
			return nil
		}
		for _, row := range own[1:] {
			row.Pattern = r.Layout.Name
			all = append(all, row)
		}
	}
	for _, p := range r.Copies {
		with, err := engine.AppendCopies(all, p, engine.CopiesOf(e.value), e.key, s)
		if err != nil {
			refuse(p.Name, err)
			continue
		}
		all = with
	}
	return all
}

// visitHeld counts a fact that an auditor has stored.
func (pg *factPage) visitHeld(at int, held *driver.Fact) {
	pg.rows++
	p := pg.areas[at].auditor
	if held.Err != nil {
		pg.fail(entity.Finding{Kind: entity.Undecodable, Pattern: p.Name, Location: held.Place, Entity: held.Entity, Err: held.Err})
		return
	}
	if pg.outside && pg.mine(held.Entity) {
		pg.count(&fact{site: site{at, held.Place, held.Entity}, digest: held.Digest}, false)
	}
}
