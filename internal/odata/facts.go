package odata

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

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
		l, r := factsOf(e.Left), factsOf(e.Right)
		partition, clash1 := l.partition.and(r.partition)
		row, clash2 := l.row.and(r.row)
		empty := l.empty || r.empty || clash1 || clash2
		return facts{partition: partition, row: row, exact: l.exact && r.exact && !empty, empty: empty}
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

// and implements the operator "and": it returns the facts that k and other impose together. Two different fixed keys
// clash: then no entity matches, and the result may keep either of them.
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
		return !k.from.includes(k.key, 1) || !k.to.includes(k.key, -1)
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

// includes reports whether a bound includes key; sign is 1 for a lower bound and -1 for an upper one.
func (b Bound) includes(key string, sign int) bool {
	order := compoundkey.Compare(key, b.Key) * sign
	return !b.Set || order > 0 || order == 0 && b.Inclusive
}

// keySet is a filter that only lists keys. If rows is nil, it includes all rows.
type keySet struct {
	hasPartition bool
	partition    string
	rows         []string
}

// keySetOf converts e to a keySet; ok is false if e does more than list keys. "PartitionKey eq p and (RowKey eq a or
// RowKey eq b)" is a keySet, and so is "(PartitionKey eq p and RowKey eq a) or (PartitionKey eq p and RowKey eq b)".
func keySetOf(e Expr) (set keySet, ok bool) {
	switch e := e.(type) {
	case Comparison:
		key, isString := e.Value.Str()
		switch {
		case e.Op != Eq || !isString:
			return keySet{}, false
		case e.Property == partitionKey:
			return keySet{hasPartition: true, partition: key}, true
		case e.Property == rowKey:
			return keySet{rows: []string{key}}, true
		}
	case And:
		l, ok1 := keySetOf(e.Left)
		r, ok2 := keySetOf(e.Right)
		if ok1 && ok2 {
			return l.intersect(r)
		}
	case Or:
		l, ok1 := keySetOf(e.Left)
		r, ok2 := keySetOf(e.Right)
		if ok1 && ok2 {
			return l.union(r)
		}
	}
	return keySet{}, false
}

func (s keySet) intersect(t keySet) (keySet, bool) {
	switch {
	case !s.hasPartition:
		s.hasPartition, s.partition = t.hasPartition, t.partition
	case t.hasPartition && t.partition != s.partition:
		return keySet{}, false
	}
	switch {
	case s.rows == nil:
		s.rows = t.rows
	case t.rows != nil:
		s.rows = slices.DeleteFunc(s.rows, func(key string) bool { return !slices.Contains(t.rows, key) })
	}
	return s, true
}

func (s keySet) union(t keySet) (keySet, bool) {
	if s.hasPartition != t.hasPartition || s.partition != t.partition || s.rows == nil || t.rows == nil {
		return keySet{}, false
	}
	for _, key := range t.rows {
		if !slices.Contains(s.rows, key) {
			s.rows = append(s.rows, key)
		}
	}
	return s, true
}

// Class is the cost of a query for the service, as the Azure Table Design Guide classifies queries.
type Class uint8

// The query classes, most expensive first, so that the zero Class is not a cheap one.
const (
	// TableScan reads every partition, or the partitions between bounds on PartitionKey.
	TableScan Class = iota
	// PartitionScan reads all of one partition.
	PartitionScan
	// RangeQuery reads a range of RowKeys in one partition.
	RangeQuery
	// PointQuery reads one entity.
	PointQuery
)

// String returns "point query", "range query", "partition scan" or "table scan".
func (c Class) String() string {
	switch c {
	case PointQuery:
		return "point query"
	case RangeQuery:
		return "range query"
	case PartitionScan:
		return "partition scan"
	}
	return "table scan"
}

// Bound is one end of a range of keys. The zero Bound means no bound; with Set, the empty string is a key like any other.
type Bound struct {
	Key       string
	Inclusive bool
	Set       bool
}

// Plan says how the service finds the entities that match a filter: every such entity has the keys of the Plan and is within
// its bounds. Class determines which fields are set.
type Plan struct {
	Class Class

	PartitionKey   string // set unless the Class is TableScan
	RowKey         string // for a PointQuery
	RowFrom, RowTo Bound  // for a RangeQuery: one or both are set

	// PartitionFrom and PartitionTo are the bounds of a TableScan on PartitionKey, if it has any.
	PartitionFrom, PartitionTo Bound

	// Keys is set for a PartitionScan whose filter only lists RowKeys, joined by "or": exactly these rows match, so
	// point queries for them cost less. It has each key once, in the order of the filter.
	Keys []string

	// Exact means that the filter has no condition besides PartitionKey, RowKey and bounds, so all entities
	// within the plan's range match. It is false if Keys is set.
	Exact bool
	// Empty means that the filter contradicts itself, so no entity matches.
	Empty bool
	// Reason explains the Class in a few words. It contains no key.
	Reason string
}

// Bounded reports whether a TableScan has a bound on PartitionKey and so does not read the whole table.
func (p Plan) Bounded() bool { return p.PartitionFrom.Set || p.PartitionTo.Set }

// Names of the key properties.
const (
	partitionKey = "PartitionKey"
	rowKey       = "RowKey"
)

// Classify returns the plan of the query with filter e; nil means no filter.
//
// Conditions joined by "and" fix or bound a key. Under "or", PartitionKey is fixed if both sides fix the same value;
// RowKey is neither fixed nor bounded, so the query is a partition scan, as the guide calls it. Under "not", no key is
// fixed or bounded.
func Classify(e Expr) Plan {
	f := factsOf(e)
	p := Plan{Exact: f.exact, Empty: f.empty}
	if !f.partition.fixed {
		p.Class = TableScan
		p.PartitionFrom, p.PartitionTo = f.partition.from, f.partition.to
		p.Exact = p.Exact && f.row == keyFacts{}
		p.Reason = tableScanReason(e, p)
		return p
	}
	p.PartitionKey = f.partition.key
	switch {
	case f.row.fixed:
		p.Class, p.RowKey = PointQuery, f.row.key
		p.Reason = "PartitionKey and RowKey are fixed"
	case f.row.from.Set || f.row.to.Set:
		p.Class, p.RowFrom, p.RowTo = RangeQuery, f.row.from, f.row.to
		p.Reason = "PartitionKey is fixed and RowKey is bounded"
	default:
		p.Class = PartitionScan
		p.Reason = "PartitionKey is fixed, nothing fixes or bounds RowKey"
		if keys, ok := keySetOf(e); ok && keys.hasPartition && len(keys.rows) > 0 {
			p.Keys = keys.rows
			p.Reason = "RowKeys joined by or make the service read the whole partition"
		}
	}
	return p
}

func tableScanReason(e Expr, p Plan) string {
	switch {
	case e == nil:
		return "there is no filter"
	case p.Bounded():
		return "PartitionKey is bounded but not fixed"
	case slices.Contains(Properties(e), partitionKey):
		return "PartitionKey is not fixed for the whole of the filter: under or, under not, or by another comparison than eq with a string"
	}
	return "nothing fixes PartitionKey"
}

// Properties returns the properties that e compares, each as often as e contains it.
func Properties(e Expr) []string {
	switch e := e.(type) {
	case Comparison:
		return []string{e.Property}
	case And:
		return append(Properties(e.Left), Properties(e.Right)...)
	case Or:
		return append(Properties(e.Left), Properties(e.Right)...)
	case Not:
		return Properties(e.X)
	}
	return nil
}
