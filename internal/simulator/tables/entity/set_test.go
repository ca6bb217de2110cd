package entity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestRowSetAgainstASortedSlice makes random changes to a set of rows and to a plain model of it.
func TestRowSetAgainstASortedSlice(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var set Set
		var model []*Stored
		for range 3000 {
			pk, rk := fmt.Sprint("p", rng.IntN(3)), fmt.Sprint("r", rng.IntN(1500))
			i, found := slices.BinarySearchFunc(model, struct{}{}, func(e *Stored, _ struct{}) int { return e.compare(pk, rk) })
			if rng.IntN(3) == 0 {
				set.Remove(pk, rk)
				if found {
					model = slices.Delete(model, i, i+1)
				}
				continue
			}
			e := &Stored{Partition: pk, Row: rk}
			set.Put(e)
			if found {
				model[i] = e
			} else {
				model = slices.Insert(model, i, e)
			}
		}
		checkRowSet(t, &set, model)
		for len(model) > 0 {
			e := model[rng.IntN(len(model))]
			set.Remove(e.Partition, e.Row)
			model = slices.DeleteFunc(model, func(other *Stored) bool { return other == e })
			if len(model)%500 == 0 {
				checkRowSet(t, &set, model)
			}
		}
	}
}

func checkRowSet(t *testing.T, set *Set, model []*Stored) {
	t.Helper()
	if set.count != len(model) || !slices.Equal(slices.Concat(set.leaves...), model) {
		t.Fatalf("the set has %d rows, the model %d, or others", set.count, len(model))
	}
	for _, leaf := range set.leaves {
		if len(leaf) == 0 || len(leaf) > maxLeaf {
			t.Fatalf("a leaf of %d rows", len(leaf))
		}
	}
	for i, e := range model {
		p, found := set.Seek(e.Partition, e.Row)
		if !found || set.At(p) != e || set.Get(e.Partition, e.Row) != e {
			t.Fatalf("row %d was not found", i)
		}
		var next *Stored
		if i+1 < len(model) {
			next = model[i+1]
		}
		assert.Equal(assert.Fatal(t), set.At(set.Next(p)), next, "row %d has another neighbour", i)
		if p, found := set.Seek(e.Partition, e.Row+"\x00"); found || set.At(p) != next {
			t.Fatalf("what follows row %d was not found", i)
		}
	}
}

func TestRisingKeysFillTheirLeaves(t *testing.T) {
	var set Set
	for i := range 100_000 {
		set.Put(&Stored{Partition: "p", Row: fmt.Sprintf("%08d", i)})
	}
	if n := len(set.leaves); n > 100_000/maxLeaf+1 {
		t.Errorf("%d leaves", n)
	}
}
