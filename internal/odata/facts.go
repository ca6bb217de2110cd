package odata

import "github.com/tablepatterns/tablepatterns/compoundkey"

// keyFacts holds the conditions on one key that every match of a filter meets; the zero keyFacts has none.
type keyFacts struct {
	fixed    bool
	key      string
	from, to Bound
}

// facts holds the conditions that every match of a filter meets.
type facts struct {
	partition, row keyFacts
	exact          bool // every entity that meets the conditions matches the filter
	empty          bool // no entity can match the filter
}

func factsOf(e Expr) facts {
	switch e := e.(type) {
	case nil:
		return facts{exact: true}
	case Constant:
		return facts{exact: bool(e), empty: !bool(e)}
	case Comparison:
		return comparisonFacts(e)
	case And:
		return bothFacts(factsOf(e.Left), factsOf(e.Right))
	case Or:
		l, r := factsOf(e.Left), factsOf(e.Right)
		either := facts{empty: l.empty && r.empty}
		if l.partition.fixed && r.partition.fixed && l.partition.key == r.partition.key {
			either.partition = keyFacts{fixed: true, key: l.partition.key}
		}
		return either
	}
	return facts{} // for Not: the facts of X say nothing about the entities that do not match X
}

func comparisonFacts(c Comparison) facts {
	key, isString := c.Value.Str()
	if !isString || c.Op == Ne || c.Property != partitionKey && c.Property != rowKey {
		return facts{}
	}
	var k keyFacts
	switch c.Op {
	case Eq:
		k = keyFacts{fixed: true, key: key}
	case Gt, Ge:
		k = keyFacts{from: Bound{Key: key, Inclusive: c.Op == Ge, Set: true}}
	case Lt, Le:
		k = keyFacts{to: Bound{Key: key, Inclusive: c.Op == Le, Set: true}}
	default:
		return facts{}
	}
	f := facts{exact: !k.impossible(), empty: k.impossible()}
	if c.Property == partitionKey {
		f.partition = k
	} else {
		f.row = k
	}
	return f
}

func bothFacts(l, r facts) facts {
	partition, clash1 := l.partition.and(r.partition)
	row, clash2 := l.row.and(r.row)
	empty := l.empty || r.empty || clash1 || clash2
	return facts{partition: partition, row: row, exact: l.exact && r.exact && !empty, empty: empty}
}

// and returns the facts of a conjunction. Two different fixed keys clash: then no entity matches, and the
// result may keep either of them.
func (k keyFacts) and(other keyFacts) (both keyFacts, clash bool) {
	if !k.fixed {
		k.fixed, k.key = other.fixed, other.key
	} else if other.fixed && other.key != k.key {
		clash = true
	}
	k.from = tighter(k.from, other.from, 1)
	k.to = tighter(k.to, other.to, -1)
	return k, clash || k.impossible()
}

// tighter returns the bound that excludes more keys: the higher one for sign 1 (lower bounds), the lower one for sign -1
// (upper bounds).
func tighter(a, b Bound, sign int) Bound {
	switch {
	case !a.Set:
		return b
	case !b.Set:
		return a
	}
	order := compoundkey.Compare(a.Key, b.Key) * sign
	if order > 0 || order == 0 && !a.Inclusive {
		return a
	}
	return b
}

// impossible reports whether no key meets k: the bounds exclude each other, or exclude the fixed key.
func (k keyFacts) impossible() bool {
	if k.fixed {
		return !k.from.below(k.key) || !k.to.above(k.key)
	}
	if k.to.Set && k.to.Key == "" && !k.to.Inclusive {
		return true // nothing sorts before the empty key
	}
	if !k.from.Set || !k.to.Set {
		return false
	}
	order := compoundkey.Compare(k.from.Key, k.to.Key)
	return order > 0 || order == 0 && !(k.from.Inclusive && k.to.Inclusive)
}

// below reports whether the lower bound b includes key.
func (b Bound) below(key string) bool {
	order := compoundkey.Compare(b.Key, key)
	return !b.Set || order < 0 || order == 0 && b.Inclusive
}

// above reports whether the upper bound b includes key.
func (b Bound) above(key string) bool {
	order := compoundkey.Compare(b.Key, key)
	return !b.Set || order > 0 || order == 0 && b.Inclusive
}
