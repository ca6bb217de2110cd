package odata

import "github.com/tablepatterns/tablepatterns/compoundkey"

// keyFacts is what a filter surely demands of one key; the zero keyFacts is nothing.
type keyFacts struct {
	fixed    bool
	key      string
	from, to Bound
}

// facts is what a filter surely demands of an entity.
type facts struct {
	partition, row keyFacts
	exact          bool // and it demands no more
	empty          bool // and no entity can meet it
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
	return facts{} // Not: what X demands says nothing of what it leaves
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

// and demands both. Two different keys clash; the first one stays, which is sound since nothing has both.
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

// tighter returns the bound that lets less through: the higher one for sign 1, the lower one for sign -1.
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

// impossible finds bounds that cross, and a fixed key outside of them.
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

// below tells whether key passes b as a lower bound.
func (b Bound) below(key string) bool {
	order := compoundkey.Compare(b.Key, key)
	return !b.Set || order < 0 || order == 0 && b.Inclusive
}

// above tells whether key passes b as an upper bound.
func (b Bound) above(key string) bool {
	order := compoundkey.Compare(b.Key, key)
	return !b.Set || order > 0 || order == 0 && b.Inclusive
}
