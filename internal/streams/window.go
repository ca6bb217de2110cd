package streams

import (
	"context"
	"iter"
	"sync"
)

// Window reads n values by index, several at once, and yields them in order. If reading a value fails and
// skip accepts the error, Window skips the value. If goOn accepts the error, Window yields the error and
// continues. Any other error is yielded once, as the last element. At most concurrency values are read ahead
// of the caller.
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
