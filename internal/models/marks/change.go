package marks

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/marks"
)

// plan returns the places of an actor's change, as package marks plans them; nil if the change is not possible.
func (s *act) plan(base [2]entity) []marks.Place {
	key := plan{s.i, base}
	places, known := s.plans[key]
	if known {
		return places
	}
	var members []marks.Member
	for i, m := range s.work().members {
		after, exists := m.after(base[i])
		if base[i].version == 0 && m.verb != insert {
			s.plans[key] = nil
			return nil
		}
		member := marks.Member{Entity: entityNames[m.entity][0], Base: text(base[i].version)}
		if s.owners && base[i].version != 0 && exists && after == base[i].key {
			after, base[i].key = 0, 0
		}
		if base[i].version != 0 && base[i].key != 0 {
			member.Had = []marks.Site{s.site(base[i].key)}
		}
		if exists && after != 0 {
			member.Has = []marks.Site{s.site(after)}
		}
		members = append(members, member)
	}
	places, twice := marks.Plan(text(id(s.i)), members, s.without())
	if twice == nil && places == nil {
		places = []marks.Place{}
	}
	s.plans[key] = places
	return places
}

func keyOf(p *marks.Place) uint8 { return number(p.Row) }

// places returns the places of an actor's change, by transaction, as they are now.
func (s *act) places(p *actor) [][]marks.Place {
	places := append([]marks.Place(nil), s.plan(p.base)...)
	for i := range places {
		is := p.places[keyOf(&places[i])-1]
		places[i].Verb, places[i].Under, places[i].Mark, places[i].Fresh = is.verb, text(is.under), text(is.mark), is.fresh
	}
	return marks.Groups(places)
}

func (p *actor) keep(from *marks.Place) {
	p.places[keyOf(from)-1] = place{from.Verb, number(from.Under), number(from.Mark), from.Fresh}
}

// place calls f with the place of a key, and keeps what f changes.
func (s *act) place(p *actor, key uint8, f func(*marks.Place)) {
	for _, g := range s.places(p) {
		for i := range g {
			if keyOf(&g[i]) == key {
				f(&g[i])
				p.keep(&g[i])
			}
		}
	}
}

// changes makes the next request of a change.
func (s *act) changes(p *actor) {
	switch p.at {
	case starts:
		s.does("reads", func(w *world, p *actor) { s.readMember(w, p, 0) })
	case readsSecond:
		s.does("reads the second member", func(w *world, p *actor) { s.readMember(w, p, 1) })
	case marking:
		for _, g := range s.places(p) {
			s.mark(g)
		}
	case readsRow:
		s.does(fmt.Sprintf("reads row %d", p.key), s.readRow)
	case asks:
		s.does("asks an entity", func(w *world, p *actor) {
			names := stored(p.row, p.late).Names
			p.seen[p.asked] = w.entities[named(names[p.asked])-1]
			if p.asked++; int(p.asked) == len(names) {
				s.decide(w, p)
			}
		})
	case commits:
		s.commits(p)
	case settles:
		s.after(p, marks.Committed)
	case releases:
		s.after(p, marks.Refused)
	}
}

func (s *act) readMember(w *world, p *actor, i int) {
	members := s.work().members
	if members[i].verb != insert {
		p.base[i] = w.entities[members[i].entity-1]
	}
	if i+1 < len(members) {
		p.at = readsSecond
		return
	}
	if s.work().kind == old || s.work().kind == forgets && s.drops(marks.EveryWriter) {
		p.at = commits
		return
	}
	planned := s.plan(p.base)
	if planned == nil {
		s.finish(p)
		return
	}
	for i := range planned {
		p.keep(&planned[i])
	}
	s.proceed(p)
}

// proceed goes to the next mark, or to the commit.
func (s *act) proceed(p *actor) {
	p.at, p.key, p.row, p.late, p.seen, p.asked = commits, 0, row{}, false, [2]entity{}, 0
	for k := range p.places {
		if p.places[k].verb != marks.None {
			p.at = marking
		}
	}
}

// mark reads the first row of a group that must be read or, if there is none, writes all marks of the group.
func (s *act) mark(g []marks.Place) {
	var q request
	wanted := 0
	for i := range g {
		switch p := &g[i]; p.Verb {
		case marks.None:
			continue
		case marks.Read:
			s.does(fmt.Sprintf("reads row %d", keyOf(p)), func(w *world, a *actor) {
				a.key = keyOf(p)
				s.readRow(w, a)
			})
			return
		default:
			r := written(p.Content())
			r.writers = 1 << s.i
			q.puts[keyOf(p)-1] = put{verb: p.Verb, under: number(p.Under), row: r}
			wanted++
		}
	}
	if wanted == 0 {
		return
	}
	s.sends(fmt.Sprintf("marks %d rows", wanted), q, func(w *world, p *actor, refused uint8) {
		for i := range g {
			switch pl := &g[i]; {
			case pl.Verb == marks.None:
				continue
			case refused == 0:
				pl.Wrote(text(w.rows[keyOf(pl)-1].etag))
			case keyOf(pl) == refused:
				pl.Refused()
			}
			p.keep(&g[i])
		}
		s.proceed(p)
	}, s.gives)
}

// readRow reads the row of the current key, and decides if it asks for no entity.
func (s *act) readRow(w *world, p *actor) {
	p.row = w.rows[p.key-1]
	p.late = w.expired(p.row)
	p.at, p.asked = asks, 0
	asked := 0
	s.place(p, p.key, func(pl *marks.Place) { asked = len(pl.Asks(stored(p.row, p.late))) })
	if asked == 0 {
		s.decide(w, p)
	} else if !s.drops(marks.ExpiryFirst) {
		p.row.writers = 0
	}
}

func (s *act) decide(w *world, p *actor) {
	if s.drops(marks.ExpiryFirst) {
		p.late = w.expired(p.row)
	}
	var now []marks.Seen
	for _, e := range p.seen[:p.asked] {
		now = append(now, seen(e, p.key))
	}
	s.place(p, p.key, func(pl *marks.Place) {
		if pl.Decide(stored(p.row, p.late), now) != marks.Allowed {
			p.at = releases
		}
	})
	if p.at == releases {
		s.ends(p, releases, marks.Refused)
		return
	}
	s.proceed(p)
}

// commits commits the change, unless its term has passed.
func (s *act) commits(p *actor) {
	if p.expired && !s.drops(marks.CommitInTerm) {
		s.does("is too late to commit", func(_ *world, p *actor) { s.ends(p, releases, marks.Refused) })
		return
	}
	all := uint8(1)<<len(s.work().members) - 1
	q := request{actor: uint8(s.i), commits: all, base: p.base}
	if s.drops(marks.OneTransaction) && all == 3 {
		q.commits = 1 << p.asked
	}
	s.sends("commits", q, func(w *world, p *actor, refused uint8) {
		for i, m := range s.work().members {
			p.versions[i] = w.entities[m.entity-1].version
		}
		switch {
		case refused != 0:
			s.ends(p, releases, marks.Refused)
		case q.commits == 1 && all == 3:
			p.asked = 1
		default:
			p.asked = 0
			s.ends(p, settles, marks.Committed)
		}
	}, func(_ *world, p *actor) { s.ends(p, releases, marks.Unknown) })
	if s.from.lates > 0 {
		s.does("commits; a proxy sends it twice, and returns the second answer", func(w *world, p *actor) {
			s.service(w, &q)
			w.lates--
			s.ends(p, releases, marks.Refused)
		})
	}
}

// ends goes to the work after a commit, if there is any.
func (s *act) ends(p *actor, at step, o marks.Outcome) {
	p.at, p.row, p.seen, p.asked, p.key = at, row{}, [2]entity{}, 0, 0
	if built := !s.bare || s.drops(marks.LeaveUnbuilt); built && (o != marks.Unknown || s.drops(marks.LeaveUnknown)) {
		for _, g := range s.places(p) {
			for i := range g {
				if g[i].After(o) != marks.None {
					return
				}
			}
		}
	}
	s.finish(p)
}

// after settles or releases the rows of the first transaction that has any.
func (s *act) after(p *actor, o marks.Outcome) {
	var q request
	wanted := 0
	for _, g := range s.places(p) {
		for i := range g {
			pl := &g[i]
			do := put{verb: pl.After(o), under: number(pl.Mark), blind: s.drops(marks.SettleUnderMark)}
			switch do.verb {
			case marks.None:
				continue
			case marks.Read:
				s.release(p, pl)
				return
			case marks.Replace:
				do.row = s.settled(pl, p)
			}
			q.puts[keyOf(pl)-1] = do
			wanted++
		}
		if wanted > 0 {
			break
		}
	}
	s.sends(fmt.Sprintf("settles or releases %d rows", wanted), q, func(_ *world, p *actor, refused uint8) {
		for k := range p.places { // a refused row is marked by somebody else: the others are sent again
			if q.puts[k].verb != marks.None && (refused == 0 || int(refused) == k+1) {
				p.places[k].mark = 0
			}
		}
		s.ends(p, p.at, o)
	}, s.gives)
}

// release reads the entity of a fresh row, and then deletes the row.
func (s *act) release(p *actor, pl *marks.Place) {
	key := keyOf(pl)
	if p.key != key {
		s.does(fmt.Sprintf("reads the entity of row %d again", key), func(w *world, p *actor) {
			if pl.Release(seen(w.entities[named(pl.Acquirer().Entity)-1], key)) == marks.Delete {
				p.key = key
				return
			}
			p.places[key-1].mark = 0
			s.ends(p, p.at, marks.Refused)
		})
		return
	}
	var q request
	q.puts[key-1] = put{verb: marks.Delete, under: p.places[key-1].mark}
	s.sends(fmt.Sprintf("releases row %d", key), q, func(_ *world, p *actor, _ uint8) {
		p.places[key-1].mark = 0
		s.ends(p, p.at, marks.Refused)
	}, s.gives)
}

// settled returns the row of a place after the commit.
func (s *act) settled(pl *marks.Place, p *actor) row {
	var version uint8
	for i, m := range s.work().members {
		if entityNames[m.entity][0] == pl.Taker.Entity {
			version = p.versions[i]
		}
	}
	return s.copy(named(pl.Taker.Entity), version)
}

// copy returns a settled row, which stays marked while builds may run that do not know the index.
func (c *World) copy(e, version uint8) row {
	if c.owners {
		version = 0
	}
	r := written(marks.Settled(entityNames[e][0], text(version)))
	if c.marked {
		r.mark = anyMark
	}
	return r
}
