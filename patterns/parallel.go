package patterns

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
	return func(yield func(*T, error) bool) {
		if q.partition != nil {
			yield(nil, invalidf("AllPartitions", "the query names a partition of its own"))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		keys := slices.Compact(slices.SortedFunc(slices.Values(partitions), compoundkey.Compare))
		streams := make([]*stream[T], len(keys))
		slots := make(chan struct{}, options.concurrency())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		for i, key := range keys {
			streams[i] = &stream[T]{query: q.Partition(key), pages: make(chan result[T], 1), slots: slots}
		}
		if options != nil && options.Order != nil {
			for _, s := range streams {
				running.Go(func() { s.run(ctx) })
			}
			limited(mergeStreams(ctx, streams, options.Order), q.top)(yield)
			return
		}
		running.Go(func() { runInOrder(ctx, streams, options.concurrency()) })
		limited(concatStreams(ctx, streams), q.top)(yield)
	}
}

// stream is one partition's pages on their way.
type stream[T any] struct {
	query Query[T]
	pages chan result[T]
	slots chan struct{} // shared: requests under way

	current []*T // the reader's
}

type result[T any] struct {
	items []*T
	err   error
}

// run fetches the pages until the end, an error or the reader's leaving.
func (s *stream[T]) run(ctx context.Context) {
	defer close(s.pages)
	token := ""
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		page, err := s.query.Page(ctx, token)
		<-s.slots
		if err != nil || len(page.Items) > 0 {
			select {
			case s.pages <- result[T]{page.Items, err}:
			case <-ctx.Done():
				return
			}
		}
		if token = page.Next; token == "" {
			return
		}
	}
}

// runInOrder keeps the first n streams running; the next one begins when one has ended.
func runInOrder[T any](ctx context.Context, streams []*stream[T], n int) {
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

// next returns the stream's next entity without taking it, nil at the end.
func (s *stream[T]) next(ctx context.Context) (*T, error) {
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

func (s *stream[T]) take() { s.current = s.current[1:] }

func concatStreams[T any](ctx context.Context, streams []*stream[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
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
func mergeStreams[T any](ctx context.Context, streams []*stream[T], order func(a, b *T) int) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		open := slices.Clone(streams)
		for {
			var least *stream[T]
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
func limited[T any](all iter.Seq2[*T, error], n int) iter.Seq2[*T, error] {
	if n == 0 {
		return all
	}
	return func(yield func(*T, error) bool) {
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
func (t *TypedTable[T]) GetMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return t.src.getMany(ctx, keys, options)
}

func (s *source[T]) getMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		answers := make([]chan result[T], len(keys))
		for i := range answers {
			answers[i] = make(chan result[T], 1)
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		window := make(chan struct{}, options.concurrency())
		running.Go(func() {
			for i, key := range keys {
				select {
				case window <- struct{}{}:
				case <-ctx.Done():
					return
				}
				running.Go(func() {
					v, err := s.get(ctx, "GetMany", key)
					answers[i] <- result[T]{[]*T{v}, err}
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
