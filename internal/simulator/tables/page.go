package tables

import (
	"cmp"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// page is the result of one request of a query.
type page struct {
	entities []*entity.Stored
	next     *entity.Stored // the first row of the next page; nil if there is none
	noRow    bool           // the continuation token has no row key
	after    bool           // the Chaos made the page empty
}

// cut says where Chaos ends a page.
type cut struct {
	limit     int
	partition bool // at the end of the partition
	empty     bool
}

func (s *Service) cut(q *request.Query) cut {
	c := cut{limit: q.Top, partition: s.dice.Chance(s.chaos.PartitionPages)}
	if s.dice.Chance(s.chaos.ShortPages) {
		c.limit = 1 + s.dice.Below(c.limit)
	}
	if !q.From.After && s.dice.Chance(s.chaos.EmptyPages) {
		c.limit, c.empty = 0, true
	}
	return c
}

// read runs a query for one page.
func (s *Service) read(g *authorization.Grant, tableName string, q *request.Query) (name string, p page, fault *protocol.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(tableName)
	if fault != nil {
		return "", page{}, fault
	}
	if q.Plan.Empty || q.Top == 0 {
		return t.name, page{}, nil
	}
	if s.chaos.Unordered {
		p = t.unordered(g, q, s.cut(q))
	} else {
		p = t.ordered(g, q, s.cut(q))
		p.noRow = p.next != nil && t.begins(p.next) && s.dice.Chance(s.chaos.NoNextRowKey)
	}
	counts := map[string]int{}
	if s.chaos.PartitionLimit {
		for _, e := range p.entities {
			counts[e.Partition]++
		}
	}
	for pk, n := range counts {
		if !s.admit(t, pk, n) {
			return "", page{}, protocol.ServerBusy()
		}
	}
	return t.name, p, nil
}

// ordered reads a page in the order of the keys. The next page begins at the next row within the bounds, whether or not it
// matches, so the last page may be empty.
func (t *table) ordered(g *authorization.Grant, q *request.Query, c cut) page {
	pk, rk := q.Start()
	if q.From.Set && entity.Compare(q.From.Partition, q.From.Row, pk, rk) > 0 {
		pk, rk = q.From.Partition, q.From.Row
	}
	p := page{after: c.empty}
	at, _ := t.rows.Seek(pk, rk)
	for first := t.rows.At(at); ; at = t.rows.Next(at) {
		e := t.rows.At(at)
		switch {
		case e == nil || q.Ended(e):
			return p
		case !g.Covers(e.Partition, e.Row):
			continue
		case len(p.entities) == c.limit || c.partition && e.Partition != first.Partition:
			p.next = e
			return p
		case q.Match(e.Get):
			p.entities = append(p.entities, e)
		}
	}
}

// begins reports whether e is the first row of its partition.
func (t *table) begins(e *entity.Stored) bool {
	at, _ := t.rows.Seek(e.Partition, "")
	return t.rows.At(at) == e
}

// shuffled is an entity with its position in an order that is unrelated to keys.
type shuffled struct {
	at uint64
	e  *entity.Stored
}

func (a shuffled) compare(b shuffled) int {
	return cmp.Or(cmp.Compare(a.at, b.at), entity.Compare(a.e.Partition, a.e.Row, b.e.Partition, b.e.Row))
}

// scramble returns a hash of a key that is the same in every process.
func scramble(pk, rk string) uint64 {
	h := uint64(14695981039346656037)
	for _, key := range [...]string{pk, "\x00", rk} {
		for i := range len(key) {
			h = (h ^ uint64(key[i])) * 1099511628211
		}
	}
	h ^= h >> 33
	h *= 0xFF51AFD7ED558CCD
	return h ^ h>>33
}

// unordered reads a page in the order of scramble, which is the same for all pages of a query.
func (t *table) unordered(g *authorization.Grant, q *request.Query, c cut) page {
	var all []shuffled
	at, _ := t.rows.Seek(q.Start())
	for e := t.rows.At(at); e != nil && !q.Ended(e); e = t.rows.At(at) {
		if g.Covers(e.Partition, e.Row) && q.Match(e.Get) {
			all = append(all, shuffled{scramble(e.Partition, e.Row), e})
		}
		at = t.rows.Next(at)
	}
	slices.SortFunc(all, shuffled.compare)
	if q.From.Set {
		from := shuffled{scramble(q.From.Partition, q.From.Row), &entity.Stored{Partition: q.From.Partition, Row: q.From.Row}}
		i, _ := slices.BinarySearchFunc(all, from, shuffled.compare)
		all = all[i:]
	}
	p := page{after: c.empty}
	for i, one := range all {
		if i == c.limit {
			p.next = one.e
			break
		}
		p.entities = append(p.entities, one.e)
	}
	return p
}
