package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/pagejob"
	"github.com/tablepatterns/tablepatterns/tables"
)

// seenPlace is the content of a site according to one read.
type seenPlace struct {
	entity tables.Key
	row    *tablerow.Row // the row under the site's key: a copy, or any other row; nil for none
	held   bool          // for an auditor: the fact is stored
	fact   driver.Fact
}

// own returns the row if its content says that it belongs to the entity.
func (p *seenPlace) own() *tablerow.Row {
	row := p.row
	if row == nil || !row.Own.IsCopy || row.Own.IsShared || row.Own.Primary != p.entity.Row {
		return nil
	}
	if row.Own.Outside.Is && row.Own.Outside.Partition != p.entity.Partition {
		return nil
	}
	return row
}

// wrongRow returns the row that belongs to the entity, with its ETag; nil if there is none.
func (p *seenPlace) wrongRow() *rowVersion {
	if own := p.own(); own != nil {
		return &rowVersion{own.Key, string(own.ETag)}
	}
	return nil
}

// tag identifies the content of the site, so that two reads can be compared.
func (p *seenPlace) tag() string {
	if p.held {
		return fmt.Sprintf("%x", p.fact.Digest)
	}
	if own := p.own(); own != nil {
		return string(own.ETag)
	}
	return ""
}

// occupant returns an error that describes the row of another owner under the site's key, or nil if there is
// none.
func (p *seenPlace) occupant() error {
	switch {
	case p.row == nil || p.own() != nil:
		return nil
	case p.row.Own.Outside.Is:
		return engine.OwnerOf(p.row)
	case p.row.Own.IsCopy && !p.row.Own.IsShared:
		return fmt.Errorf("entity (%q, %q) owns this key", p.row.Key.Partition, p.row.Own.Primary)
	}
	return errors.New("a row that is not a copy of an entity has this key; delete it, or use another table or index name")
}

// readPlace reads the content of a candidate's site.
func (v *verifier) readPlace(ctx context.Context, s *candidate) (*seenPlace, error) {
	p := &seenPlace{entity: s.entity}
	a := &v.areas[s.area]
	var err error
	switch {
	case a.auditor != nil:
		found, err := a.auditor.Effect.Read(ctx, []driver.Fact{{Place: s.place, Entity: s.entity}})
		if err != nil {
			return nil, engine.PatternError(a.auditor, err, tables.ErrGarbled)
		}
		if p.held = found[0] != nil; p.held {
			p.fact = *found[0]
		}
	case s.area == nearArea:
		p.row, err = v.readRow(ctx, a.table, tables.Key{Partition: s.entity.Partition, Row: s.place})
	default:
		var key tables.Key
		if key, err = driver.SplitKey(s.place); err == nil {
			p.row, err = v.readRow(ctx, a.table, key)
		}
	}
	return p, err
}

// readRow reads a row with all its properties; it returns nil if there is none.
func (v *verifier) readRow(ctx context.Context, table *core.Table, key tables.Key) (*tablerow.Row, error) {
	row, err := table.Get(ctx, v.op, key, nil)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	return row, err
}

// readEntity reads the current version of an entity.
func (v *verifier) readEntity(ctx context.Context, key tables.Key) (*seenEntity, error) {
	row, err := v.readRow(ctx, v.r.Table, key)
	if err != nil {
		return nil, err
	}
	if row == nil || row.Own.IsCopy {
		return &seenEntity{key: key}, nil
	}
	return v.decode(ctx, row)
}

// compare returns what is wrong at a candidate's site, given an entity and a place that existed at the same moment;
// nil if nothing is wrong, or if that is unknown.
func (v *verifier) compare(s *candidate, e *seenEntity, p *seenPlace) *finding {
	if !e.known() {
		return nil
	}
	a := &v.areas[s.area]
	d := Finding{Location: s.place, Entity: s.entity}
	var wrong bool
	switch {
	case a.auditor != nil:
		wrong = v.compareHeld(a.auditor, e, p, &d)
	case s.area == nearArea:
		wrong = v.compareNear(e, p, &d)
	default:
		wrong = v.compareOutside(a, e, p, &d)
	}
	if !wrong || !v.chosen(d.Pattern) {
		return nil
	}
	if a.table != nil {
		d.Table = a.table.Name()
	}
	return &finding{Finding: d, site: s.site, wrong: p.wrongRow()}
}

// compareNear compares a further row of an entity with the row that the entity requires.
func (v *verifier) compareNear(e *seenEntity, p *seenPlace, d *Finding) bool {
	var wanted *tablerow.Row
	if e.value != nil {
		rows, refusals := nearRows(v.r, e)
		if i := slices.IndexFunc(rows, func(row tablerow.Row) bool { return row.Key.Row == d.Location }); i >= 0 {
			wanted = &rows[i]
		}
		d.Pattern = prefixOf(d.Location, v.r.Copies)
		refused := slices.ContainsFunc(refusals, func(e *tables.Error) bool { return d.Pattern == "" || e.Pattern == d.Pattern })
		if wanted == nil && refused {
			return false // the pattern may have written the row before its key function rejected the entity
		}
	}
	own := p.own()
	var h hasher
	switch {
	case wanted == nil:
		d.Kind, d.Pattern = Spurious, prefixOf(d.Location, v.r.Copies)
		return own != nil
	case own == nil:
		d.Kind, d.Err = Missing, p.occupant()
	case own.Own.Outside.Is || h.row(own.Properties, nearMark(own.Own.Layout, own.WriteID, own.Own.Incarnation)) != h.row(wanted.Properties, nearMark(wanted.Own.Layout, e.writeID, e.incarnation)):
		d.Kind = Different
	default:
		return false
	}
	d.Pattern = wanted.Pattern
	return true
}

// compareOutside compares a copy with what the entity requires. A marked copy is no finding: readers follow it.
func (v *verifier) compareOutside(a *area, e *seenEntity, p *seenPlace, d *Finding) bool {
	key, _ := driver.SplitKey(d.Location) // it was read
	d.Pattern, _ = a.ownerName(key)
	wanted, pattern, refused := wantedOutside(a, e, key)
	own := p.own()
	if own != nil && own.Own.Outside.Mark != "" {
		return false
	}
	if wanted == nil {
		d.Kind = Spurious
		return !refused && own != nil
	}
	d.Pattern = pattern.Name
	var h hasher
	switch {
	case own == nil && engine.Leads(p.row, e.key):
		return false
	case own == nil:
		d.Kind, d.Err = Missing, p.occupant()
		return true
	case own.Own.Outside.Is && h.row(own.Properties, outsideMark(own)) == h.row(e.stored.Only(wanted.Keep), e.mark(wanted)):
		return false
	}
	d.Kind = Different
	return true
}

// wantedOutside finds the copy that an entity requires under a key. refused reports that a pattern rejects the entity,
// so the required copy is unknown.
func wantedOutside(a *area, e *seenEntity, key tables.Key) (wanted *driver.OutsideCopy, pattern *driver.Implementation, refused bool) {
	for _, p := range a.outside {
		copies, err := engine.CopiesOf(e.value).Outside(p)
		refused = refused || err != nil
		for i := range copies {
			if copies[i].Key == key {
				return &copies[i], p, false
			}
		}
	}
	return nil, nil, refused
}

// compareHeld compares the fact that an auditor has stored with the fact that the entity requires.
func (v *verifier) compareHeld(p *driver.Implementation, e *seenEntity, place *seenPlace, d *Finding) bool {
	d.Pattern = p.Name
	wanted, refused := wantedHeld(p, e, d.Location)
	switch {
	case refused || place.fact.Err != nil:
		return false // the scan has reported the failure
	case wanted == nil:
		d.Kind = Spurious
		return place.held
	case !place.held:
		d.Kind = Missing
	case place.fact.Digest != wanted.Digest:
		d.Kind = Different
	default:
		return false
	}
	return true
}

// wantedHeld finds the fact that an auditor must store for an entity at a place; refused reports that the
// auditor rejects the entity.
func wantedHeld(p *driver.Implementation, e *seenEntity, place string) (wanted *driver.Fact, refused bool) {
	if e.value == nil {
		return nil, false
	}
	facts, err := p.Effect.Expected(e.value)
	if err != nil {
		return nil, true
	}
	if i := slices.IndexFunc(facts, func(f driver.Fact) bool { return f.Place == place }); i >= 0 {
		return &facts[i], false
	}
	return nil, false
}

// candidate is a site at which the scans found a difference between what is required and what is stored.
type candidate struct {
	site
	wanted bool // the entity requires something there
	old    bool // a copy is stored there whose mark is old

	tag  string   // seenPlace.tag of the last read
	etag string   // ETag of the entity at the last read, "" for none
	done bool     // decided
	is   *finding // what is wrong; nil for nothing, or while undecided
}

// finding is a confirmed discrepancy.
type finding struct {
	Finding
	site  site
	wrong *rowVersion // the wrong row; nil for none
}

// rowVersion is a row at the version at which it was read. A row that was found wrong stays wrong as long as it has this ETag.
type rowVersion struct {
	key  tables.Key
	etag string
}

const (
	rounds = 3      // maximum number of reads of a candidate that keeps changing
	atOnce = 10_000 // maximum number of candidates that share one wait of Lag
)

// confirm reads each candidate individually, and passes those at which something is wrong to hand as findings.
func (v *verifier) confirm(ctx context.Context, all []*candidate) error {
	readable := func(inspect func(context.Context, *candidate) error) func(context.Context, *candidate) error {
		return func(ctx context.Context, s *candidate) error {
			err := inspect(ctx, s)
			if e := engine.AsError(err); e != nil && e.OfRow && v.areas[s.area].auditor == nil {
				s.done, s.is = true, nil // the row cannot be read, which the scan has already reported
				return nil
			}
			return err
		}
	}
	all, err := v.confirmOld(ctx, all)
	if err != nil {
		return err
	}
	for group := range slices.Chunk(all, atOnce) {
		v.state.Candidates += int64(len(group))
		if err := pagejob.Each(ctx, v.options.Concurrency, group, readable(v.inspectFirst)); err != nil {
			return err
		}
		for range rounds {
			lag := time.Duration(0)
			group = slices.DeleteFunc(group, func(s *candidate) bool { return s.done && s.is == nil })
			for _, s := range group {
				if !s.done {
					lag = max(lag, v.areas[s.area].lag)
				}
			}
			if err := backoff.Sleep(ctx, lag); err != nil {
				return err
			}
			if err := pagejob.Each(ctx, v.options.Concurrency, group, readable(v.inspectAgain)); err != nil {
				return err
			}
		}
		var findings []*finding
		for _, s := range group {
			if s.is != nil {
				findings = append(findings, s.is)
			}
		}
		if err := v.hand(ctx, findings); err != nil {
			return err
		}
		v.progressed()
	}
	return nil
}

// confirmOld takes out the copies whose mark is old, which are no findings. Repair settles them.
func (v *verifier) confirmOld(ctx context.Context, all []*candidate) (rest []*candidate, err error) {
	old := map[int][]*engine.Site{}
	for _, s := range all {
		if !s.old {
			rest = append(rest, s)
		} else if key, err := driver.SplitKey(s.place); err == nil {
			old[s.area] = append(old[s.area], &engine.Site{Key: key, Entity: s.entity})
		}
	}
	if v.op != opRepair || v.options.DryRun {
		return rest, nil
	}
	for at, sites := range old {
		if err := v.agreeAll(ctx, at, sites); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// inspectFirst reads a candidate for the first time. A difference that needs no Lag is confirmed at once.
func (v *verifier) inspectFirst(ctx context.Context, s *candidate) error {
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return err
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return err
	}
	if v.compare(s, e, p) == nil {
		s.done = true
		return nil
	}
	s.tag, s.etag = p.tag(), e.etag
	if v.areas[s.area].lag == 0 {
		return v.decide(ctx, s, e)
	}
	return nil
}

// inspectAgain reads a candidate again, unless it is decided.
func (v *verifier) inspectAgain(ctx context.Context, s *candidate) error {
	if s.done {
		return nil
	}
	e, err := v.readEntity(ctx, s.entity)
	if err != nil {
		return err
	}
	return v.decide(ctx, s, e)
}

// decide reads the place again, after the entity, and decides. The entity was then read between two reads of
// the place. If nothing with an ETag is stored at the place, decide also reads the entity again, so that the
// place was read between two reads of the entity. If the two reads of the same thing are equal, the state of
// the entity and that of the place existed at one moment.
func (v *verifier) decide(ctx context.Context, s *candidate, e *seenEntity) error {
	p, err := v.readPlace(ctx, s)
	if err != nil {
		return err
	}
	is := v.compare(s, e, p)
	exact := p.tag() == s.tag
	if is != nil && p.own() == nil {
		again, err := v.readEntity(ctx, s.entity)
		if err != nil {
			return err
		}
		exact = exact && e.etag == s.etag && again.etag == e.etag
		e = again
	}
	s.tag, s.etag = p.tag(), e.etag
	switch {
	case is == nil:
		s.done = true
	case exact:
		s.done, s.is = true, is
	}
	return nil
}
