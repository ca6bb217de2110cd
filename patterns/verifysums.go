package patterns

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/patterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/tables"
)

// site is where something is stored for an entity. Required and stored facts are matched by site.
type site struct {
	area   int    // index of the verifier's area
	place  string // key, in the notation of the area
	entity tables.Key
}

// fact is one thing that is stored, or required, at a site. An outside site has two: the copy and its claim.
type fact struct {
	site
	digest     [16]byte
	extraClaim string // the row key of a claim other than the site's own
}

// collector collects the sites of some buckets at which required and stored facts differ. It drops a site once they
// match, so it holds only facts without a counterpart.
type collector struct {
	chosen [tally.Buckets]bool
	open   map[site]*openSite
}

type openSite struct {
	sum         tally.Sum
	extraClaims []string
}

func newCollector(chosen []uint16) *collector {
	c := &collector{open: map[site]*openSite{}}
	for _, b := range chosen {
		c.chosen[b] = true
	}
	return c
}

func (c *collector) count(value tally.Sum, f *fact, wanted bool) {
	s := c.open[f.site]
	if s == nil {
		s = &openSite{}
		c.open[f.site] = s
	}
	s.sum.Count(value, wanted)
	if f.extraClaim != "" && !slices.Contains(s.extraClaims, f.extraClaim) {
		s.extraClaims = append(s.extraClaims, f.extraClaim)
	}
	if s.sum == (tally.Sum{}) {
		delete(c.open, f.site)
	}
}

// candidates returns the sites that still differ, sorted.
func (c *collector) candidates() []*candidate {
	list := make([]*candidate, 0, len(c.open))
	for at, s := range c.open {
		list = append(list, &candidate{site: at, extraClaims: s.extraClaims})
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.area, b.area), cmp.Compare(a.entity.Partition, b.entity.Partition),
			cmp.Compare(a.entity.Row, b.entity.Row), cmp.Compare(a.place, b.place))
	})
	return list
}

// hasher makes digests. It is not safe for concurrent use.
type hasher struct {
	scratch []byte
	sorted  tables.Properties
	same    *tables.Property // first property of the properties that were digested last; length is their number, last their digest
	length  int
	last    [16]byte
}

// text appends a text such that different lists of texts give different bytes.
func (h *hasher) text(s string) {
	h.scratch = binary.AppendUvarint(h.scratch, uint64(len(s)))
	h.scratch = append(h.scratch, s...)
}

func (h *hasher) sum() (digest [16]byte) {
	full := sha256.Sum256(h.scratch)
	return [16]byte(full[:16])
}

// place returns a fact's bucket, which depends on its site only, and its value.
func (h *hasher) place(f *fact) (bucket uint16, value tally.Sum) {
	h.scratch = binary.AppendUvarint(h.scratch[:0], uint64(f.area))
	h.text(f.place)
	h.text(f.entity.Partition)
	h.text(f.entity.Row)
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	n := uint64(offset)
	for _, c := range h.scratch {
		n = (n ^ uint64(c)) * prime
	}
	h.scratch = append(h.scratch, f.digest[:]...)
	d := h.sum()
	return uint16((n ^ n>>32) % tally.Buckets), tally.Sum{binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:])}
}

// row digests a row's properties, in whatever order they come, and the mark of the entity's version.
func (h *hasher) row(p tables.Properties, mark string) [16]byte {
	inner := h.properties(p)
	h.scratch = append(h.scratch[:0], inner[:]...)
	h.text(mark)
	return h.sum()
}

// properties digests properties. The digest is reused for the entity's copies, which mostly have the same properties.
func (h *hasher) properties(p tables.Properties) [16]byte {
	if len(p) > 0 && h.same == &p[0] && h.length == len(p) {
		return h.last
	}
	byName := func(a, b tables.Property) int { return cmp.Compare(a.Name, b.Name) }
	sorted := p
	if !slices.IsSortedFunc(p, byName) {
		h.sorted = append(h.sorted[:0], p...)
		slices.SortFunc(h.sorted, byName)
		sorted = h.sorted
	}
	h.scratch = h.scratch[:0]
	for i := range sorted {
		h.scratch = edm.AppendProperty(append(h.scratch, ','), sorted[i].Name, edm.Value(sorted[i].Value))
	}
	d := h.sum()
	if len(p) > 0 {
		h.same, h.length, h.last = &p[0], len(p), d
	}
	return d
}

// nextRow discards the cached digest, since a reader of rows reuses the memory of the last row.
func (h *hasher) nextRow() { h.same = nil }

// claim digests the claim of a copy, whose row key contains all of its content.
func (h *hasher) claim(row string) [16]byte {
	h.scratch = append(h.scratch[:0], "claim "...)
	h.text(row)
	return h.sum()
}
