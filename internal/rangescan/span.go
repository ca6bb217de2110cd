package rangescan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
)

// pagesBeforeSplit is the number of pages after which a range may be divided.
const pagesBeforeSplit = 2

// unknownPages is the estimated number of pages in the partitions after one that has filled a page.
const unknownPages = 1 << 20

// leastPages is the minimum number of pages that must remain in a range for a division.
const leastPages = 2

// span is a range that a reader reads, with samples of its density.
type span struct {
	Range         // From is the reader's position
	parent  *span // the range that this one was divided from
	samples [2]Key
	sampled bool // samples are set: they are the ends of one page
	pages   int  // pages read, including those of parent before the division
	own     int  // pages read by this reader
	misses  int  // number of consecutive bad guesses: divisions whose upper part had few rows
	halved  int  // number of divisions since the last page
	size    int  // rows of the largest page
	stay    int  // number of consecutive pages within the partition of From
	frozen  bool // the reader is using rows, so its position is not up to date
	blank   bool // the last page had no rows, although more pages follow: the reader's position is unknown
	over    bool // read to its end, or given up
}

// division is a point at which a span can be divided.
type division struct {
	at   Point
	left float64 // estimated number of pages left
}

// rulers holds what a scan has learned about its keys and the sizes of partitions.
type rulers struct {
	partitions, rows ruler
	left, stayed     int // number of partitions that readers have finished, and number of pages in these partitions
}

// longStay is the number of pages from which a partition counts as large, whatever the size of the others.
const longStay = 16

// large reports whether a span is in a partition that is larger than usual.
func (r *rulers) large(s *span) bool {
	return s.stay >= longStay || 5*s.stay*r.left > 6*r.stayed || r.left == 0
}

// moved records that a reader has reached another partition after this many pages in the previous one.
func (r *rulers) moved(pages int) {
	r.left++
	r.stayed += pages
}

func (r *rulers) learn(k Key) {
	r.partitions.learn(k.Partition)
	r.rows.learn(k.Row)
}

// divide returns where to divide a span; ok is false if it should not be divided now. ahead is the number of
// pages that the span keeps; 0 means half of the remaining pages.
func (r *rulers) divide(s *span, ahead float64) (d division, ok bool) {
	if s.frozen || s.blank || s.over || !s.sampled || s.pages < pagesBeforeSplit || s.own == 0 && s.parent != nil && s.parent.misses > 0 {
		return d, false
	}
	from, a, b := s.From, s.samples[0], s.samples[1]
	if s.single() {
		if from.opens() && s.own == 0 && a.Partition != b.Partition || !r.large(s) {
			return d, false
		}
		d, key := s.middle(&r.rows, from.Row, s.rowEnd(), a.Row, b.Row, ahead)
		d.at = Point{Partition: from.Partition, Row: key}
		return d, key != "" && d.at.Compare(from) > 0 && d.at.Compare(*s.To) < 0
	}
	behind := Point{Partition: from.Partition, Side: Behind}
	if a.Partition == b.Partition { // a page within one partition
		if ahead > 0 && s.own > 0 && from.Side != Behind && r.large(s) { // with Options.Ordered, the pages of the partition itself are delivered next
			return division{behind, unknownPages}, true
		}
		a.Partition = from.Partition
		b.Partition = a.Partition
	}
	var end *string
	if s.To != nil {
		end = &s.To.Partition
	}
	d, key := s.middle(&r.partitions, from.Partition, end, a.Partition, b.Partition, ahead)
	if a.Partition == b.Partition {
		if d.left = math.Ldexp(unknownPages, -s.halved); s.misses > 0 {
			key = ""
		}
		if key == "" && end != nil && s.own > 0 && from.Side != Behind && r.large(s) { // hardly any partition follows in the range
			d, key := s.middle(&r.rows, from.Row, nil, s.samples[0].Row, b.Row, 0)
			d.at = Point{Partition: from.Partition, Row: key}
			return d, key != "" && d.at.Compare(from) > 0
		}
		if key == "" && (s.own == 0 || from.Side == Behind || !r.large(s)) {
			return d, false
		}
	}
	if d.at = (Point{Partition: key}); key == "" || d.at.Compare(behind) <= 0 || s.ends(d.at) {
		d.at = behind
	}
	return d, d.at.Compare(from) > 0 && !s.ends(d.at)
}

// rowEnd returns the row key at which a span within one partition ends, nil if it ends with the partition.
func (s *span) rowEnd() *string {
	if s.To.Side == Behind {
		return nil
	}
	return &s.To.Row
}

// middle returns a key between low and high, and the estimated number of pages between them; a nil high means no bound. a and b are the
// keys at the ends of one page.
func (s *span) middle(r *ruler, low string, high *string, a, b string, ahead float64) (d division, key string) {
	keys := []string{low, a, b}
	if high != nil {
		keys = append(keys, *high)
	}
	scale := r.scaleOf(high == nil, keys...)
	from, to := scale.number(low), scale.total
	if high != nil {
		to = scale.number(*high)
	}
	extent := new(big.Int).Sub(scale.number(b), scale.number(a))
	if extent.Sign() <= 0 {
		extent.SetInt64(1)
	}
	rest := new(big.Int).Sub(to, from)
	d.left = ratio(rest, extent)
	if d.left < leastPages {
		return d, ""
	}
	step := new(big.Int)
	switch {
	case s.misses > 0:
		step.Sqrt(step.Mul(extent, rest))
	case ahead > 0 && d.left > ahead+1:
		step, _ = new(big.Float).Mul(new(big.Float).SetInt(extent), big.NewFloat(ahead)).Int(nil)
	default:
		step.Rsh(step.Add(rest, extent), 1) // add half of a page, since a page is in flight
	}
	if key = scale.key(step.Add(step, from)); compoundkey.Compare(key, low) <= 0 || high != nil && compoundkey.Compare(key, *high) >= 0 {
		return d, ""
	}
	return d, key
}

// ratio returns a / b.
func ratio(a, b *big.Int) float64 {
	q, _ := new(big.Float).Quo(new(big.Float).SetInt(a), new(big.Float).SetInt(b)).Float64()
	return q
}

// split lowers the end of a span to a point and returns the rest.
func (s *span) split(at Point) *span {
	upper := &span{Range: Range{at, s.To}, parent: s, samples: s.samples, sampled: s.sampled, pages: s.pages, misses: s.misses, stay: s.stay, size: s.size}
	s.To = &at
	s.halved++
	upper.halved = s.halved
	return upper
}

// read records a page. first and last are the keys of its first and last row, if it had rows; more is true if its leg has further pages,
// and legEnd is the end of the leg. worth is false if the division that made the span was not worth its request.
func (s *span) read(first, last Key, rows int, more bool, legEnd *Point) (worth bool) {
	from := s.From
	s.frozen, s.halved = false, 0
	s.pages++
	s.own++
	s.blank = rows == 0 && more
	if rows > 0 {
		if s.stay++; last.Partition != from.Partition {
			s.stay = 0
		}
		s.From = Point{Partition: last.Partition, Row: last.Row, Side: After}
		s.samples, s.sampled = [2]Key{first, last}, true
		if !from.opens() && from.Side == After {
			s.samples[0] = Key{from.Partition, from.Row} // count from the previous position, so that the gap between the pages is included
		}
	}
	if !more {
		s.over = legEnd == nil || s.ends(*legEnd)
		if !s.over {
			s.From = *legEnd
		}
	}
	s.size = max(s.size, rows)
	return s.judge(rows)
}

// judge records in the parent whether the division was worth its request. It returns false if it was not: the upper part had one page of
// few rows.
func (s *span) judge(rows int) bool {
	switch p := s.parent; {
	case p == nil:
	case s.over && s.own == 1 && 4*rows < s.size:
		p.misses++
		return false
	case s.own == 2:
		p.misses, s.misses = 0, 0
		s.parent = nil
	}
	return true
}

// Key identifies a row.
type Key struct{ Partition, Row string }

// Side is the side of a key on which a Point lies.
type Side uint8

// The sides.
const (
	Before Side = iota // before the row
	After              // after the row
	Behind             // after every row of the partition
)

// Point is a position between rows. The zero value is before every row.
type Point struct {
	Partition string `json:"p,omitempty"`
	Row       string `json:"r,omitempty"`
	Side      Side   `json:"s,omitempty"`
}

// Compare orders points by their position.
func (p Point) Compare(q Point) int {
	if c := compoundkey.Compare(p.Partition, q.Partition); c != 0 {
		return c
	}
	if p.Side == Behind || q.Side == Behind {
		return cmp.Compare(p.Side/Behind, q.Side/Behind)
	}
	return cmp.Or(compoundkey.Compare(p.Row, q.Row), cmp.Compare(p.Side, q.Side))
}

// covers reports whether a row lies before the point.
func (p Point) covers(k Key) bool { return p.Compare(Point{Partition: k.Partition, Row: k.Row}) > 0 }

// opens reports whether the point is before every row of its partition.
func (p Point) opens() bool { return p.Side == Before && p.Row == "" }

// Border reports whether the point is between two partitions.
func (p Point) Border() bool { return p.opens() || p.Side == Behind }

// Range has the rows between two points; without To, those up to the end of the table. The zero value is the whole table.
type Range struct {
	From Point  `json:"f"`
	To   *Point `json:"t,omitempty"`
}

// Partition returns the range of one partition.
func Partition(key string) Range {
	return Range{From: Point{Partition: key}, To: &Point{Partition: key, Side: Behind}}
}

// Covers reports whether a row lies in the range.
func (r Range) Covers(k Key) bool { return !r.From.covers(k) && (r.To == nil || r.To.covers(k)) }

// ends reports whether the range has no rows after a point.
func (r Range) ends(at Point) bool { return r.To != nil && r.To.Compare(at) <= 0 }

// single reports whether the range lies within one partition.
func (r Range) single() bool {
	return r.To != nil && r.To.Partition == r.From.Partition && r.From.Side != Behind
}

// token is the text form of a State.
type token struct {
	Version int    `json:"v"`
	Query   string `json:"q"` // fingerprint of the query
	State
	Left int `json:"l,omitempty"` // number of rows that the query's limit still allows
}

const tokenVersion = 1

// Token returns the text of a state, with the fingerprint of the query and the number of rows that its limit still allows.
func (s State) Token(query string, left int) string {
	return continuation.Encode(token{tokenVersion, query, s, left})
}

// ParseState is the inverse of Token for a scan of this many initial ranges; "" is the beginning, with limit rows left.
func ParseState(text, query string, ranges, limit int) (s State, left int, err error) {
	if text == "" {
		return State{}, limit, nil
	}
	var t token
	switch {
	case continuation.Decode(text, &t) != nil:
		return s, 0, fmt.Errorf("ParallelOptions.Resume, of %d characters, is not Report.Resume of an earlier parallel read", len(text))
	case t.Version != tokenVersion:
		return s, 0, fmt.Errorf("ParallelOptions.Resume has version %d, and this build reads version %d; begin again without it", t.Version, tokenVersion)
	case t.Query != query:
		return s, 0, errors.New("ParallelOptions.Resume is the token of another query or of other partitions; repeat those of that read")
	}
	if t.Left < 0 || (limit > 0) != (t.Left > 0) || !t.Valid(ranges) {
		return s, 0, errors.New("ParallelOptions.Resume is damaged: its ranges do not follow each other; begin again without it")
	}
	return t.State, t.Left, nil
}

// Valid reports whether a scan of this many initial ranges can have the state.
func (s State) Valid(ranges int) bool {
	return s.Next >= 0 && s.Next <= ranges && follow(s.Ranges)
}

// follow reports whether ranges are in the order of their keys and do not overlap.
func follow(all []Range) bool {
	for i, r := range all {
		if r.From.Side > Behind || r.To != nil && (r.To.Side > Behind || r.ends(r.From)) ||
			i > 0 && (all[i-1].To == nil || all[i-1].To.Compare(r.From) > 0) {
			return false
		}
	}
	return true
}

// Has reports whether the ranges that have begun may still have rows of a partition.
func (s State) Has(partition string) bool {
	all := Partition(partition)
	return slices.ContainsFunc(s.Ranges, func(r Range) bool { return r.From.Compare(*all.To) < 0 && !r.ends(all.From) })
}
