package rangescan

import (
	"context"
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
	beyondF [2]bool    // letters above f were seen, in lower and upper case
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

// scaleOf returns the scale for keys; with open, the range has no upper bound, so the scale does not assume
// that its keys share the prefix of the given ones.
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

// reserve waits until there is memory for a page. It returns false if the reader must stop.
func (s *Scan[P]) reserve(ctx context.Context, n *node[P]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		due := s.options.Ordered && s.nodes[0] == n
		switch {
		case n.over || s.stopped || ctx.Err() != nil || s.failed != nil && !(s.options.Ordered && n.From.Compare(s.failed.From) < 0):
			return false
		case s.reserved < s.options.buffer() || due && len(n.ready) < 2:
			s.reserved++
			return true
		}
		s.changed.Wait()
	}
}

// begin returns the leg and the token of a reader's next page. It continues the last page's leg if that page had a token; but if the page
// had no row and the range has been divided below the end of the leg, it begins a new leg.
func (s *Scan[P]) begin(n *node[P], leg Leg, token string) (Leg, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && !(n.blank && n.To != nil && (leg.To == nil || leg.To.Compare(*n.To) > 0)) {
		return leg, token
	}
	return n.leg(), ""
}

// learnEvery is the number of rows of which the scan learns the key of one, to save time.
const learnEvery = 64

// receipt records what a reader needs to know about a page while it uses the page's rows.
type receipt[P any] struct {
	scan        *Scan[P]
	node        *node[P]
	within      Range // the node's range; the scan does not divide it while the reader uses the page
	rows        int
	first, last Key
	sample      []Key
	past        bool // a row at or beyond the end of the range was returned
}

// accept reports whether the reader must use a row.
func (r *receipt[P]) accept(k Key) bool {
	if r.rows == 0 && !r.past {
		r.scan.mu.Lock()
		r.node.frozen, r.within = true, r.node.Range
		r.scan.mu.Unlock()
		r.first = k
	}
	if r.past || r.within.To != nil && !r.within.To.covers(k) {
		r.past = true
		return false
	}
	if r.rows%learnEvery == 0 {
		r.sample = append(r.sample, k)
	}
	r.rows++
	r.last = k
	return true
}

// land records a page, calls Work with it, and reports whether the range has further pages.
func (r *receipt[P]) land(ctx context.Context, leg Leg, page P, next string, err error) bool {
	s, n := r.scan, r.node
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if err != nil {
		return s.fail(n, err)
	}
	for _, k := range r.sample {
		s.rulers.learn(k)
	}
	if r.rows > 0 {
		s.rulers.learn(r.last)
	}
	more, end := next != "", leg.To
	if r.past {
		more, end = false, nil
	}
	s.pages++
	if r.rows > 0 && n.own > 0 && r.last.Partition != n.From.Partition {
		s.rulers.moved(n.stay + 1)
	}
	before := n.From
	if !n.read(r.first, r.last, r.rows, more, end) {
		s.wasted++
	}
	at := landed[P]{page: page, pos: n.From}
	if at.end = &at.pos; n.over {
		if at.end = n.To; n.To != nil {
			at.pos = *n.To
		}
	}
	if err := s.work(ctx, n, Range{before, at.end}, page); err != nil {
		return s.fail(n, err)
	}
	n.ready = append(n.ready, at)
	return !n.over
}

// work calls Work for a page of a node. The scan is unlocked during the call.
func (s *Scan[P]) work(ctx context.Context, n *node[P], at Range, page P) error {
	if s.Work == nil {
		return nil
	}
	n.busy = true
	s.changed.Broadcast()
	s.mu.Unlock()
	err := s.Work(ctx, at, page)
	s.mu.Lock()
	n.busy = false
	return err
}

// fail records an error of a node, which ends the scan. It returns false.
func (s *Scan[P]) fail(n *node[P], err error) bool {
	n.err, n.over = err, true
	s.reserved--
	if s.failed == nil || n.From.Compare(s.failed.From) < 0 {
		s.failed = n
	}
	return false
}
