package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
)

// seenPlace is the content of a site according to one read.
type seenPlace struct {
	entity entity.Key
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

// readPlace reads the content of a site.
func (j *job) readPlace(ctx context.Context, s site) (*seenPlace, error) {
	p := &seenPlace{entity: s.entity}
	a := &j.areas[s.area]
	var err error
	switch {
	case a.auditor != nil:
		found, err := a.auditor.Effect.Read(ctx, []driver.Fact{{Place: s.place, Entity: s.entity}})
		if err != nil {
			return nil, engine.PatternError(a.auditor, err, entity.ErrGarbled)
		}
		if p.held = found[0] != nil; p.held {
			p.fact = *found[0]
		}
	case s.area == nearArea:
		p.row, err = j.readRow(ctx, a.table, entity.Key{Partition: s.entity.Partition, Row: s.place})
	default:
		var key entity.Key
		if key, err = driver.SplitKey(s.place); err == nil {
			p.row, err = j.readRow(ctx, a.table, key)
		}
	}
	return p, err
}

// readRow reads a row with all its properties; it returns nil if there is none.
func (j *job) readRow(ctx context.Context, table *core.Table, key entity.Key) (*tablerow.Row, error) {
	row, err := table.Get(ctx, j.op, key, nil)
	if errors.Is(err, entity.ErrNotFound) {
		return nil, nil
	}
	return row, err
}

// readEntity reads the current version of an entity.
func (j *job) readEntity(ctx context.Context, key entity.Key) (*seenEntity, error) {
	row, err := j.readRow(ctx, j.r.Table, key)
	if err != nil {
		return nil, err
	}
	if row == nil || row.Own.IsCopy {
		return &seenEntity{key: key}, nil
	}
	return j.decode(ctx, row)
}

// compare returns what is wrong at a site, given an entity and a place that existed at the same moment;
// nil if nothing is wrong, or if that is unknown. A marked copy is not wrong: readers follow it.
func (j *job) compare(s site, e *seenEntity, p *seenPlace) *finding {
	if !e.known() || p.fact.Err != nil {
		return nil // the scan has reported that the entity or fact cannot be read
	}
	a := &j.areas[s.area]
	d := entity.Finding{Location: s.place, Entity: s.entity, Table: a.name()}
	wanted, pattern, refused := j.wantedAt(s, e)
	own, marked := p.own(), false
	stored, digest := p.held, p.fact.Digest
	if own != nil {
		var h hasher
		stored, digest = true, h.stored(own, len(a.outside) > 0)
	}
	if len(a.outside) > 0 {
		marked = own != nil && own.Own.Outside.Mark != "" || own == nil && wanted != nil && engine.Leads(p.row, e.key)
	}
	switch d.Pattern = pattern; {
	case marked, wanted == nil && (refused || !stored), wanted != nil && stored && digest == *wanted, !j.chosen(pattern):
		return nil // a pattern may have written a row before its key function rejected the entity
	case wanted == nil:
		d.Kind = entity.Spurious
	case !stored:
		d.Kind, d.Err = entity.Missing, p.occupant()
	default:
		d.Kind = entity.Different
	}
	return &finding{Finding: d, site: s, wrong: p.wrongRow()}
}

// wantedAt returns the digest of what an entity requires at a site, nil for nothing, and the pattern that does, or may. refused reports that
// a pattern rejects the entity, so that it is unknown what the entity requires.
func (j *job) wantedAt(s site, e *seenEntity) (digest *[16]byte, pattern string, refused bool) {
	a := &j.areas[s.area]
	switch {
	case a.auditor != nil:
		pattern = a.auditor.Name
	case s.area == nearArea:
		pattern = prefixOf(s.place, j.r.Copies)
	default:
		key, _ := driver.SplitKey(s.place) // it was read
		pattern, _ = a.ownerName(key)
	}
	guessed := pattern
	var h hasher
	j.require(s.area, e, &h, func(of, place string, is [16]byte) {
		if place == s.place && digest == nil {
			digest, pattern = &is, of
		}
	}, func(of string, _ error) {
		refused = refused || s.area != nearArea || guessed == "" || guessed == of
	})
	return digest, pattern, refused
}

// candidate is a site at which the scans found a difference between what is required and what is stored.
type candidate struct {
	site
	wanted bool // the entity requires something there
	old    bool // a copy is stored there whose mark is old

	tag  string   // seenPlace.tag of the last read
	etag string   // ETag of the entity at the last read, "" for none
	seen bool     // it was read
	done bool     // decided
	is   *finding // what is wrong; nil for nothing, or while undecided
}

// rowVersion is a row at the version at which it was read. A row that was found wrong stays wrong as long as it has this ETag.
type rowVersion struct {
	key  entity.Key
	etag string
}

const (
	rounds = 3      // maximum number of reads of a candidate that keeps changing
	atOnce = 10_000 // maximum number of candidates that share one wait of Lag
)

// confirm reads each candidate individually, and passes those at which something is wrong to hand as findings.
func (j *job) confirm(ctx context.Context, all []*candidate) error {
	all, err := j.confirmOld(ctx, all)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(all, atOnce) {
		j.state.Report.Candidates += int64(len(some))
		for round := range 1 + rounds {
			if round > 0 {
				lag := time.Duration(0)
				some = slices.DeleteFunc(some, func(s *candidate) bool { return s.done && s.is == nil })
				for _, s := range some {
					if !s.done {
						lag = max(lag, j.areas[s.area].lag)
					}
				}
				if err := backoff.Sleep(ctx, lag); err != nil {
					return err
				}
			}
			if err := each(ctx, j.options.Concurrency, some, j.inspect); err != nil {
				return err
			}
		}
		var findings []*finding
		for _, s := range some {
			if s.is != nil {
				findings = append(findings, s.is)
			}
		}
		if err := j.hand(ctx, findings); err != nil {
			return err
		}
		j.progressed()
	}
	return nil
}

// confirmOld takes out the copies whose mark is old, which are no findings. Repair settles them.
func (j *job) confirmOld(ctx context.Context, all []*candidate) (rest []*candidate, err error) {
	old := map[int][]*engine.Site{}
	for _, s := range all {
		if !s.old {
			rest = append(rest, s)
		} else if key, err := driver.SplitKey(s.place); err == nil {
			old[s.area] = append(old[s.area], &engine.Site{Key: key, Entity: s.entity})
		}
	}
	if j.op != Repair || j.options.DryRun {
		return rest, nil
	}
	for at, sites := range old {
		if err := j.agreeAll(ctx, at, sites); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// inspect reads a candidate, unless it is decided. A difference that needs no Lag is confirmed at the first time.
func (j *job) inspect(ctx context.Context, s *candidate) error {
	if s.done {
		return nil
	}
	err := j.inspectOnce(ctx, s)
	if e := engine.AsError(err); e != nil && e.OfRow && j.areas[s.area].auditor == nil {
		s.done, s.is = true, nil // the row cannot be read, which the scan has already reported
		return nil
	}
	return err
}

func (j *job) inspectOnce(ctx context.Context, s *candidate) error {
	if s.seen {
		e, err := j.readEntity(ctx, s.entity)
		if err != nil {
			return err
		}
		return j.decide(ctx, s, e)
	}
	is, p, e, err := j.look(ctx, s.site)
	if err != nil {
		return err
	}
	s.seen, s.done, s.tag, s.etag = true, is == nil, p.tag(), e.etag
	if s.done || j.areas[s.area].lag > 0 {
		return nil
	}
	return j.decide(ctx, s, e)
}

// look reads a place and then its entity, and compares them. For a site that needs no Lag, a difference exists if the row is still there.
func (j *job) look(ctx context.Context, s site) (is *finding, p *seenPlace, e *seenEntity, err error) {
	if p, err = j.readPlace(ctx, s); err != nil {
		return nil, nil, nil, err
	}
	if e, err = j.readEntity(ctx, s.entity); err != nil {
		return nil, nil, nil, err
	}
	return j.compare(s, e, p), p, e, nil
}

// decide reads the place again, after the entity, and decides. The entity was then read between two reads of
// the place. If nothing with an ETag is stored at the place, decide also reads the entity again, so that the
// place was read between two reads of the entity. If the two reads of the same thing are equal, the state of
// the entity and that of the place existed at one moment.
func (j *job) decide(ctx context.Context, s *candidate, e *seenEntity) error {
	p, err := j.readPlace(ctx, s.site)
	if err != nil {
		return err
	}
	is := j.compare(s.site, e, p)
	exact := p.tag() == s.tag
	if is != nil && p.own() == nil {
		again, err := j.readEntity(ctx, s.entity)
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
