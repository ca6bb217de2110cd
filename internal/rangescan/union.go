package rangescan

import "slices"

// Union is a set of rows: ranges in the order of their keys, with gaps between them.
type Union []Range

// With returns the set extended by another range, which must not overlap the set. Ranges that touch become one. It does not change the
// receiver.
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
