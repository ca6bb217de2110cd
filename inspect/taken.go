package inspect

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// wanted is a key that an entity's copy wants or, without a pattern, that a row occupies.
type wanted struct {
	pattern string
	table   string
	key     tables.Key
	by      tables.Key
}

// taken finds keys that several rows want: a first scan keeps a hash of 64 bits for each key, and a second
// scan compares the keys whose hashes were equal.
type taken struct {
	seed    maphash.Seed
	most    int
	seen    map[uint64]struct{}
	skipped int64
	equal   map[uint64]bool // hashes that occurred twice

	by    map[spot]*claimed
	other map[uint64]bool // hashes of further keys, which by cannot hold because of its limit
}

// spot is a key in a table.
type spot struct {
	table string
	key   tables.Key
}

type claimed struct {
	table    string
	patterns []string
	wanted   int64
	by       []Key
	last     tables.Key
}

func newTaken(most int) *taken {
	return &taken{seed: maphash.MakeSeed(), most: most, seen: map[uint64]struct{}{}, equal: map[uint64]bool{}, by: map[spot]*claimed{}, other: map[uint64]bool{}}
}

// spotOf returns the table and key at which a copy is wanted. Table names ignore case.
func spotOf(w wanted) spot { return spot{strings.ToLower(w.table), w.key} }

// mostEqual limits the hashes that occurred twice, and so the memory of the second scan.
const mostEqual = 100_000

// add records a key of the first scan.
func (t *taken) add(w wanted) {
	h := maphash.Comparable(t.seed, spotOf(w))
	if _, twice := t.seen[h]; twice {
		if len(t.equal) < mostEqual || t.equal[h] {
			t.equal[h] = true
		} else {
			t.skipped++
		}
		return
	}
	if len(t.seen) >= t.most {
		t.skipped++
		return
	}
	t.seen[h] = struct{}{}
}

// doubtful reports whether a second scan is needed. It frees the hashes of the first.
func (t *taken) doubtful() bool {
	t.seen = nil
	return len(t.equal) > 0
}

// confirm records a key of the second scan.
func (t *taken) confirm(w wanted) {
	at := spotOf(w)
	if !t.equal[maphash.Comparable(t.seed, at)] {
		return
	}
	c := t.by[at]
	if c == nil {
		c = &claimed{table: w.table}
		t.by[at] = c
	}
	if c.wanted > 0 && c.last == w.by && c.patterns[len(c.patterns)-1] == w.pattern {
		return // the same entity wants the key twice
	}
	if !slices.Contains(c.patterns, w.pattern) {
		c.patterns = append(c.patterns, w.pattern)
	}
	c.last = w.by
	if c.wanted++; len(c.by) < mostExamples {
		c.by = append(c.by, keyOf(w.by))
	}
}

// report returns the keys that several rows want, and how many more there are.
func (t *taken) report() (all []TakenKey, other int64) {
	all = []TakenKey{}
	for at, c := range t.by {
		if c.wanted > 1 {
			slices.Sort(c.patterns)
			all = append(all, TakenKey{c.patterns, c.table, keyOf(at.key), c.wanted, c.by})
		}
	}
	slices.SortFunc(all, func(a, b TakenKey) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key.Partition, b.Key.Partition), cmp.Compare(a.Key.Row, b.Key.Row))
	})
	if n := len(all) - mostProblems; n > 0 {
		all, other = all[:mostProblems], int64(n)
	}
	return all, other
}
