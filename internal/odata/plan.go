package odata

import "slices"

// Class is what a query costs the service, as the Azure table design guide divides queries.
type Class uint8

// The classes, dearest first, so that a forgotten Class is not a cheap one.
const (
	// TableScan reads every partition, or with bounds on PartitionKey those between.
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

// Bound is one end of a range of keys. The zero Bound is no bound; the empty string is a key like any other.
type Bound struct {
	Key       string
	Inclusive bool
	Set       bool
}

// Plan says how the service finds what a filter asks for. It is sound: an entity that passes the filter has the
// keys and lies within the bounds that the Plan gives. Which fields hold something follows from Class.
type Plan struct {
	Class Class

	PartitionKey   string // all but TableScan
	RowKey         string // PointQuery
	RowFrom, RowTo Bound  // RangeQuery: one or both

	// PartitionFrom and PartitionTo hold the bounds of a TableScan on PartitionKey, where it has any.
	PartitionFrom, PartitionTo Bound

	// Keys of a PartitionScan are not nil when the filter is nothing but RowKeys joined by or: these rows and no
	// others pass, so that point queries for them answer it for less. Each key is there once, in filter order.
	Keys []string

	// Exact means that the filter says nothing beyond PartitionKey, RowKey and bounds: all entities there pass it.
	// It is false where Keys are the answer.
	Exact bool
	// Empty means that the filter contradicts itself, so no entity passes it, whatever the table holds.
	Empty bool
	// Reason says in a few words why the Class is what it is. It holds no key.
	Reason string
}

// Bounded tells a TableScan that has a bound on PartitionKey from one that reads the table from end to end.
func (p Plan) Bounded() bool { return p.PartitionFrom.Set || p.PartitionTo.Set }

// Names of the key properties.
const (
	partitionKey = "PartitionKey"
	rowKey       = "RowKey"
)

// Classify finds the class of the query with filter e; nil is the query without filter.
//
// Only conditions that and joins fix or bound a key: under or a PartitionKey is fixed where both sides fix the
// same one, a RowKey never is (the guide calls that a partition scan), and nothing is under not.
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

// Properties lists the properties that e compares, each as often as it stands there.
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
