package marks

import (
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/marks"
)

type step int8

// The steps of an actor: its next request.
const (
	done step = iota
	idle
	starts
	readsSecond
	marking // from here on its term runs
	readsRow
	asks
	commits
	settles
	releases
	insertsPage // Rebuild
	readsPage
	settlesPage
	follows // a reader
	readsAgain
	looks // a job, and then a reader that settles a row
	asksOwner
	confirmsRow
	confirmsEntity
	writes
)

// maxStates limits a walk.
const maxStates = 3_000_000

var who = [actors]string{"process 1", "process 2", "process 3", "process 4", "the repairer"}

// act is a step of an actor.
type act struct {
	*World
	from *world
	i    int
	emit func(to world, who, what string)
}

func (s *act) actor() *actor { return &s.from.actors[s.i] }
func (s *act) work() *work   { return &s.works[s.i] }

// does emits the state after a request. f changes a copy of the state, and the actor in it.
func (s *act) does(what string, f func(w *world, p *actor)) {
	to := *s.from
	f(&to, &to.actors[s.i])
	s.out(&to, s.from, who[s.i], what, s.emit)
}

// sends emits the states that a write leads to. f gets the key whose condition was not met, 0 if all were; it is member m+1 for a commit. The answer may be lost, and
// the request is sent again; a copy of the request may arrive later again; or no answer comes, and the request arrives later, or never: lost says what the
// actor does then.
func (s *act) sends(what string, q request, f func(w *world, p *actor, refused uint8), lost func(w *world, p *actor)) {
	q.sent, q.actor = true, uint8(s.i)
	s.does(what, func(w *world, p *actor) { f(w, p, s.service(w, &q)) })
	if s.from.lates == 0 || s.from.late.sent {
		return
	}
	if q.commits == 0 || s.drops(marks.InsertOnce) || !s.inserts() {
		s.does(what+"; a copy of the request is under way", func(w *world, p *actor) {
			refused := s.service(w, &q)
			w.late, w.lates = q, w.lates-1
			f(w, p, refused)
		})
	}
	if q.commits == 0 { // a commit is found by its write ID
		s.does(what+"; the answer is lost", func(w *world, _ *actor) {
			s.service(w, &q)
			w.lates--
		})
	}
	s.does(what+"; no answer", func(w *world, p *actor) {
		w.late, w.lates = q, w.lates-1
		lost(w, p)
	})
}

// inserts reports whether the actor's change inserts an entity.
func (s *act) inserts() bool {
	return slices.ContainsFunc(s.work().members, func(m member) bool { return m.verb == insert })
}

// gives lets an actor end its work early.
func (s *act) gives(_ *world, p *actor) {
	s.finish(p)
	p.failed = true
}

func (s *act) finish(p *actor) {
	*p = actor{at: done, expired: p.expired, failed: p.failed, had: p.had, says: p.says}
	if s.i == repairer {
		*p = actor{at: idle}
	}
}

// service applies a request if the conditions of all its rows are met.
func (c *World) service(w *world, q *request) (refused uint8) {
	if q.commits != 0 {
		return c.commit(w, q)
	}
	for k, p := range q.puts {
		is := w.rows[k].etag
		if p.verb == marks.Insert && is != 0 || p.verb == marks.Merge && is == 0 || (p.verb == marks.Replace || p.verb == marks.Delete) && (is == 0 || is != p.under && !p.blind) {
			return uint8(k + 1)
		}
	}
	for k, p := range q.puts {
		r := &w.rows[k]
		switch p.verb {
		case marks.None:
			continue
		case marks.Delete:
			*r = row{}
			continue
		case marks.Merge:
			r.mark, r.writers = p.row.mark, r.writers|p.row.writers
		default:
			before := r.writers
			if *r = p.row; r.mark != 0 {
				r.writers |= before
			}
		}
		r.etag = 0
		r.etag = w.newETag()
		if q.actor == repairer {
			w.damaged &^= 1 << k
		}
	}
	return 0
}

// commit commits the members of a change.
func (c *World) commit(w *world, q *request) (refused uint8) {
	members := c.works[q.actor].members
	for i, m := range members {
		if q.commits&(1<<i) != 0 && w.entities[m.entity-1].version != q.base[i].version {
			return uint8(i + 1)
		}
	}
	for i, m := range members {
		if q.commits&(1<<i) == 0 {
			continue
		}
		key, stays := m.after(q.base[i])
		w.entities[m.entity-1] = entity{}
		if stays {
			w.entities[m.entity-1] = entity{w.newVersion(), key}
		}
	}
	return 0
}

// after returns the key of the entity after the change, and whether the entity exists then.
func (m *member) after(base entity) (key uint8, exists bool) {
	switch m.verb {
	case touch:
		return base.key, true
	case remove:
		return 0, false
	}
	return m.key, true
}

// next emits every state that one step can reach.
func (c *World) next(from world, emit func(to world, who, what string)) {
	for i := range from.actors {
		s := &act{c, &from, i, emit}
		switch p := s.actor(); {
		case p.at == done:
		case p.at == idle:
			s.picks()
		default:
			s.step(p)
			if from.crashes > 0 && p.at > starts && (i == repairer || c.works[i].kind != reader) {
				s.does("dies", func(w *world, p *actor) {
					w.crashes--
					s.gives(w, p)
				})
			}
		}
	}
	for i, work := range c.works {
		if p := &from.actors[i]; (work.kind == change || work.kind == forgets) && !p.expired && (p.at >= marking || p.at == done) {
			to := from
			to.actors[i].expired = true
			c.out(&to, &from, "the term of "+who[i], "passes", emit)
		}
	}
	if from.late.sent {
		c.arrives(from, emit)
	}
	if from.damages > 0 {
		c.damage(from, emit)
	}
}

func (s *act) step(p *actor) {
	switch {
	case p.at >= looks:
		s.job(p)
	case s.work().kind == reader:
		s.reads(p)
	case s.work().kind == verify:
		s.look(s.work().members[0].key, s.work().members[0].entity)
	case s.work().kind == rebuild:
		s.rebuilds(p)
	default:
		s.changes(p)
	}
}

// arrives emits what becomes of a late request.
func (c *World) arrives(from world, emit func(to world, who, what string)) {
	q := from.late
	to := from
	to.late = request{}
	c.out(&to, &from, "a late request", "never arrives", emit)
	if q.commits != 0 && from.actors[q.actor].expired && !c.drops(marks.CommitInTerm) {
		return
	}
	to = from
	c.service(&to, &q)
	to.late = request{}
	c.out(&to, &from, "a late request", "arrives", emit)
}

// damage emits what somebody does who does not know the library.
func (c *World) damage(from world, emit func(to world, who, what string)) {
	for k, r := range from.rows {
		if r.etag == 0 {
			continue
		}
		to := from
		to.damages--
		to.damaged |= 1 << k
		to.rows[k] = row{}
		c.out(&to, &from, "somebody", fmt.Sprintf("deletes row %d", k+1), emit)
		to.rows[k] = row{etag: from.newETag(), owner: r.owner, version: from.newVersion()}
		c.out(&to, &from, "somebody", fmt.Sprintf("restores an old row %d", k+1), emit)
	}
}

// out emits a state, after it has recorded what readers may answer.
func (c *World) out(to, from *world, who, what string, emit func(to world, who, what string)) {
	for i := range c.works {
		if p := &to.actors[i]; c.works[i].kind == reader && from.actors[i].at != done && p.at != starts {
			key, none := c.works[i].members[0].key, uint8(1)
			for e := range to.entities {
				if to.entities[e].has(key) {
					p.had |= 2 << e
					none = 0
				}
			}
			p.had |= none
		}
	}
	c.normalize(to)
	emit(*to, who, what)
}

// wrong returns what a state violates, or "".
func (c *World) wrong(w world) string {
	if wrong := c.wrongRow(&w, w.damaged); wrong != "" {
		return wrong
	}
	for i := range c.works {
		if said := c.answers(&w, i); said != "" {
			return said
		}
	}
	return ""
}

// wrongRow returns what the rows of the keys violate that are not to be left out.
func (c *World) wrongRow(w *world, leaveOut uint8) string {
	for k := range w.rows {
		if r := &w.rows[k]; r.etag != 0 && r.mark == 0 && leaveOut&(1<<k) == 0 {
			if e := w.entities[r.owner-1]; !e.has(uint8(k+1)) || r.version != e.version && !c.owners {
				return fmt.Sprintf("settled: row %d is %+v, and its owner %+v", k+1, *r, e)
			}
		}
	}
	if !c.built(w) {
		return ""
	}
	for i, e := range w.entities {
		if e.version == 0 || e.key == 0 || leaveOut&(1<<(e.key-1)) != 0 {
			continue
		}
		if r := &w.rows[e.key-1]; int(r.owner) != i+1 && int(r.next) != i+1 {
			return fmt.Sprintf("found: entity %d has key %d, whose row is %+v", i+1, e.key, *r)
		}
		for _, other := range w.entities[i+1:] {
			if other.has(e.key) {
				return "unique: two entities have one key"
			}
		}
	}
	return ""
}

// answers checks what a reader or Verify says.
func (c *World) answers(w *world, i int) string {
	switch p, kind := &w.actors[i], c.works[i].kind; {
	case p.says == 0:
	case kind == verify:
		return "Verify reports a row that was right all the time"
	case kind == reader && p.had&(1<<(p.says%nobody)) == 0:
		return fmt.Sprintf("a reader answers %d (7: no entity), which was true at no moment of its read", p.says)
	}
	return ""
}

// built reports whether each Rebuild has ended. Until then, keys need no rows.
func (c *World) built(w *world) bool {
	for i := range c.works {
		if p := &w.actors[i]; c.works[i].kind == rebuild && (p.at != done || p.failed) {
			return false
		}
	}
	return true
}

// quiet reports whether a state is final: nobody is at work, no row is marked, and no request is late.
func (c *World) quiet(w world) bool {
	for i := range w.actors {
		if w.actors[i].at > idle {
			return false
		}
	}
	for i := range w.rows {
		if w.rows[i].mark != 0 && !c.marked {
			return false
		}
	}
	return !w.late.sent && (w.damaged == 0 || c.wrongRow(&w, 0) == "")
}

func show(w world) string { return fmt.Sprintf("entities %+v rows %+v", w.entities, w.rows) }
