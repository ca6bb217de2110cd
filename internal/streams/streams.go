// Package streams reads several sequences of pages at once and yields their values as one sequence: one after the
// other, or merged by an order. Window reads many single values, such as rows by their keys.
package streams

import (
	"context"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Fetch reads one page: for an empty token the first page, otherwise the page at the token. next is "" after
// the last page.
type Fetch[V any] func(ctx context.Context, token string) (items []V, next string, err error)

// All yields the values of all streams, at most limit of them unless limit is 0. Without order it yields one
// stream after the other. With order it merges the streams: it always yields the least of their next values.
// Each stream must already be in this order. concurrency limits how many pages are fetched at the same time.
// An error is yielded once, as the last element.
func All[V any](ctx context.Context, fetches []Fetch[V], concurrency int, order func(a, b V) int, limit int) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		streams := make([]*stream[V], len(fetches))
		slots := make(chan struct{}, concurrency)
		for i, fetch := range fetches {
			streams[i] = &stream[V]{fetch: fetch, pages: make(chan page[V], 1), slots: slots}
		}
		if order != nil {
			for _, s := range streams {
				running.Go(func() { s.run(ctx) })
			}
			limited(merged(ctx, streams, order), limit)(yield)
			return
		}
		running.Go(func() { runInOrder(ctx, streams, concurrency) })
		limited(concatenated(ctx, streams), limit)(yield)
	}
}

// stream is one sequence of pages.
type stream[V any] struct {
	fetch Fetch[V]
	pages chan page[V]
	slots chan struct{} // of all streams together: each fetch holds one, which limits how many run

	current []V // values of the last page that were not yielded yet
}

type page[V any] struct {
	items []V
	err   error
}

// run fetches the pages until the end, an error, or the end of the context.
func (s *stream[V]) run(ctx context.Context) {
	defer close(s.pages)
	token := ""
	for ctx.Err() == nil {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		items, next, err := s.fetch(ctx, token)
		<-s.slots
		if err != nil || len(items) > 0 {
			select {
			case s.pages <- page[V]{items, err}:
			case <-ctx.Done():
				return
			}
		}
		if token = next; token == "" {
			return
		}
	}
}

// runInOrder runs n streams at a time: whenever one has ended, it starts the next one.
func runInOrder[V any](ctx context.Context, streams []*stream[V], n int) {
	var running errgroup.Group
	running.SetLimit(n)
	for _, s := range streams {
		running.Go(func() error {
			s.run(ctx)
			return nil
		})
	}
	_ = running.Wait() // always nil: a stream passes its error on in its last page
}

// next returns the stream's next value, which stays in current. ok is false at the end.
func (s *stream[V]) next(ctx context.Context) (v V, ok bool, err error) {
	for len(s.current) == 0 {
		select {
		case p, open := <-s.pages:
			if !open {
				return v, false, ctx.Err()
			}
			if p.err != nil {
				return v, false, p.err
			}
			s.current = p.items
		case <-ctx.Done():
			return v, false, ctx.Err()
		}
	}
	return s.current[0], true, nil
}

func concatenated[V any](ctx context.Context, streams []*stream[V]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for _, s := range streams {
			for {
				v, ok, err := s.next(ctx)
				if err != nil {
					yield(v, err)
					return
				}
				if !ok {
					break
				}
				s.current = s.current[1:]
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// merged yields the least of the streams' next values, again and again until all streams have ended. Of equal values, that of the first
// stream comes first.
func merged[V any](ctx context.Context, streams []*stream[V], order func(a, b V) int) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		open := slices.Clone(streams)
		for {
			var least *stream[V]
			live := open[:0]
			for _, s := range open {
				v, ok, err := s.next(ctx)
				if err != nil {
					yield(v, err)
					return
				}
				if !ok {
					continue
				}
				live = append(live, s)
				if least == nil || order(v, least.current[0]) < 0 {
					least = s
				}
			}
			open = live
			if least == nil {
				return
			}
			v := least.current[0]
			least.current = least.current[1:]
			if !yield(v, nil) {
				return
			}
		}
	}
}

// limited ends a sequence after n values; 0 means no limit.
func limited[V any](all iter.Seq2[V, error], n int) iter.Seq2[V, error] {
	if n == 0 {
		return all
	}
	return func(yield func(V, error) bool) {
		left := n
		for v, err := range all {
			if !yield(v, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// Typed yields the values of all, which are pointers to T or nil.
func Typed[T any](all iter.Seq2[any, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		all(func(v any, err error) bool {
			if v == nil {
				return yield(nil, err)
			}
			return yield(v.(*T), err)
		})
	}
}

// Untyped yields the values of all, with a nil pointer as nil. For nil it returns nil.
func Untyped[T any](all iter.Seq2[*T, error]) iter.Seq2[any, error] {
	if all == nil {
		return nil
	}
	return func(yield func(any, error) bool) {
		all(func(v *T, err error) bool {
			if v == nil {
				return yield(nil, err)
			}
			return yield(v, err)
		})
	}
}

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

// Mixed is a page with problems between its values: Problems[i] stands before Values[At[i]].
type Mixed[V any] struct {
	Values   []V
	Problems []error
	At       []int // ascending, at most len(Values)
}

// Add appends a value or, if it is not nil, a problem.
func (m *Mixed[V]) Add(v V, problem error) {
	if problem != nil {
		m.Problems, m.At = append(m.Problems, problem), append(m.At, len(m.Values))
		return
	}
	m.Values = append(m.Values, v)
}

// Each yields values and problems in their order. It returns false if yield has returned false.
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

// Unwrapped yields the value or the problem of each result: at most limit values and any number of problems, or all if limit is 0. It also
// yields an error of the sequence itself, which is the last element.
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

// ByValue returns an order of results by their values. Problems come first, so that a merge yields them at once. For nil it returns nil.
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

// Window reads the values 0 to n-1, several at once, and yields them in order. It omits a value if skip returns true for its error, and
// yields any other error. After an error for which goOn returns false, it ends. It reads at most concurrency values ahead of the caller.
func Window[V any](ctx context.Context, n, concurrency int, read func(ctx context.Context, i int) (V, error), skip, goOn func(error) bool) iter.Seq2[V, error] {
	type answer struct {
		v   V
		err error
	}
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		answers := make([]chan answer, n)
		for i := range answers {
			answers[i] = make(chan answer, 1)
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		window := make(chan struct{}, concurrency)
		running.Go(func() {
			for i := range n {
				select {
				case window <- struct{}{}:
				case <-ctx.Done():
					return
				}
				running.Go(func() {
					v, err := read(ctx, i)
					answers[i] <- answer{v, err}
				})
			}
		})
		for i := range n {
			select {
			case a := <-answers[i]:
				<-window // free the slot only now, so that reads do not run ahead of a slow caller
				if a.err != nil && skip(a.err) {
					continue
				}
				if !yield(a.v, a.err) || a.err != nil && !goOn(a.err) {
					return
				}
			case <-ctx.Done():
				var none V
				yield(none, ctx.Err())
				return
			}
		}
	}
}
