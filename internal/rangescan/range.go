package rangescan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
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

// Within reports whether the range lies within another.
func (r Range) Within(all Range) bool {
	return r.From.Compare(all.From) >= 0 && (all.To == nil || r.To != nil && r.To.Compare(*all.To) <= 0)
}

// ends reports whether the range has no rows after a point.
func (r Range) ends(at Point) bool { return r.To != nil && r.To.Compare(at) <= 0 }

// single reports whether the range lies within one partition.
func (r Range) single() bool {
	return r.To != nil && r.To.Partition == r.From.Partition && r.From.Side != Behind
}

// MaxComparisons is the largest number of comparisons in the filter of a leg.
const MaxComparisons = 3

// Leg is a range, or the first part of a range, that a filter without "or" can select: rows of one partition,
// or whole partitions.
type Leg struct{ Range }

// leg returns the first leg of a range.
func (r Range) leg() Leg {
	if r.single() {
		return Leg{r}
	}
	if !r.From.opens() && r.From.Side != Behind {
		return Leg{Range{r.From, &Point{Partition: r.From.Partition, Side: Behind}}}
	}
	if r.To != nil && r.To.Side != Behind && !r.To.opens() {
		return Leg{Range{r.From, &Point{Partition: r.To.Partition}}}
	}
	return Leg{r}
}

// Filter returns the leg as a filter in the service's language, "" for the whole table. It returns an error if a key cannot be written in a
// filter.
func (l Leg) Filter() (string, error) {
	var terms []odata.Expr
	add := func(property string, op odata.Op, key string) {
		terms = append(terms, odata.Comparison{Property: property, Op: op, Value: edm.String(key)})
	}
	switch from := l.From; {
	case l.single():
		add("PartitionKey", odata.Eq, from.Partition)
		if !from.opens() {
			add("RowKey", [...]odata.Op{Before: odata.Ge, After: odata.Gt}[from.Side], from.Row)
		}
		if l.To.Side != Behind {
			add("RowKey", [...]odata.Op{Before: odata.Lt, After: odata.Le}[l.To.Side], l.To.Row)
		}
		return text(terms)
	case from.Side == Behind:
		add("PartitionKey", odata.Gt, from.Partition)
	case from.Partition != "":
		add("PartitionKey", odata.Ge, from.Partition)
	}
	if l.To != nil {
		op := odata.Lt
		if l.To.Side == Behind {
			op = odata.Le
		}
		add("PartitionKey", op, l.To.Partition)
	}
	return text(terms)
}

func text(terms []odata.Expr) (string, error) {
	printed, err := odata.Append(nil, odata.AllOf(terms...))
	return string(printed), err
}

// Union is a set of rows: ranges in the order of their keys, with gaps between them.
type Union []Range

// With returns the union of the set and a range, which must not overlap the set. Ranges that touch become one. The set itself does not
// change.
func (u Union) With(r Range) Union {
	if r.ends(r.From) {
		return u
	}
	at, _ := slices.BinarySearchFunc(u, r.From, func(s Range, p Point) int { return s.From.Compare(p) })
	all := slices.Insert(slices.Clone(u), at, r)
	if at+1 < len(all) && all[at].To != nil && all[at].To.Compare(all[at+1].From) == 0 {
		all[at].To = all[at+1].To
		all = slices.Delete(all, at+1, at+2)
	}
	if at > 0 && all[at-1].To != nil && all[at-1].To.Compare(all[at].From) == 0 {
		all[at-1].To = all[at].To
		all = slices.Delete(all, at, at+1)
	}
	return all
}

// Covers reports whether the set contains the rows directly after a point.
func (u Union) Covers(p Point) bool {
	return slices.ContainsFunc(u, func(r Range) bool { return r.From.Compare(p) <= 0 && !r.ends(p) })
}

// Valid reports whether the ranges are in the order of their keys and do not overlap.
func (u Union) Valid() bool { return follow(u) }

// State describes what remains of a scan of a list of initial ranges: the rest of the ranges that have begun,
// and the index of the first range that has not.
type State struct {
	Ranges []Range `json:"r,omitempty"`
	Next   int     `json:"n,omitempty"`
}

// token is the text form of a State.
type token struct {
	Version int    `json:"v"`
	Query   string `json:"q"` // fingerprint of the query and its ranges
	State
	Left int `json:"l,omitempty"` // number of rows that the query's limit still allows
}

const tokenVersion = 1

// Token returns the text of a state, with the fingerprint of the query and the number of rows that its limit still allows.
func (s State) Token(query string, left int) string {
	return continuation.Encode(token{tokenVersion, query, s, left})
}

// ParseState is the inverse of Token. query is the fingerprint of the scan, and initial has its initial ranges: a text from outside must
// not lead out of them. For an empty text it returns the beginning of the scan, with limit rows left.
func ParseState(text, query string, initial []Range, limit int) (s State, left int, err error) {
	if text == "" {
		return State{}, limit, nil
	}
	var t token
	switch {
	case continuation.Decode(text, &t) != nil:
		return s, 0, fmt.Errorf("ParallelOptions.Resume, of %d characters, is not Report.Resume of an earlier parallel read", len(text))
	case t.Version != tokenVersion:
		return s, 0, fmt.Errorf("ParallelOptions.Resume has version %d, and this build reads version %d; begin again without it", t.Version, tokenVersion)
	case t.Query != query:
		return s, 0, errors.New("ParallelOptions.Resume is the token of another query or of other partitions; repeat those of that read")
	}
	if t.Left < 0 || t.Left > limit || (limit > 0) != (t.Left > 0) || !t.Valid(initial) {
		return s, 0, errors.New("ParallelOptions.Resume is damaged: its ranges do not follow each other, or lie outside of those of the query; begin again without it")
	}
	return t.State, t.Left, nil
}

// Valid reports whether a scan of these initial ranges can have the state: what remains lies within the initial ranges that have begun.
func (s State) Valid(initial []Range) bool {
	if s.Next < 0 || s.Next > len(initial) || !follow(s.Ranges) {
		return false
	}
	for _, r := range s.Ranges {
		if !slices.ContainsFunc(initial[:s.Next], r.Within) {
			return false
		}
	}
	return true
}

// follow reports whether ranges are in the order of their keys and do not overlap.
func follow(all []Range) bool {
	for i, r := range all {
		if r.From.Side > Behind || r.To != nil && (r.To.Side > Behind || r.ends(r.From)) ||
			i > 0 && (all[i-1].To == nil || all[i-1].To.Compare(r.From) > 0) {
			return false
		}
	}
	return true
}

// Has reports whether the ranges that have begun may still have rows of a partition.
func (s State) Has(partition string) bool {
	all := Partition(partition)
	return slices.ContainsFunc(s.Ranges, func(r Range) bool { return r.From.Compare(*all.To) < 0 && !r.ends(all.From) })
}
