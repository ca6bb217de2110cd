package tables

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// defaultConcurrency is the number of requests that parallel reads keep under way when the caller does not say.
const defaultConcurrency = 8

// ParallelOptions are the options of parallel reads; nil is the same as the zero value.
type ParallelOptions[T any] struct {
	// Concurrency is the number of requests under way at once, 8 for 0.
	Concurrency int
	// Order merges the partitions by this comparison, in which each of them must already be ordered. Without it the
	// partitions come one after the other in the order of their keys. Every partition then holds a page in memory.
	Order func(a, b *T) int
}

func (o *ParallelOptions[T]) concurrency() int {
	if o == nil || o.Concurrency <= 0 {
		return defaultConcurrency
	}
	return o.Concurrency
}

// AllPartitions runs the query in each of the partitions, several at once, and yields their entities in order. The
// query names no partition of its own; its Top counts over all. An error comes once, last. Requests: those of one
// query for each partition, and at most 2 pages ahead of the reader for each under way.
func (q Query[T]) AllPartitions(ctx context.Context, partitions []string, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	var order func(a, b any) int
	if options != nil && options.Order != nil {
		order = func(a, b any) int { return options.Order(a.(*T), b.(*T)) }
	}
	return typed[T](q.allPartitions(ctx, partitions, options.concurrency(), order))
}

// typed gives the values of a sequence their type.
func typed[T any](all iter.Seq2[any, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for v, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(v.(*T), nil) {
				return
			}
		}
	}
}

func (q *query) allPartitions(ctx context.Context, partitions []string, concurrency int, order func(a, b any) int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		if q.partition != nil {
			yield(nil, Invalidf("AllPartitions", "the query names a partition of its own"))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		keys := slices.Compact(slices.SortedFunc(slices.Values(partitions), compoundkey.Compare))
		streams := make([]*stream, len(keys))
		slots := make(chan struct{}, concurrency)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		for i, key := range keys {
			s := &stream{query: *q, pages: make(chan result, 1), slots: slots}
			s.query.partition = &key
			streams[i] = s
		}
		if order != nil {
			for _, s := range streams {
				running.Go(func() { s.run(ctx) })
			}
			limited(mergeStreams(ctx, streams, order), q.top)(yield)
			return
		}
		running.Go(func() { runInOrder(ctx, streams, concurrency) })
		limited(concatStreams(ctx, streams), q.top)(yield)
	}
}

// stream is one partition's pages on their way.
type stream struct {
	query query
	pages chan result
	slots chan struct{} // shared: requests under way

	current []any // the reader's
}

type result struct {
	items []any
	err   error
}

// run fetches the pages until the end, an error or the reader's leaving.
func (s *stream) run(ctx context.Context) {
	defer close(s.pages)
	token := ""
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		var items []any
		next, err := s.query.page(ctx, token, func(v any) int {
			items = append(items, v)
			return len(items)
		})
		<-s.slots
		if err != nil || len(items) > 0 {
			select {
			case s.pages <- result{items, err}:
			case <-ctx.Done():
				return
			}
		}
		if token = next; token == "" {
			return
		}
	}
}

// runInOrder keeps the first n streams running; the next one begins when one has ended.
func runInOrder(ctx context.Context, streams []*stream, n int) {
	places := make(chan struct{}, n)
	var running sync.WaitGroup
	defer running.Wait()
	for _, s := range streams {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			close(s.pages)
			continue
		}
		running.Go(func() {
			s.run(ctx)
			<-places
		})
	}
}

// next returns the stream's next value without taking it, nil at the end.
func (s *stream) next(ctx context.Context) (any, error) {
	for len(s.current) == 0 {
		select {
		case r, ok := <-s.pages:
			if !ok {
				return nil, ctx.Err()
			}
			if r.err != nil {
				return nil, r.err
			}
			s.current = r.items
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.current[0], nil
}

func (s *stream) take() { s.current = s.current[1:] }

func concatStreams(ctx context.Context, streams []*stream) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for _, s := range streams {
			for {
				v, err := s.next(ctx)
				if err != nil {
					yield(nil, err)
					return
				}
				if v == nil {
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

// mergeStreams yields the least of the streams' heads until all are at their end. Equal ones come in stream order.
func mergeStreams(ctx context.Context, streams []*stream, order func(a, b any) int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		open := slices.Clone(streams)
		for {
			var least *stream
			live := open[:0]
			for _, s := range open {
				v, err := s.next(ctx)
				if err != nil {
					yield(nil, err)
					return
				}
				if v == nil {
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

// limited ends a sequence after n values, 0 being no limit.
func limited(all iter.Seq2[any, error], n int) iter.Seq2[any, error] {
	if n == 0 {
		return all
	}
	return func(yield func(any, error) bool) {
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

// GetMany reads rows by their keys, several at once, and yields those that are there in the order of keys. It is the
// answer to "RowKey eq a or RowKey eq b", which the service runs as a partition scan. An error comes once, last.
// Requests: 1 for each key, never more than Concurrency ahead of the reader.
func (r *Rows[T]) GetMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return typed[T](r.src.getMany(ctx, keys, options.concurrency()))
}

func (s *Source) getMany(ctx context.Context, keys []Key, concurrency int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		answers := make([]chan result, len(keys))
		for i := range answers {
			answers[i] = make(chan result, 1)
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		window := make(chan struct{}, concurrency)
		running.Go(func() {
			for i, key := range keys {
				select {
				case window <- struct{}{}:
				case <-ctx.Done():
					return
				}
				running.Go(func() {
					v, err := s.get(ctx, "GetMany", key)
					answers[i] <- result{[]any{v}, err}
				})
			}
		})
		for i := range keys {
			select {
			case r := <-answers[i]:
				<-window // only now, so that a slow reader is not left far behind
				if IsAbsent(r.err) {
					continue
				}
				if !yield(r.items[0], r.err) || r.err != nil {
					return
				}
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}
