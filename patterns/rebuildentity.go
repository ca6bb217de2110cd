package patterns

import (
	"context"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// lack is what patterns lack for one entity.
type lack struct {
	outside  map[string][]string // the locations with wrong content, by pattern
	intended map[string][]string // those of them that rewriting the entity does not repair
	write    bool                // the entity must be written again
	taken    error               // ErrDuplicate: another entity owns one of its outside keys; an intent would fail in the same way
}

// fillOnce rewrites an entity or reconciles its outside copies, where a pattern lacks something.
func (b *rebuild) fillOnce(ctx context.Context, x *rebuilt) error {
	unlisted, err := b.unlisted(x)
	if err != nil {
		return err
	}
	l, err := b.lacking(ctx, x)
	switch {
	case err != nil:
		return err
	case l.write || unlisted || b.always:
		if err = b.r.WriteAgain(ctx, b.op, x.value, x.row, false); err == nil && len(l.intended) > 0 {
			err = b.r.RunReconcile(ctx, "", x.row.Key, l.intended) // rewriting changes none of the outside keys, and its intent names none of them
		}
	case len(l.outside) > 0:
		err = b.r.RunReconcile(ctx, "", x.row.Key, l.outside)
	case l.taken == nil:
		b.add(func(r *rebuildCounts) { r.Skipped++ })
		return nil
	default:
		return l.taken
	}
	if err == nil {
		b.add(func(r *rebuildCounts) { r.Written++ })
		err = l.taken
	}
	return err
}

// unlisted reports whether the entity has copies in an index that its row does not list.
func (b *rebuild) unlisted(x *rebuilt) (bool, error) {
	for _, p := range b.r.Copies {
		if !b.chosen(p.Name) || engine.NamesCopies(x.row.Copies, p.Name) {
			continue
		}
		copies, err := engine.AppendCopies(nil, p, engine.CopiesOf(x.value), x.row.Key, b.r.Spreading(x.row.Properties))
		if err != nil {
			return false, engine.PatternError(p, err, tables.ErrInvalid)
		}
		if len(copies) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// lacking reads what patterns store for an entity outside its own rows.
func (b *rebuild) lacking(ctx context.Context, x *rebuilt) (*lack, error) {
	l := &lack{outside: map[string][]string{}, intended: map[string][]string{}}
	e := &seenEntity{key: x.row.Key, value: x.value, etag: string(x.row.ETag), writeID: x.row.WriteID, incarnation: x.row.Incarnation, stored: x.row.Properties}
	for at := 1; at < len(b.areas); at++ {
		a := &b.areas[at]
		if a.auditor != nil {
			if err := b.lackingHeld(ctx, a.auditor, e, l); err != nil {
				return nil, err
			}
		}
		for _, p := range a.outside {
			if !b.chosen(p.Name) {
				continue
			}
			if err := b.lackingCopies(ctx, a, p, e, l); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// lackingHeld reads what an auditor holds for an entity.
func (b *rebuild) lackingHeld(ctx context.Context, p *engine.Pattern, e *seenEntity, l *lack) error {
	facts, err := p.Audit.Expected(e.value)
	if err != nil {
		return engine.PatternError(p, err, tables.ErrInvalid)
	}
	removes, intends := p.Audit.Remove != nil, p.OutsideKeys != nil
	for i := range facts {
		held, there, err := p.Audit.Read(ctx, facts[i].Place, e.key)
		if err != nil {
			return engine.PatternError(p, err, tables.ErrGarbled)
		}
		switch {
		case there && held.Err == nil && held.Digest == facts[i].Digest:
		case intends && !removes:
			l.outside[p.Name] = append(l.outside[p.Name], facts[i].Place)
			l.intended[p.Name] = l.outside[p.Name]
		default:
			l.write = true
		}
	}
	return nil
}

// lackingCopies reads an entity's copies of one pattern.
func (b *rebuild) lackingCopies(ctx context.Context, a *area, p *engine.Pattern, e *seenEntity, l *lack) error {
	copies, err := engine.CopiesOf(e.value).Outside(p)
	if err != nil {
		return engine.PatternError(p, err, tables.ErrInvalid)
	}
	for i := range copies {
		row, err := b.readRow(ctx, a.table, copies[i].Key)
		if err != nil {
			return err
		}
		there := &seenPlace{entity: e.key, row: row}
		if other := there.occupant(); other != nil {
			l.taken = &tables.Error{Op: b.op, Table: a.table.Name(), Key: copies[i].Key, Pattern: p.Name, Kind: tables.ErrDuplicate, Err: other}
			continue
		}
		var h hasher
		if own := there.own(); own != nil && h.row(own.Properties, outsideMark(own)) == h.row(e.stored.Only(copies[i].Keep), e.mark()) {
			continue
		}
		l.outside[p.Name] = append(l.outside[p.Name], driver.JoinKey(copies[i].Key))
	}
	return nil
}
