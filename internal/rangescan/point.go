package rangescan

import (
	"cmp"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Key identifies a row.
type Key struct{ Partition, Row string }

// Side is the side of a key on which a Point lies.
type Side uint8

// The sides.
const (
	Before Side = iota // before the row
	After              // after the row
	Behind             // after every row of the partition
)

// Point is a position between rows. The zero value is before every row.
type Point struct {
	Partition string `json:"p,omitempty"`
	Row       string `json:"r,omitempty"`
	Side      Side   `json:"s,omitempty"`
}

// Compare orders points by their position.
func (p Point) Compare(q Point) int {
	if c := compoundkey.Compare(p.Partition, q.Partition); c != 0 {
		return c
	}
	if p.Side == Behind || q.Side == Behind {
		return cmp.Compare(p.Side/Behind, q.Side/Behind)
	}
	return cmp.Or(compoundkey.Compare(p.Row, q.Row), cmp.Compare(p.Side, q.Side))
}

// covers reports whether a row lies before the point.
func (p Point) covers(k Key) bool { return p.Compare(Point{Partition: k.Partition, Row: k.Row}) > 0 }

// opens reports whether the point is before every row of its partition.
func (p Point) opens() bool { return p.Side == Before && p.Row == "" }

// Border reports whether the point is between two partitions.
func (p Point) Border() bool { return p.opens() || p.Side == Behind }

// Range has the rows between two points; without To, those up to the end of the table. The zero value is the whole table.
type Range struct {
	From Point  `json:"f"`
	To   *Point `json:"t,omitempty"`
}

// Partition returns the range of one partition.
func Partition(key string) Range {
	return Range{From: Point{Partition: key}, To: &Point{Partition: key, Side: Behind}}
}

// Covers reports whether a row lies in the range.
func (r Range) Covers(k Key) bool { return !r.From.covers(k) && (r.To == nil || r.To.covers(k)) }

// ends reports whether the range has no rows after a point.
func (r Range) ends(at Point) bool { return r.To != nil && r.To.Compare(at) <= 0 }

// single reports whether the range lies within one partition.
func (r Range) single() bool {
	return r.To != nil && r.To.Partition == r.From.Partition && r.From.Side != Behind
}
