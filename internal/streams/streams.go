// Package streams reads several sequences of pages at once and yields their values as one sequence: one after the other, or merged by an
// order. A Window reads many single values by key.
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
	slots chan struct{} // shared by all streams: limits the pages that are being fetched

	current []V // the values of the page that the reader has not taken yet
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

// runInOrder runs the first n streams; whenever one has ended, it starts the next one.
func runInOrder[V any](ctx context.Context, streams []*stream[V], n int) {
	var running errgroup.Group
	running.SetLimit(n)
	for _, s := range streams {
		running.Go(func() error {
			s.run(ctx)
			return nil
		})
	}
	_ = running.Wait() // nil: a stream returns its error to the reader
}

// next returns the stream's next value without taking it; ok is false at the end.
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

func (s *stream[V]) take() { s.current = s.current[1:] }

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
				s.take()
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// merged repeatedly yields the least of the streams' next values, until all have ended. It yields equal values in the order of the streams.
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
			least.take()
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
