package tables

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/streams"
)

// ParallelOptions are the options of parallel reads; nil is the same as the zero value.
type ParallelOptions[T any] struct {
	// Concurrency is the maximum number of requests in flight; 0 or less means 8.
	Concurrency int
	// Order compares two entities, and merges the partitions: the least entity comes first. Each partition's entities must already be
	// in this order, and a page of every partition is held in memory. Nil yields the partitions one after the other in the order of
	// their keys. GetMany does not use it.
	Order func(a, b *T) int
}

func (o *ParallelOptions[T]) concurrency() int {
	if o == nil || o.Concurrency <= 0 {
		return defaultConcurrency
	}
	return o.Concurrency
}

// AllPartitions runs the query in each of the partitions, several at once, and yields their entities in order. The query must not
// name a partition itself; its Top counts over all partitions. An error is yielded once, as the last element.
//
// Requests: those of one query for each partition. At most 2 pages of a partition are read ahead of the caller.
func (q Query[T]) AllPartitions(ctx context.Context, partitions []string, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	if q.partition != nil {
		return func(yield func(*T, error) bool) {
			yield(nil, Invalidf("AllPartitions", "the query limits the partition with Partition; remove that call, since AllPartitions sets it"))
		}
	}
	keys := slices.Compact(slices.SortedFunc(slices.Values(partitions), compoundkey.Compare))
	fetches := make([]streams.Fetch[*T], len(keys))
	for i, key := range keys {
		inPartition := q.Partition(key)
		fetches[i] = func(ctx context.Context, token string) ([]*T, string, error) {
			page, err := inPartition.Page(ctx, token)
			return page.Items, page.Next, err
		}
	}
	var order func(a, b *T) int
	if options != nil {
		order = options.Order
	}
	return streams.All(ctx, fetches, options.concurrency(), order, q.top)
}

// GetMany reads rows by their keys, several at once, and yields those that exist in the order of keys. Use it in place of the
// filter "RowKey eq a or RowKey eq b", which the service runs as a partition scan. An error is yielded once, as the last element.
//
// Requests: 1 for each key, at most Concurrency of them ahead of the caller.
func (r *Rows[T]) GetMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return getMany[T](ctx, r.src, keys, options.concurrency())
}

func getMany[T any](ctx context.Context, s *Source, keys []Key, concurrency int) iter.Seq2[*T, error] {
	return streams.Window(ctx, len(keys), concurrency, func(ctx context.Context, i int) (*T, error) {
		return as[T](s.get(ctx, "GetMany", keys[i]))
	}, IsAbsent)
}
