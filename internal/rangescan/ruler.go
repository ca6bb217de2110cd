package rangescan

import (
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
