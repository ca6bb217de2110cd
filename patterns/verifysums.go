package patterns

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// site is where something is held for an entity. What the entities ask for and what is stored meet by it.
type site struct {
	area   int    // index of the verifier's area
	place  string // in the words of the area
	entity tables.Key
}

// fact is one thing that is held, or asked for, at a site. A site outside has two: the copy and its claim.
type fact struct {
	site
	digest     [16]byte
	extraClaim string // the row key of a claim that is not the site's own
}

// sum is a number of 128 bits. Facts are added to it in any order.
type sum [2]uint64

func (s *sum) add(f sum) {
	var carry uint64
	s[0], carry = bits.Add64(s[0], f[0], 0)
	s[1], _ = bits.Add64(s[1], f[1], carry)
}

func (s *sum) subtract(f sum) {
	var borrow uint64
	s[0], borrow = bits.Sub64(s[0], f[0], 0)
	s[1], _ = bits.Sub64(s[1], f[1], borrow)
}

// count adds a fact that is asked for, or takes off one that is stored.
func (s *sum) count(f sum, wanted bool) {
	if wanted {
		s.add(f)
		return
	}
	s.subtract(f)
}

// buckets is the number of sums that share the facts of a run.
const buckets = 4096

// tally takes the facts of a scan.
type tally interface {
	count(bucket uint16, value sum, f *fact, wanted bool)
}

// sums are the sums of one scan. The zero sums are ready.
type sums struct {
	buckets [buckets]sum
	facts   int64
}

func (s *sums) count(bucket uint16, value sum, _ *fact, wanted bool) {
	s.buckets[bucket].count(value, wanted)
	s.facts++
}

// unequal lists the buckets in which what is asked for is not what is stored.
func (s *sums) unequal() []uint16 {
	var list []uint16
	for i := range s.buckets {
		if s.buckets[i] != (sum{}) {
			list = append(list, uint16(i))
		}
	}
	return list
}

const sumSize = 16

// bytes is the stored form of sums, nil for none at all.
func (s *sums) bytes() []byte {
	if s.facts == 0 {
		return nil
	}
	out := make([]byte, 0, buckets*sumSize)
	for i := range s.buckets {
		out = binary.BigEndian.AppendUint64(out, s.buckets[i][1])
		out = binary.BigEndian.AppendUint64(out, s.buckets[i][0])
	}
	return out
}

// parse is the inverse of bytes.
func (s *sums) parse(text []byte, facts int64) error {
	*s = sums{facts: facts}
	if len(text) == 0 && facts == 0 {
		return nil
	}
	if len(text) != buckets*sumSize || facts <= 0 {
		return errors.New("its sums are not of this build's size")
	}
	for i := range s.buckets {
		s.buckets[i] = sum{binary.BigEndian.Uint64(text[i*sumSize+8:]), binary.BigEndian.Uint64(text[i*sumSize:])}
	}
	return nil
}

// collector keeps the sites of some buckets at which what is asked for is not what is stored. A site that comes out even is
// forgotten, so that it holds what is still without a counterpart.
type collector struct {
	chosen [buckets]bool
	open   map[site]*openSite
}

type openSite struct {
	sum         sum
	extraClaims []string
}

func newCollector(chosen []uint16) *collector {
	c := &collector{open: map[site]*openSite{}}
	for _, b := range chosen {
		c.chosen[b] = true
	}
	return c
}

func (c *collector) count(bucket uint16, value sum, f *fact, wanted bool) {
	if !c.chosen[bucket] {
		return
	}
	s := c.open[f.site]
	if s == nil {
		s = &openSite{}
		c.open[f.site] = s
	}
	s.sum.count(value, wanted)
	if f.extraClaim != "" && !slices.Contains(s.extraClaims, f.extraClaim) {
		s.extraClaims = append(s.extraClaims, f.extraClaim)
	}
	if s.sum == (sum{}) {
		delete(c.open, f.site)
	}
}

// candidates returns the sites that are open, in order.
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
	same    *tables.Property // of the row that was digested last, with the size it had
	length  int
	last    [16]byte
}

// text appends a text so that no two lists of texts are alike.
func (h *hasher) text(s string) {
	h.scratch = binary.AppendUvarint(h.scratch, uint64(len(s)))
	h.scratch = append(h.scratch, s...)
}

func (h *hasher) sum() (digest [16]byte) {
	full := sha256.Sum256(h.scratch)
	return [16]byte(full[:16])
}

// place tells a fact's bucket, which is that of its site, and its value.
func (h *hasher) place(f *fact) (bucket uint16, value sum) {
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
	return uint16((n ^ n>>32) % buckets), sum{binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:])}
}

// row digests a row's properties, in whichever order they are, and the mark that tells which version of the entity it is of.
func (h *hasher) row(p tables.Properties, mark string) [16]byte {
	inner := h.properties(p)
	h.scratch = append(h.scratch[:0], inner[:]...)
	h.text(mark)
	return h.sum()
}

// properties digests properties. An entity's copies mostly hold all it has: those are digested once.
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

// nextRow forgets the row that was digested last: a reader of rows uses its memory again.
func (h *hasher) nextRow() { h.same = nil }

// claim digests the claim of a copy, which is named after all that it says.
func (h *hasher) claim(row string) [16]byte {
	h.scratch = append(h.scratch[:0], "claim "...)
	h.text(row)
	return h.sum()
}
