package odata

import "slices"

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

	// Keys is set for a PartitionScan whose filter only lists RowKeys, joined by or: exactly these rows match, so point
	// queries for them cost less. It has each key once, in the order of the filter.
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
// Only conditions joined by and fix or bound a key. Under or, PartitionKey is fixed if both sides fix the
// same value. RowKey is never fixed under or, so the query is a partition scan, in the words of the guide.
// Under not, no key is fixed or bounded.
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
	case mentions(e, partitionKey):
		return "PartitionKey is not fixed for the whole of the filter: under or, under not, or by another comparison than eq with a string"
	}
	return "nothing fixes PartitionKey"
}

func mentions(e Expr, property string) bool { return slices.Contains(Properties(e), property) }

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
