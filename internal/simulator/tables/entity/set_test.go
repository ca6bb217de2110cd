package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRowSetAgainstASortedSlice makes random changes to a set of rows and to a plain model of it.
func TestRowSetAgainstASortedSlice(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var set rowSet
		var model []*entity
		for range 3000 {
			pk, rk := fmt.Sprint("p", rng.IntN(3)), fmt.Sprint("r", rng.IntN(1500))
			i, found := slices.BinarySearchFunc(model, struct{}{}, func(e *entity, _ struct{}) int { return e.compare(pk, rk) })
			if rng.IntN(3) == 0 {
				set.remove(pk, rk)
				if found {
					model = slices.Delete(model, i, i+1)
				}
				continue
			}
			e := &entity{pk: pk, rk: rk}
			set.put(e)
			if found {
				model[i] = e
			} else {
				model = slices.Insert(model, i, e)
			}
		}
		checkRowSet(t, &set, model)
		for len(model) > 0 {
			e := model[rng.IntN(len(model))]
			set.remove(e.pk, e.rk)
			model = slices.DeleteFunc(model, func(other *entity) bool { return other == e })
			if len(model)%500 == 0 {
				checkRowSet(t, &set, model)
			}
		}
	}
}

func checkRowSet(t *testing.T, set *rowSet, model []*entity) {
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
		p, found := set.seek(e.pk, e.rk)
		if !found || set.at(p) != e || set.get(e.pk, e.rk) != e {
			t.Fatalf("row %d was not found", i)
		}
		var next *entity
		if i+1 < len(model) {
			next = model[i+1]
		}
		if set.at(set.next(p)) != next {
			t.Fatalf("row %d has another neighbour", i)
		}
		if p, found := set.seek(e.pk, e.rk+"\x00"); found || set.at(p) != next {
			t.Fatalf("what follows row %d was not found", i)
		}
	}
}

func TestRisingKeysFillTheirLeaves(t *testing.T) {
	var set rowSet
	for i := range 100_000 {
		set.put(&entity{pk: "p", rk: fmt.Sprintf("%08d", i)})
	}
	if n := len(set.leaves); n > 100_000/maxLeaf+1 {
		t.Errorf("%d leaves", n)
	}
}
