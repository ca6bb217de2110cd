package rangescan

import (
	"math"
	"math/big"
	"slices"
	"unicode/utf16"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// maxOffsets is the number of characters of a key that a ruler uses after the common prefix of the compared keys.
const maxOffsets = 48

// maxCharacters limits the characters that a ruler stores for an offset.
const maxCharacters = 256

// ruler maps keys to numbers, whose digits are the characters that were seen at each offset.
type ruler struct {
	seen    [][]uint16 // for each offset, sorted: the characters that were seen there and all others of their classes
	beyondF [2]bool    // whether letters above f were seen: [0] in lower case, [1] in upper case
}

// learn adds the characters of a key.
func (r *ruler) learn(key string) {
	units := utf16.Encode([]rune(key))
	for at, c := range units {
		if at == len(r.seen) {
			r.seen = append(r.seen, nil)
		}
		if _, known := slices.BinarySearch(r.seen[at], c); known || len(r.seen[at]) >= maxCharacters {
			continue
		}
		for _, class := range r.classOf(c) {
			r.add(at, class)
		}
	}
}

// classOf returns the characters that are likely at an offset where c was seen.
func (r *ruler) classOf(c uint16) []uint16 {
	between := func(from, to uint16) (all []uint16) {
		for ; from <= to; from++ {
			all = append(all, from)
		}
		return all
	}
	letter := func(upper int, a uint16) []uint16 {
		if c > a+5 {
			r.beyondF[upper] = true
		}
		if r.beyondF[upper] {
			return between(a, a+25)
		}
		return between(a, a+5) // probably hexadecimal
	}
	switch {
	case c >= '0' && c <= '9':
		return between('0', '9')
	case c >= 'a' && c <= 'z':
		return letter(0, 'a')
	case c >= 'A' && c <= 'Z':
		return letter(1, 'A')
	}
	if c >= 0x100 { // a script with many characters: take a sample of the block
		block := []uint16{c}
		for i := range uint16(64) {
			block = append(block, c&^0x3fff+i<<8)
		}
		return block
	}
	return []uint16{c}
}

func (r *ruler) add(at int, c uint16) {
	if i, known := slices.BinarySearch(r.seen[at], c); !known {
		r.seen[at] = slices.Insert(r.seen[at], i, c)
	}
}

// scale is the part of a ruler at the offsets where the given keys differ.
type scale struct {
	prefix []uint16
	digits [][]uint16
	total  *big.Int // one more than the largest number
}

// scaleOf returns the scale for keys. With open the range has no upper bound, and its keys need not share the prefix of the given ones.
func (r *ruler) scaleOf(open bool, keys ...string) scale {
	common := utf16.Encode([]rune(keys[0]))
	for _, key := range keys[1:] {
		units := utf16.Encode([]rune(key))
		n := 0
		for n < len(common) && n < len(units) && common[n] == units[n] {
			n++
		}
		common = common[:n]
	}
	if open {
		common = nil
	}
	s := scale{prefix: common, total: big.NewInt(1)}
	for at := len(common); at < len(r.seen) && at < len(common)+maxOffsets; at++ {
		s.digits = append(s.digits, r.seen[at])
		s.total.Mul(s.total, big.NewInt(int64(len(r.seen[at])+1)))
	}
	return s
}

// number returns the number of a key on the scale. A lower key never has a higher number; two keys may have the same one.
func (s *scale) number(key string) *big.Int {
	units := utf16.Encode([]rune(key))
	n := new(big.Int)
	c := slices.Compare(units[:min(len(units), len(s.prefix))], s.prefix)
	if c < 0 {
		return n
	}
	if c > 0 {
		return n.Set(s.total)
	}
	units = units[len(s.prefix):]
	full := false // set if the character at an earlier offset was never seen; then the key gets the largest number with the digits so far
	for i, set := range s.digits {
		digit := 0
		switch {
		case full:
			digit = len(set)
		case i < len(units):
			at, known := slices.BinarySearch(set, units[i])
			if digit = at; known {
				digit = at + 1
			} else {
				full = true // the key gets the largest number below the next digit
			}
		}
		n.Mul(n, big.NewInt(int64(len(set)+1)))
		n.Add(n, big.NewInt(int64(digit)))
	}
	return n
}

// key returns a key with this number, or "" if it is not a legal key.
func (s *scale) key(n *big.Int) string {
	digits := make([]int, len(s.digits))
	rest, digit := new(big.Int).Set(n), new(big.Int)
	for i := len(s.digits) - 1; i >= 0; i-- {
		rest.DivMod(rest, big.NewInt(int64(len(s.digits[i])+1)), digit)
		digits[i] = int(digit.Int64())
	}
	units := slices.Clone(s.prefix)
	for i, d := range digits {
		if d == 0 {
			break
		}
		units = append(units, s.digits[i][d-1])
	}
	key := string(utf16.Decode(units))
	if compoundkey.CheckKey(key) != nil {
		return ""
	}
	return key
}

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

// middle returns in d.left the estimated number of pages between low and high (nil for no bound), and a key at which to
// divide, "" for none. a and b are the ends of one page.
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

// judge records in the parent whether the division was worth its request. It was not, and judge returns false, if the upper part had a
// single page with few rows.
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
