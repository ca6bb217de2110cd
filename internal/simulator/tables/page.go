package simulator

import (
	"cmp"
	"slices"
)

// page is what one request of a query returns.
type page struct {
	entities []*entity
	next     *entity // where the next page begins; nil where there is none
	noRow    bool    // the continuation names its partition only
	after    bool    // the page was made empty
}

// cut is where chaos ends a page.
type cut struct {
	limit     int
	partition bool // where the partition ends
	empty     bool
}

func (s *tableService) cut(q *query) cut {
	c := cut{limit: q.top, partition: s.dice.chance(s.chaos.PartitionPages)}
	if s.dice.chance(s.chaos.ShortPages) {
		c.limit = 1 + s.dice.below(c.limit)
	}
	if !q.from.after && s.dice.chance(s.chaos.EmptyPages) {
		c.limit, c.empty = 0, true
	}
	return c
}

// read runs a query for one page.
func (s *tableService) read(g *Grant, tableName string, q *query) (name string, p page, fault *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(tableName)
	if fault != nil {
		return "", page{}, fault
	}
	if q.plan.Empty || q.top == 0 {
		return t.name, page{}, nil
	}
	if s.chaos.Unordered {
		p = t.unordered(g, q, s.cut(q))
	} else {
		p = t.ordered(g, q, s.cut(q))
		p.noRow = p.next != nil && t.begins(p.next) && s.dice.chance(s.chaos.NoNextRowKey)
	}
	counts := map[string]int{}
	if s.chaos.PartitionLimit {
		for _, e := range p.entities {
			counts[e.pk]++
		}
	}
	for pk, n := range counts {
		if !s.admit(t, pk, n) {
			return "", page{}, faultServerBusy()
		}
	}
	return t.name, p, nil
}

// ordered reads a page in the order of keys. The next page begins at the next row that the bounds let through, be it a
// result or not: so the last page may be empty.
func (t *table) ordered(g *Grant, q *query, c cut) page {
	pk, rk := q.start()
	if q.from.set && compareKeys(q.from.pk, q.from.rk, pk, rk) > 0 {
		pk, rk = q.from.pk, q.from.rk
	}
	p := page{after: c.empty}
	at, _ := t.rows.seek(pk, rk)
	for first := t.rows.at(at); ; at = t.rows.next(at) {
		e := t.rows.at(at)
		switch {
		case e == nil || q.ended(e):
			return p
		case !g.Covers(e.pk, e.rk):
			continue
		case len(p.entities) == c.limit || c.partition && e.pk != first.pk:
			p.next = e
			return p
		case q.passes(e):
			p.entities = append(p.entities, e)
		}
	}
}

// begins tells whether e is the first row of its partition.
func (t *table) begins(e *entity) bool {
	at, _ := t.rows.seek(e.pk, "")
	return t.rows.at(at) == e
}

// shuffled is an entity with its place in an order that has nothing to do with keys.
type shuffled struct {
	at uint64
	e  *entity
}

func (a shuffled) compare(b shuffled) int {
	return cmp.Or(cmp.Compare(a.at, b.at), compareKeys(a.e.pk, a.e.rk, b.e.pk, b.e.rk))
}

// scramble is a hash that is the same in every process.
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

// unordered reads a page in an order of its own, the same for every page of a query.
func (t *table) unordered(g *Grant, q *query, c cut) page {
	var all []shuffled
	at, _ := t.rows.seek(q.start())
	for e := t.rows.at(at); e != nil && !q.ended(e); e = t.rows.at(at) {
		if g.Covers(e.pk, e.rk) && q.passes(e) {
			all = append(all, shuffled{scramble(e.pk, e.rk), e})
		}
		at = t.rows.next(at)
	}
	slices.SortFunc(all, shuffled.compare)
	if q.from.set {
		from := shuffled{scramble(q.from.pk, q.from.rk), &entity{pk: q.from.pk, rk: q.from.rk}}
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
