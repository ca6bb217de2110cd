package rangescan

import "slices"

// Union is a set of rows: ranges one behind the other, with rows between them that are not in the set.
type Union []Range

// With returns the set with another range, which has no row of the set. Ranges that touch become one. The receiver stays as it is.
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

// Covers reports whether the set goes on behind a point.
func (u Union) Covers(p Point) bool {
	return slices.ContainsFunc(u, func(r Range) bool { return r.From.Compare(p) <= 0 && !r.ends(p) })
}

// Valid reports whether the ranges lie one behind the other.
func (u Union) Valid() bool { return follow(u) }
