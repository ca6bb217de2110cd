package entity

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// Set has a table's entities sorted by PartitionKey, then by RowKey, both by UTF-16 code units.
//
// It is a list of sorted leaves. A leaf that becomes too long is split, and an empty leaf is removed. So
// finding a row takes two binary searches, and inserting one moves at most one leaf: 100,000 rows are about
// 1,000 leaves.
type Set struct {
	leaves [][]*Stored
	count  int
}

// maxLeaf is the length at which a leaf is split.
const maxLeaf = 256

// Position is the position of a row in a Set; it is valid until the next Put or Remove.
type Position struct{ leaf, row int }

// Key is the key of an entity.
type Key struct{ Partition, Row string }

// Compare compares keys in the service's order, by UTF-16 code units.
func Compare(pk1, rk1, pk2, rk2 string) int {
	return cmp.Or(compoundkey.Compare(pk1, pk2), compoundkey.Compare(rk1, rk2))
}

func (e *Stored) compare(pk, rk string) int { return Compare(e.Partition, e.Row, pk, rk) }

// Seek returns the position of the first row that is not before the key, and whether it has exactly that key.
func (s *Set) Seek(pk, rk string) (Position, bool) {
	// The row is in the first leaf whose last row is not before the key.
	leaf, _ := slices.BinarySearchFunc(s.leaves, struct{}{}, func(rows []*Stored, _ struct{}) int {
		return rows[len(rows)-1].compare(pk, rk)
	})
	if leaf == len(s.leaves) {
		return Position{leaf, 0}, false
	}
	row, found := slices.BinarySearchFunc(s.leaves[leaf], struct{}{}, func(e *Stored, _ struct{}) int { return e.compare(pk, rk) })
	return Position{leaf, row}, found
}

// At returns the row at a position, or nil after the last row.
func (s *Set) At(p Position) *Stored {
	if p.leaf >= len(s.leaves) {
		return nil
	}
	return s.leaves[p.leaf][p.row]
}

// Next returns the position after p.
func (s *Set) Next(p Position) Position {
	if p.row++; p.row == len(s.leaves[p.leaf]) {
		return Position{p.leaf + 1, 0}
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

// Put stores a row and replaces the one with its key, if there is one.
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
		// Rows often arrive in the order of their keys; a split near the end of a leaf keeps the lower leaf
		// full.
		cut := len(rows) / 2
		if p.leaf == len(s.leaves)-1 && p.row == len(rows)-1 {
			cut = len(rows) - 1
		}
		s.leaves[p.leaf] = slices.Clip(rows[:cut])
		s.leaves = slices.Insert(s.leaves, p.leaf+1, slices.Clone(rows[cut:]))
	}
}

// Remove deletes the row with the key.
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

// All yields the rows in their order.
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

// Clone copies the set. Both share the rows, which are never changed.
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
