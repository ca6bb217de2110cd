package authorization

import (
	"net/url"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Range is the range of keys that a signature for a table covers. It is one of whole keys: a bound on rows counts only in the
// partition that the bound names. The zero Range covers all keys.
type Range struct{ from, to bound }

// bound is one end of a range.
type bound struct {
	pk, rk string
	set    bool
	hasRow bool
}

// RangeOf reads the range in a signature's parameters.
func RangeOf(q url.Values) Range {
	return Range{from: bound{q.Get("spk"), q.Get("srk"), q.Has("spk"), q.Has("srk")}, to: bound{q.Get("epk"), q.Get("erk"), q.Has("epk"), q.Has("erk")}}
}

// Bounded tells whether there is a key that the range does not cover.
func (r *Range) Bounded() bool { return r.from.set || r.to.set }

// rowless finds a bound on rows that names no partition, which no range may have.
func (r *Range) rowless() bool {
	return r.from.hasRow && !r.from.set || r.to.hasRow && !r.to.set
}

// Covers tells whether a key is within the range.
func (r *Range) Covers(pk, rk string) bool {
	return !(r.from.set && r.from.compare(pk, rk) > 0) && !(r.to.set && r.to.compare(pk, rk) < 0)
}

// compare compares the bound with a key; they are equal where the bound names the key's partition alone.
func (b *bound) compare(pk, rk string) int {
	order := compoundkey.Compare(b.pk, pk)
	if order == 0 && b.hasRow {
		order = compoundkey.Compare(b.rk, rk)
	}
	return order
}

// Filter is the range as a part of a $filter; a range that is not Bounded has none.
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

// filter is the bound as a part of a $filter. within and at compare without and with the bound itself.
func (b *bound) filter(within, at string) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	if !b.hasRow {
		return "(PartitionKey " + at + " " + quoted(b.pk) + ")"
	}
	return "(PartitionKey " + within + " " + quoted(b.pk) + " or (PartitionKey eq " + quoted(b.pk) + " and RowKey " + at + " " + quoted(b.rk) + "))"
}
