package entity

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// Set holds a table's entities in the order of their keys: by PartitionKey, then by RowKey, both by UTF-16 code units.
//
// It is a list of sorted leaves. A leaf that grows too long is cut in two, one that is empty goes, so finding a row is
// two binary searches and inserting one moves half a leaf, wherever it falls: 100,000 rows are some 1,000 leaves.
type Set struct {
	leaves [][]*Stored
	count  int
}

// maxLeaf is the length at which a leaf is cut.
const maxLeaf = 256

// position is a place in a Set; it is good until the next put or remove.
type position struct{ leaf, row int }

// Key is the key of an entity.
type Key struct{ Partition, Row string }

// Compare compares keys as the service orders them: by UTF-16 code units.
func Compare(pk1, rk1, pk2, rk2 string) int {
	return cmp.Or(compoundkey.Compare(pk1, pk2), compoundkey.Compare(rk1, rk2))
}

func (e *Stored) compare(pk, rk string) int { return Compare(e.Partition, e.Row, pk, rk) }

// Seek returns the place of the first row that is not before the key, and whether it has just that key.
func (s *Set) Seek(pk, rk string) (position, bool) {
	// The leaf to look in is the first whose last row is not before the key.
	leaf, _ := slices.BinarySearchFunc(s.leaves, struct{}{}, func(rows []*Stored, _ struct{}) int {
		return rows[len(rows)-1].compare(pk, rk)
	})
	if leaf == len(s.leaves) {
		return position{leaf, 0}, false
	}
	row, found := slices.BinarySearchFunc(s.leaves[leaf], struct{}{}, func(e *Stored, _ struct{}) int { return e.compare(pk, rk) })
	return position{leaf, row}, found
}

// At returns the row at a place, nil behind the last.
func (s *Set) At(p position) *Stored {
	if p.leaf >= len(s.leaves) {
		return nil
	}
	return s.leaves[p.leaf][p.row]
}

// Next returns the place after p.
func (s *Set) Next(p position) position {
	if p.row++; p.row == len(s.leaves[p.leaf]) {
		return position{p.leaf + 1, 0}
	}
	return p
}

// Get returns the row with the key, or nil.
func (s *Set) Get(pk, rk string) *Stored {
	if p, found := s.Seek(pk, rk); found {
		return s.At(p)
	}
	return nil
}

// Put stores a row in place of the one with its key, if there is one.
func (s *Set) Put(e *Stored) {
	p, found := s.Seek(e.Partition, e.Row)
	if found {
		s.leaves[p.leaf][p.row] = e
		return
	}
	s.count++
	if len(s.leaves) == 0 {
		s.leaves = [][]*Stored{{e}}
		return
	}
	if p.leaf == len(s.leaves) {
		p.leaf--
		p.row = len(s.leaves[p.leaf])
	}
	rows := slices.Insert(s.leaves[p.leaf], p.row, e)
	s.leaves[p.leaf] = rows
	if len(rows) > maxLeaf {
		// Rising keys are the common case; a cut near the end leaves full leaves behind them.
		cut := len(rows) / 2
		if p.leaf == len(s.leaves)-1 && p.row == len(rows)-1 {
			cut = len(rows) - 1
		}
		s.leaves[p.leaf] = slices.Clip(rows[:cut])
		s.leaves = slices.Insert(s.leaves, p.leaf+1, slices.Clone(rows[cut:]))
	}
}

// Remove drops the row with the key.
func (s *Set) Remove(pk, rk string) {
	p, found := s.Seek(pk, rk)
	if !found {
		return
	}
	s.count--
	s.leaves[p.leaf] = slices.Delete(s.leaves[p.leaf], p.row, p.row+1)
	if len(s.leaves[p.leaf]) == 0 {
		s.leaves = slices.Delete(s.leaves, p.leaf, p.leaf+1)
	}
}

// All are the rows in their order.
func (s *Set) All() iter.Seq[*Stored] {
	return func(yield func(*Stored) bool) {
		for _, leaf := range s.leaves {
			for _, e := range leaf {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Clone copies the set. Rows do not change once they are stored, so both share them.
func (s *Set) Clone() Set {
	c := Set{count: s.count, leaves: slices.Clone(s.leaves)}
	for i, leaf := range c.leaves {
		c.leaves[i] = slices.Clone(leaf)
	}
	return c
}

// Fingerprint writes the rows.
func (s *Set) Fingerprint(k *snapshot.Writer) {
	k.Number(uint64(s.count))
	for e := range s.All() {
		e.fingerprint(k)
	}
}
