package authorization

import (
	"net/url"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Range is the range of keys that a signature for a table covers, from one whole key to another: the row key of a bound
// applies only to the partition of that bound. The zero Range covers all keys.
type Range struct{ from, to bound }

// bound is one end of a range.
type bound struct {
	pk, rk string
	set    bool
	hasRow bool
}

// RangeOf returns the range in a signature's parameters.
func RangeOf(q url.Values) Range {
	return Range{from: bound{q.Get("spk"), q.Get("srk"), q.Has("spk"), q.Has("srk")}, to: bound{q.Get("epk"), q.Get("erk"), q.Has("epk"), q.Has("erk")}}
}

// Bounded reports whether the range excludes any key.
func (r *Range) Bounded() bool { return r.from.set || r.to.set }

// rowless reports whether a bound has a row key but no partition key, which is not allowed.
func (r *Range) rowless() bool {
	return r.from.hasRow && !r.from.set || r.to.hasRow && !r.to.set
}

// Covers reports whether the range contains a key.
func (r *Range) Covers(pk, rk string) bool {
	return !(r.from.set && r.from.compare(pk, rk) > 0) && !(r.to.set && r.to.compare(pk, rk) < 0)
}

// compare compares the bound with a key. A bound without row key is equal to all keys of its partition.
func (b *bound) compare(pk, rk string) int {
	order := compoundkey.Compare(b.pk, pk)
	if order == 0 && b.hasRow {
		order = compoundkey.Compare(b.rk, rk)
	}
	return order
}

// Filter returns the range as a $filter, or "" if it is not Bounded.
func (r *Range) Filter() string {
	var ends []string
	if r.from.set {
		ends = append(ends, r.from.filter("gt", "ge"))
	}
	if r.to.set {
		ends = append(ends, r.to.filter("lt", "le"))
	}
	return strings.Join(ends, " and ")
}

// filter returns the bound as a part of a $filter. within is the operator that excludes the bound itself, at
// is the operator that includes it.
func (b *bound) filter(within, at string) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	if !b.hasRow {
		return "(PartitionKey " + at + " " + quoted(b.pk) + ")"
	}
	return "(PartitionKey " + within + " " + quoted(b.pk) + " or (PartitionKey eq " + quoted(b.pk) + " and RowKey " + at + " " + quoted(b.rk) + "))"
}
