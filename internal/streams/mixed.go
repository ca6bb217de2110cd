package streams

import "iter"

// Mixed is a page with problems between its values: before value At[i] there is problem Problems[i].
type Mixed[V any] struct {
	Values   []V
	Problems []error
	At       []int // ascending, at most len(Values)
}

// Each yields values and problems in their order; it returns false if yield returned false.
func (m Mixed[V]) Each(yield func(V, error) bool) bool {
	var none V
	problem := 0
	for i := 0; ; i++ {
		for ; problem < len(m.Problems) && m.At[problem] == i; problem++ {
			if !yield(none, m.Problems[problem]) {
				return false
			}
		}
		if i == len(m.Values) {
			return true
		}
		if !yield(m.Values[i], nil) {
			return false
		}
	}
}

// Result is a value, or the problem that takes the place of a value.
type Result[V any] struct {
	Value V
	Err   error
}

// Results lists values and problems in their order.
func (m Mixed[V]) Results() []Result[V] {
	all := make([]Result[V], 0, len(m.Values)+len(m.Problems))
	m.Each(func(v V, err error) bool {
		all = append(all, Result[V]{v, err})
		return true
	})
	return all
}

// Unwrapped yields each result as a value or an error: at most limit values, or all if limit is 0. The error
// of the sequence itself is its last element.
func Unwrapped[V any](all iter.Seq2[Result[V], error], limit int) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		left := limit
		for r, err := range all {
			if err == nil {
				err = r.Err
			}
			if !yield(r.Value, err) {
				return
			}
			if err != nil {
				continue
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// ByValue returns an order of results that puts problems first, so that they do not wait for values. For a
// nil order it returns nil.
func ByValue[V any](order func(a, b V) int) func(a, b Result[V]) int {
	if order == nil {
		return nil
	}
	return func(a, b Result[V]) int {
		switch {
		case a.Err != nil:
			return -1
		case b.Err != nil:
			return 1
		}
		return order(a.Value, b.Value)
	}
}
