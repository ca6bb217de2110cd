package marks

import (
	"time"

	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The entities are A and B; the index keys are 1 and 2. Number 0 is none of them.
const (
	a, b     = 1, 2
	entities = 2
	keys     = 2
)

// entity is the own row of an entity: its version, which is 0 if it does not exist, and its index key.
type entity struct{ version, key uint8 }

func (e entity) has(key uint8) bool { return e.version != 0 && e.key == key }

// row is the row of an index key. All fields are 0 if it does not exist.
type row struct {
	etag, owner, next, version, mark, acquirer, base uint8
	writers                                          uint8 // the processes that have marked it since it was settled, by bit: it expires when all their terms have passed
}

// place is what changes in a marks.Place.
type place struct {
	verb        marks.Verb
	under, mark uint8
	fresh       bool
}

type verb uint8

const (
	insert verb = iota // without a read before
	move               // gives the entity another key
	touch              // changes another property
	remove
)

// member is one change of a set.
type member struct {
	verb        verb
	entity, key uint8
}

type kind uint8

const (
	change  kind = iota
	old          // a change by a build that does not know the index
	forgets      // the same, in a walk without the rule EveryWriter; otherwise a change
	rebuild      // Rebuild of a page with the entities of the members
	reader       // reads by key, and settles an expired row
	verify       // compares the row of key with entity
)

// work is what a process does.
type work struct {
	kind    kind
	members []member
}

// actors is the number of actors: processes, and a repairer, which is the last one.
const (
	actors   = 5
	repairer = actors - 1
)

type actor struct {
	at       step
	key      uint8     // the key whose row the actor reads or writes
	expired  bool      // its commit does not arrive any more
	failed   bool      // it has not ended its work
	base     [2]entity // the members as read
	versions [2]uint8  // the members as committed
	places   [keys]place
	row      row  // as read
	late     bool // it had expired then
	seen     [2]entity
	asked    uint8
	had      uint8 // by a reader: whether each entity has had the key since it began, by bit, and in bit 0 whether none had
	says     uint8 // the answer of a reader: an entity, or nobody; the finding of a job
	fix      marks.Verb
	to       row
}

const nobody = 7

// put is a write of a row. A blind put has no condition beside the existence of the row.
type put struct {
	verb  marks.Verb
	under uint8
	blind bool
	row   row
}

// request is a transaction: rows of the index, or the members of a change set, in bit order.
type request struct {
	sent    bool
	actor   uint8
	puts    [keys]put
	commits uint8
	base    [2]entity
}

type world struct {
	entities                [entities]entity
	rows                    [keys]row
	actors                  [actors]actor
	late                    request // at most one request is late at a time
	crashes, lates, damages int8    // how many may still occur
	damaged                 uint8   // the keys whose rows somebody has damaged, by bit
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys           [entities]uint8 // of the entities; absent if they do not exist
	works          []work
	crashes, lates int8
	damages        int8
	spread         bool // the keys are in two partitions of the index
	owners         bool // copies store only their owner, so a change that keeps the key does not mark
	bare           bool // the index is not built
	marked         bool // all rows stay marked, since builds that do not know the index may run

	plans map[plan][]marks.Place
}

type plan struct {
	actor int
	base  [2]entity
}

const absent = 9

// without returns the rules that the walk drops.
func (c *World) without() marks.Rules { return marks.Rules(c.Drop) }

func (c *World) drops(r marks.Rules) bool { return c.without().Has(r) }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop, c.plans = drop, map[plan][]marks.Place{}
	w := world{crashes: c.crashes, lates: c.lates, damages: c.damages}
	for i, key := range c.keys {
		if key == absent {
			continue
		}
		w.entities[i] = entity{uint8(i + 1), key}
		if key != 0 && !c.bare {
			r := row{etag: key, owner: uint8(i + 1), version: uint8(i + 1)}
			if c.owners {
				r.version = 0
			}
			if c.marked {
				r.mark = anyMark
			}
			w.rows[key-1] = r
		}
	}
	for i := range c.works {
		w.actors[i].at = starts
	}
	w.actors[repairer].at = idle
	c.normalize(&w)
	return models.Model[world]{Start: w, Next: c.next, Wrong: c.wrong, Quiet: c.quiet, Show: show, MaxStates: maxStates}.Walk()
}

// numbers has the texts of ETags, versions and IDs of changes, which are numbers in a world.
const numbers = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"

func text(n uint8) string {
	if n == 0 {
		return ""
	}
	return numbers[n : n+1]
}

func number(s string) uint8 {
	if s == "" {
		return 0
	}
	return s[0]
}

// id returns the mark of an actor's change.
func id(actor int) uint8 { return uint8(actor + 1) }

// anyMark is a mark of nobody who is at work.
const anyMark = repairer + 2

var entityNames = [...][]marks.Key{{}, {{Row: "A"}}, {{Row: "B"}}}

// named returns the number of an entity.
func named(k marks.Key) uint8 {
	if k == entityNames[a][0] {
		return a
	}
	return b
}

// site returns the site of a key.
func (c *World) site(key uint8) marks.Site {
	s := marks.Site{Key: marks.Key{Row: text(key)}}
	if c.spread {
		s.Partition = s.Row
	}
	return s
}

// stored converts a row for package marks. late says that the terms of all who have marked it have passed.
func stored(r row, late bool) *marks.Row {
	s := &marks.Row{Version: text(r.version), Mark: text(r.mark), Acquirer: text(r.acquirer), Base: text(r.base), ETag: text(r.etag)}
	s.Written = time.Unix(1, 0)
	if s.Answered = s.Written; late {
		s.Answered = s.Written.Add(marks.Term + marks.Grace)
	}
	if s.Names = entityNames[r.owner]; r.next != 0 {
		s.Names = []marks.Key{entityNames[r.owner][0], entityNames[r.next][0]}
	}
	return s
}

// written converts a row of package marks.
func written(s marks.Row) (r row) {
	r = row{version: number(s.Version), mark: number(s.Mark), acquirer: number(s.Acquirer), base: number(s.Base)}
	if len(s.Names) > 0 {
		r.owner = named(s.Names[0])
	}
	if len(s.Names) > 1 {
		r.next = named(s.Names[1])
	}
	return r
}

// seen converts an entity for package marks.
func seen(e entity, key uint8) marks.Seen { return marks.Seen{ETag: text(e.version), Has: e.has(key)} }

// expired reports whether the terms of all who have marked a row have passed.
func (w *world) expired(r row) bool {
	for i := range w.actors {
		if r.writers&(1<<i) != 0 && !w.actors[i].expired {
			return false
		}
	}
	return true
}

// newETag returns an ETag that nobody knows. The service is not asked for one before normalize has numbered the world again.
func (w *world) newETag() uint8 {
	var last uint8
	w.etags(func(n *uint8) { last = max(last, *n) })
	return last + 1
}

func (w *world) newVersion() uint8 {
	var last uint8
	w.versions(func(n *uint8) { last = max(last, *n) })
	return last + 1
}

// etags calls visit for each ETag of a row that somebody knows, and versions for each of an entity.
func (w *world) etags(visit func(*uint8)) {
	for i := range w.rows {
		visit(&w.rows[i].etag)
	}
	for i := range w.actors {
		p := &w.actors[i]
		if p.at <= idle {
			continue
		}
		visit(&p.row.etag)
		for k := range p.places {
			visit(&p.places[k].under)
			visit(&p.places[k].mark)
		}
	}
	for k := range w.late.puts {
		visit(&w.late.puts[k].under)
	}
}

func (w *world) versions(visit func(*uint8)) {
	ofRow := func(r *row) {
		visit(&r.version)
		visit(&r.base)
	}
	for i := range w.entities {
		visit(&w.entities[i].version)
	}
	for i := range w.rows {
		ofRow(&w.rows[i])
	}
	for i := range w.actors {
		p := &w.actors[i]
		if p.at <= idle {
			continue
		}
		for m := range p.base {
			visit(&p.base[m].version)
			visit(&p.versions[m])
			visit(&p.seen[m].version)
		}
		ofRow(&p.row)
		ofRow(&p.to)
	}
	for i := range w.late.puts {
		ofRow(&w.late.puts[i].row)
	}
	for m := range w.late.base {
		visit(&w.late.base[m].version)
	}
}

// normalize numbers ETags and versions in the order in which a state has them, so that states that differ only in these numbers are one. It also
// forgets what nobody asks for any more.
func (c *World) normalize(w *world) {
	var writers uint8
	for i := range w.rows {
		writers |= w.rows[i].writers
	}
	for i := range w.actors {
		if p := &w.actors[i]; p.at > idle {
			writers |= p.row.writers
		}
	}
	for i := range w.actors {
		if p := &w.actors[i]; p.at == done && writers&(1<<i) == 0 && !(w.late.sent && int(w.late.actor) == i) {
			p.expired = true
		}
	}
	renumber(w.etags)
	renumber(w.versions)
}

func renumber(each func(func(*uint8))) {
	var to [64]uint8
	var last uint8
	each(func(n *uint8) {
		if *n != 0 && to[*n] == 0 {
			last++
			to[*n] = last
		}
		*n = to[*n]
	})
}
