package backup

import (
	"bytes"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rangescan"
)

// maxHeld limits the bytes of the packs that wait for others.
const maxHeld = 8 << 20

// bound is a range of keys beyond which no chunk extends. base is the base backup's chunk of exactly this range, if it has one: then a new chunk is
// stored only if the rows differ.
type bound struct {
	at   rangescan.Range
	base *entry
}

// pack holds the rows of a page, compressed: readers are far apart, so most packs wait for what lies before and after.
type pack struct {
	lines []byte
	rows  int
	bytes int // of the lines before compression
	times span
	left  []rangescan.Key // keys of rows that were left out
}

func (c *codecs) pack(p *page) *pack {
	all := make([]byte, 0, p.bytes)
	for _, l := range p.lines {
		all = append(all, l.text...)
	}
	k := &pack{lines: bytes.Clone(c.compress(all)), rows: len(p.lines), bytes: p.bytes, times: p.times}
	for _, d := range p.left {
		k.left = append(k.left, rangescan.Key(d.Key))
	}
	return k
}

// held returns about how much memory the pack takes.
func (k *pack) held() int {
	n := 256 + len(k.lines)
	for _, key := range k.left {
		n += 64 + len(key.Partition) + len(key.Row)
	}
	return n
}

// piece holds the rows of a range.
type piece struct {
	at    rangescan.Range
	bound int
	base  *entry // only if the piece covers the whole bound
	packs []*pack
	rows  int
	bytes int // of the lines before compression
	held  int
}

func (p *piece) left() []rangescan.Key {
	var keys []rangescan.Key
	for _, k := range p.packs {
		keys = append(keys, k.left...)
	}
	return keys
}

// assembly joins packs, which come in any order, into pieces of about the size of a chunk.
type assembly struct {
	target int
	bounds []bound
	flush  func(*piece)

	open []*piece // in the order of their keys
	held int
}

func (a *assembly) add(at rangescan.Range, k *pack) {
	in, found := slices.BinarySearchFunc(a.bounds, at.From, func(b bound, from rangescan.Point) int { return b.at.From.Compare(from) })
	if !found {
		in--
	}
	i, _ := slices.BinarySearchFunc(a.open, at.From, func(p *piece, from rangescan.Point) int { return p.at.From.Compare(from) })
	now := &piece{at: at, bound: in, packs: []*pack{k}, rows: k.rows, bytes: k.bytes, held: k.held()}
	a.open = slices.Insert(a.open, i, now)
	a.held += now.held
	a.join(i)
	if i > 0 && a.join(i-1) {
		i--
	}
	now = a.open[i]
	b := &a.bounds[in]
	if b.base != nil && now.bytes > int(b.base.Bytes)+a.target {
		b.base = nil // the rows are already larger than the base's chunk, so they differ
	}
	switch {
	case b.base == nil && now.bytes >= a.target:
		a.release(i)
	case b.base != nil && now.at.From == b.at.From && same(now.at.To, b.at.To):
		now.base = b.base
		a.release(i)
	case a.held > maxHeld:
		largest := 0
		for i := range a.open {
			if a.open[i].held > a.open[largest].held {
				largest = i
			}
		}
		a.bounds[a.open[largest].bound].base = nil // a piece is stored before the rest was read, so the bound is no longer compared with the base's chunk
		a.release(largest)
	}
}

// join merges a piece with the next one if they touch in one bound.
func (a *assembly) join(i int) bool {
	if i+1 >= len(a.open) {
		return false
	}
	l, r := a.open[i], a.open[i+1]
	if l.bound != r.bound || l.at.To == nil || l.at.To.Compare(r.at.From) != 0 {
		return false
	}
	l.at.To = r.at.To
	l.packs, l.rows, l.bytes, l.held = append(l.packs, r.packs...), l.rows+r.rows, l.bytes+r.bytes, l.held+r.held
	a.open = slices.Delete(a.open, i+1, i+2)
	return true
}

func (a *assembly) release(i int) {
	p := a.open[i]
	a.open = slices.Delete(a.open, i, i+1)
	a.held -= p.held
	a.flush(p)
}

func (a *assembly) close() {
	for len(a.open) > 0 {
		a.release(0)
	}
}

func same(a, b *rangescan.Point) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Compare(*b) == 0
}

func appendRange(all []bound, r rangescan.Range, base *entry) []bound {
	if r.To != nil && r.From.Compare(*r.To) >= 0 {
		return all
	}
	return append(all, bound{r, base})
}

// without returns the parts of bounds that no entry of the table covers. A partly covered bound loses its base.
func without(all []bound, entries []entry, table int) []bound {
	var done []entry
	for _, e := range entries {
		if e.Table == table {
			done = append(done, e)
		}
	}
	slices.SortFunc(done, func(a, b entry) int { return a.At.From.Compare(b.At.From) })
	var left []bound
	for _, b := range all {
		rest, whole := b.at, true
		for _, e := range done {
			if e.At.To != nil && e.At.To.Compare(rest.From) <= 0 {
				continue
			}
			if rest.To != nil && e.At.From.Compare(*rest.To) >= 0 {
				break
			}
			whole = false
			if e.At.From.Compare(rest.From) > 0 {
				left = append(left, bound{rangescan.Range{From: rest.From, To: &e.At.From}, nil})
			}
			if e.At.To == nil {
				rest.To = &rest.From
				break
			}
			if rest.From = *e.At.To; rest.To != nil && rest.From.Compare(*rest.To) >= 0 {
				break
			}
		}
		base := b.base
		if !whole {
			base = nil
		}
		left = appendRange(left, rest, base)
	}
	return left
}
