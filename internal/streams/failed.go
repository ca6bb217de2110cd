package streams

import "iter"

// Failed returns a sequence that yields one error.
func Failed[V any](err error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		yield(none, err)
	}
}

// Concurrency returns n, or byDefault if n is not positive.
func Concurrency(n, byDefault int) int {
	if n <= 0 {
		return byDefault
	}
	return n
}
