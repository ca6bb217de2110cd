package marks

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/marks"
)

// rebuilds makes the next request of a Rebuild of one page. late
// says that two entities have one key, or that the row of another entity is in the way.
func (s *act) rebuilds(p *actor) {
	switch p.at {
	case starts:
		s.does("reads the page", func(w *world, p *actor) {
			p.at, p.base = insertsPage, s.page(w)
			p.late = p.base[0].version != 0 && p.base[0].key != 0 && p.base[1].has(p.base[0].key)
			for _, e := range p.base {
				if e.version != 0 && e.key != 0 {
					p.places[e.key-1].verb = marks.Insert
				}
			}
		})
	case insertsPage:
		s.insertsPage(p)
	case readsPage:
		s.does("reads the page again", func(w *world, p *actor) {
			if p.seen, p.at = s.page(w), settlesPage; s.drops(marks.RebuildAgain) {
				p.seen = p.base
			}
		})
	case settlesPage:
		s.together(p, "settles %d rows", func(k uint8, e, version uint8) (put, bool) {
			return put{verb: marks.Replace, under: p.places[k].mark, row: s.copy(e, version)}, p.places[k].mark != 0 && version != 0
		}, func(_ *world, p *actor, k uint8, _ bool) { p.places[k].mark = 0 }, func(p *actor) {
			p.failed = p.late // Rebuild reports what is in the way: another one is needed
			s.finish(p)
		})
	}
}

// insertsPage inserts the rows of a page, and reads those that are there already.
func (s *act) insertsPage(p *actor) {
	for i, m := range s.work().members {
		if k := p.base[i].key; k != 0 && p.places[k-1].verb == marks.Read {
			s.does(fmt.Sprintf("reads row %d", k), func(w *world, p *actor) {
				r := w.rows[k-1]
				switch p.places[k-1].verb = marks.None; {
				case r.etag == 0:
					p.places[k-1].verb = marks.Insert
				case r.owner != m.entity && r.next != m.entity:
					p.late = true
				}
			})
			return
		}
	}
	s.together(p, "inserts %d rows", func(k uint8, e, _ uint8) (put, bool) {
		return put{verb: marks.Insert, row: written(marks.Marked(entityNames[e][0], text(id(s.i))))}, p.places[k].verb == marks.Insert
	}, func(w *world, p *actor, k uint8, refused bool) {
		if p.places[k].verb = marks.None; refused {
			p.places[k].verb = marks.Read
		} else {
			p.places[k].mark = w.rows[k].etag
		}
	}, func(p *actor) { p.at = readsPage })
}

// page returns the entities of a Rebuild's page.
func (s *act) page(w *world) (page [2]entity) {
	for i, m := range s.work().members {
		page[i] = w.entities[m.entity-1]
	}
	return page
}

// together makes a request for each transaction of an index in turn. row returns what to write for a key, and for the entity that has the key;
// did gets what was written or refused. end comes after the last one.
func (s *act) together(p *actor, what string, row func(key, e, version uint8) (put, bool), did func(w *world, p *actor, key uint8, refused bool), end func(*actor)) {
	var q request
	wanted := 0
	for i, m := range s.work().members {
		k := p.base[i].key
		if p.base[i].version == 0 || k == 0 || wanted > 0 && s.spread {
			continue
		}
		var version uint8
		if p.seen[i].has(k) {
			version = p.seen[i].version
		}
		if do, ok := row(k-1, m.entity, version); ok {
			q.puts[k-1] = do
			wanted++
		}
	}
	if wanted == 0 {
		s.does("goes on", func(_ *world, p *actor) { end(p) })
		return
	}
	s.sends(fmt.Sprintf(what, wanted), q, func(w *world, p *actor, refused uint8) {
		for k := range q.puts {
			if q.puts[k].verb != marks.None && (refused == 0 || int(refused) == k+1) {
				did(w, p, uint8(k), refused != 0)
			}
		}
	}, s.gives)
}

// reads makes the next request of a reader.
func (s *act) reads(p *actor) {
	key := s.work().members[0].key
	find := func(p *actor) *marks.Find {
		return &marks.Find{Last: *stored(p.row, p.late), Asked: int(p.asked), OnlyOwner: s.owners, Without: s.without()}
	}
	switch p.at {
	case starts, readsAgain:
		s.does("reads the row", func(w *world, p *actor) {
			f := find(p)
			r := w.rows[key-1]
			late := w.expired(r)
			next := f.Row(*stored(r, late))
			if p.asked = uint8(f.Asked); next != marks.Nobody || r.etag != p.row.etag || s.drops(marks.ExpiryFirst) {
				p.key, p.row, p.late, p.row.writers = key, r, late, 0
			}
			s.found(p, next)
		})
	case follows:
		s.does("asks an entity", func(w *world, p *actor) {
			f := find(p)
			p.seen[0] = w.entities[named(f.Entity())-1]
			next := f.Has(p.seen[0].has(key))
			if p.asked = uint8(f.Asked); next == marks.Answer {
				p.says = named(f.Entity())
			}
			s.found(p, next)
		})
	}
}

// found continues a read. A reader that has followed an expired row settles it.
func (s *act) found(p *actor, next marks.Step) {
	switch next {
	case marks.Ask:
		p.at = follows
		return
	case marks.AskAgain:
		p.at = readsAgain
		return
	case marks.Content:
		p.says = p.row.owner
		s.finish(p)
		return
	case marks.Nobody:
		p.says = nobody
	}
	var has []marks.Holder
	if p.says != nobody {
		has = []marks.Holder{{Entity: entityNames[p.says][0], ETag: text(p.seen[0].version)}}
	}
	if r := stored(p.row, p.late); r.Mark == "" || s.agree(p, r, has).Verb == marks.None {
		s.finish(p)
	}
}

// agree decides what a job, or a reader, does about a row, and keeps it.
func (s *act) agree(p *actor, r *marks.Row, has []marks.Holder) marks.Agreement {
	same := len(has) > 0 && p.row.owner == named(has[0].Entity) && (s.owners || p.row.version == number(has[0].ETag))
	found := marks.Agree(r, has, same, text(id(s.i)), s.without())
	p.at, p.fix, p.to = writes, found.Verb, written(found.Row)
	if found.Verb != marks.None && found.Verb != marks.Delete && found.Row.Mark == "" {
		p.to = s.copy(p.to.owner, p.to.version)
	}
	return found
}

// picks lets the repairer begin with a row that is marked and expired, or damaged.
func (s *act) picks() {
	for k, r := range s.from.rows {
		if s.from.damaged&(1<<k) == 0 && (r.mark == 0 || !s.from.expired(r) && !s.drops(marks.TidyAfterTerm)) {
			continue
		}
		owner := r.owner
		for i, e := range s.from.entities {
			if e.has(uint8(k + 1)) {
				owner = uint8(i + 1)
			}
		}
		if owner != 0 {
			s.look(uint8(k+1), owner)
		}
	}
}

// look begins a job at a row, for an entity that had may name. A job that drops the rule reads the entity first.
func (s *act) look(key, entity uint8) {
	s.does(fmt.Sprintf("begins with row %d", key), func(w *world, p *actor) {
		p.key, p.had, p.at = key, entity, asksOwner
		if s.drops(marks.RowThenEntity) {
			p.seen[0], p.at = w.entities[entity-1], looks
			return
		}
		s.readsJobRow(w, p)
	})
}

func (s *act) readsJobRow(w *world, p *actor) {
	p.row = w.rows[p.key-1]
	p.late, p.row.writers = w.expired(p.row), 0
}

// job makes the next request of a job, which repairs or verifies one row, or the write of a reader that settles one.
func (s *act) job(p *actor) {
	switch p.at {
	case looks:
		s.does("reads the row", func(w *world, p *actor) {
			s.readsJobRow(w, p)
			s.compares(p, entityNames[p.had])
		})
	case asksOwner:
		s.does("asks an entity", func(w *world, p *actor) {
			owners := s.ownersOf(p)
			p.seen[p.asked] = w.entities[named(owners[p.asked])-1]
			if p.asked++; int(p.asked) == len(owners) {
				s.compares(p, owners)
			}
		})
	case confirmsRow:
		s.does("reads the row again", func(w *world, p *actor) {
			switch again := w.rows[p.key-1]; {
			case again.etag != p.row.etag:
				s.finish(p)
			case again.etag != 0 || s.drops(marks.ConfirmMissing):
				s.fixes(p)
			default:
				p.at = confirmsEntity
			}
		})
	case confirmsEntity:
		s.does("asks the entity again", func(w *world, p *actor) {
			owners, r := s.ownersOf(p), stored(p.row, p.late)
			had := s.holders(p, owners)
			p.seen[0] = w.entities[named(owners[0])-1]
			if !marks.Confirmed(r, r, had, s.holders(p, owners), s.without()) {
				s.finish(p)
				return
			}
			s.fixes(p)
		})
	case writes:
		do := put{verb: p.fix, under: p.row.etag, row: p.to}
		if do.row.mark != 0 && !s.marked {
			do.row.writers = s.underWay()
		}
		var q request
		q.puts[p.key-1] = do
		s.sends("writes the row", q, func(_ *world, p *actor, _ uint8) { s.finish(p) }, s.gives)
	}
}

// ownersOf returns the entities that a job reads.
func (s *act) ownersOf(p *actor) []marks.Key {
	return stored(p.row, p.late).Owners(entityNames[p.had][0])
}

// holders returns the entities that have the key of the row, as read.
func (s *act) holders(p *actor, owners []marks.Key) (has []marks.Holder) {
	for i, name := range owners {
		if p.seen[i].has(p.key) {
			has = append(has, marks.Holder{Entity: name, ETag: text(p.seen[i].version)})
		}
	}
	return has
}

func (s *act) compares(p *actor, owners []marks.Key) {
	switch found := s.agree(p, stored(p.row, p.late), s.holders(p, owners)); {
	case found.Confirm:
		p.at = confirmsRow
	case s.verifies():
		s.finish(p) // the row is right, or marked
	default:
		s.fixes(p)
	}
}

func (s *act) verifies() bool { return s.i != repairer && s.work().kind == verify }

// fixes goes to the write, if the job writes. Verify reports what was confirmed.
func (s *act) fixes(p *actor) {
	if s.verifies() {
		p.says = nobody
	}
	if p.at = writes; s.verifies() || p.fix == marks.None {
		s.finish(p)
	}
}

// underWay returns the changes whose terms have not passed. A mark that is written now expires after their terms.
func (s *act) underWay() (processes uint8) {
	for i, work := range s.works {
		if p := &s.from.actors[i]; work.kind == change && !p.expired && (p.at >= marking || p.at == done) {
			processes |= 1 << i
		}
	}
	return processes
}
