package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
)

// sum is a 128-bit sum of digests, to which facts can be added in any order.
type sum [2]uint64

// count adds a required fact, or subtracts a stored one.
func (s *sum) count(f sum, wanted bool) {
	var carry uint64
	if wanted {
		s[0], carry = bits.Add64(s[0], f[0], 0)
		s[1], _ = bits.Add64(s[1], f[1], carry)
		return
	}
	s[0], carry = bits.Sub64(s[0], f[0], 0)
	s[1], _ = bits.Sub64(s[1], f[1], carry)
}

// buckets is the number of sums that share the facts of a run.
const buckets = 4096

// sums compare a set of required facts with a set of stored ones in bounded memory. The zero value is ready to use.
type sums struct {
	buckets [buckets]sum
	Facts   int64 // counted
}

// count adds a required fact to a bucket, or subtracts a stored one.
func (s *sums) count(bucket uint16, value sum, wanted bool) {
	s.buckets[bucket].count(value, wanted)
	s.Facts++
}

// unequal lists the buckets in which required and stored facts differ.
func (s *sums) unequal() (list []uint16) {
	for i := range s.buckets {
		if s.buckets[i] != (sum{}) {
			list = append(list, uint16(i))
		}
	}
	return list
}

const sumSize = 16

// bytes returns the stored form of sums, nil if there are none.
func (s *sums) bytes() []byte {
	if s.Facts == 0 {
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
	*s = sums{Facts: facts}
	if len(text) == 0 && facts == 0 {
		return nil
	}
	if len(text) != buckets*sumSize || facts <= 0 {
		return errors.New("its sums do not have the size that this build uses")
	}
	for i := range s.buckets {
		s.buckets[i] = sum{binary.BigEndian.Uint64(text[i*sumSize+8:]), binary.BigEndian.Uint64(text[i*sumSize:])}
	}
	return nil
}

// site is where something is stored for an entity. Required and stored facts are matched by site.
type site struct {
	area   int    // index of the verifier's area
	place  string // the key of the row or fact, in the notation of the area
	entity entity.Key
}

// fact is one thing that is stored, or required, at a site.
type fact struct {
	site
	digest [16]byte
	mark   mark
}

// mark says whether a stored copy is marked.
type mark uint8

const (
	markNone  mark = iota
	markYoung      // a change that has marked the copy may be under way; in any case, readers follow it
	markOld        // no such change can commit any more
)

// collector collects the sites of some buckets at which required and stored facts differ. It drops a site as
// soon as its required and stored facts match.
type collector struct {
	chosen [buckets]bool
	open   map[site]*collected
}

// collected is what was seen of a site.
type collected struct {
	sum    sum
	wanted bool
	mark   mark
}

func (c *collector) count(n *noted) {
	s := c.open[n.fact.site]
	if s == nil {
		s = &collected{}
		c.open[n.fact.site] = s
	}
	s.sum.count(n.value, n.wanted)
	s.wanted, s.mark = s.wanted || n.wanted, max(s.mark, n.fact.mark)
	if s.sum == (sum{}) {
		delete(c.open, n.fact.site)
	}
}

// candidates returns the sites that still differ, sorted. It leaves out copies with a young mark, which are right.
func (c *collector) candidates() []*candidate {
	list := make([]*candidate, 0, len(c.open))
	for at, s := range c.open {
		if s.mark != markYoung {
			list = append(list, &candidate{site: at, wanted: s.wanted, old: s.mark == markOld})
		}
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
	sorted  entity.Properties
	same    *entity.Property // first property of the properties that were digested last; length is their number, last their digest
	length  int
	last    [16]byte
}

// text appends a text with its length, so that different lists of texts give different bytes.
func (h *hasher) text(s string) {
	h.scratch = binary.AppendUvarint(h.scratch, uint64(len(s)))
	h.scratch = append(h.scratch, s...)
}

func (h *hasher) sum() (digest [16]byte) {
	full := sha256.Sum256(h.scratch)
	return [16]byte(full[:16])
}

// place returns a fact's bucket, which depends on its site only, and its value.
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

// row digests a row's properties, in whatever order they come, and the mark of the entity's version.
func (h *hasher) row(p entity.Properties, mark string) [16]byte {
	inner := h.properties(p)
	h.scratch = append(h.scratch[:0], inner[:]...)
	h.text(mark)
	return h.sum()
}

// stored digests a row that belongs to an entity: its properties, and the incarnation and version of the entity from which it was made. A row that is
// not of the right form, or marked, never equals what the entity requires.
func (h *hasher) stored(row *tablerow.Row, outside bool) [16]byte {
	switch own := &row.Own; {
	case own.Outside.Is != outside:
		return [16]byte{}
	case !outside:
		return h.row(row.Properties, nearMark(own.Layout, row.WriteID, own.Incarnation))
	case own.Outside.Mark != "":
		return h.row(row.Properties, "marked "+own.Outside.Mark)
	default:
		return h.row(row.Properties, versionMark(own.Incarnation, own.Outside.Version))
	}
}

// properties digests properties. It returns the last digest if p is the same slice, as for most copies of an
// entity.
func (h *hasher) properties(p entity.Properties) [16]byte {
	if len(p) > 0 && h.same == &p[0] && h.length == len(p) {
		return h.last
	}
	byName := func(a, b entity.Property) int { return cmp.Compare(a.Name, b.Name) }
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
