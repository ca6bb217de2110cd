// Package keyrange reads rows by their keys with few requests: it reads keys of a partition that lie close together by queries over their
// range, and the others one by one.
package keyrange

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// Key is the key of a row.
type Key struct{ Partition, Row string }

// Reader has the functions that read rows of a table; they also deliver the rows to the caller.
type Reader struct {
	// Page reads one page of a range of a partition, in the order of the keys. It returns the row key up to which it has read, and whether
	// rows follow.
	Page func(ctx context.Context, partition string, span compoundkey.Span, size int) (last string, more bool, err error)
	// One reads one row.
	One func(ctx context.Context, key Key) error
	// Unordered is for Cosmos DB, which returns rows in no order: Read requests each row by itself.
	Unordered bool
}

// together is the minimum number of keys for which Read requests a page instead of each row. Read requests a further page only if
// the last one had at least this many of the keys.
const together = 3

// atOnce limits how many partitions are read concurrently, and how many single rows of each partition.
const atOnce = 8

// maxPage is the service's limit on the rows of a page.
const maxPage = 1000

// Read reads the rows of all keys. Requests: at most 1 for each key plus 1 for each partition. Unless Unordered is set,
// 3 or more keys of a partition that lie close together take about 1 for each 1,000 rows of their range, plus 1.
func (r Reader) Read(ctx context.Context, keys []Key) error {
	if len(keys) == 1 {
		return r.One(ctx, keys[0])
	}
	partitions := map[string][]string{}
	var order []string // in the order of keys, so that the requests begin in the same order each time
	for _, key := range keys {
		if partitions[key.Partition] == nil {
			order = append(order, key.Partition)
		}
		partitions[key.Partition] = append(partitions[key.Partition], key.Row)
	}
	if len(order) == 1 {
		return r.partition(ctx, order[0], partitions[order[0]])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, partition := range order {
		group.Go(func() error { return r.partition(ctx, partition, partitions[partition]) })
	}
	return group.Wait()
}

// partition reads rows of one partition. It reads pages as long as each contains several of the wanted rows, and then
// the remaining rows one by one.
func (r Reader) partition(ctx context.Context, partition string, rows []string) error {
	slices.SortFunc(rows, compoundkey.Compare)
	rows = slices.Compact(rows)
	density := 2 // assume that half of the rows in the range belong to other keys
	for len(rows) >= together && !r.Unordered {
		span := compoundkey.Range(rows[0], rows[len(rows)-1]+" ") // a range excludes its end, and no character of a key sorts below a space
		if span.Err() != nil {
			break
		}
		size := min(maxPage, density*len(rows))
		last, more, err := r.Page(ctx, partition, span, size)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
		found := len(rows)
		if i := slices.IndexFunc(rows, func(row string) bool { return compoundkey.Compare(row, last) > 0 }); i >= 0 {
			found = i
		}
		rows = rows[found:]
		if found < together {
			break
		}
		density = max(2, size/found+1)
	}
	if len(rows) == 1 {
		return r.One(ctx, Key{partition, rows[0]})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, row := range rows {
		group.Go(func() error { return r.One(ctx, Key{partition, row}) })
	}
	return group.Wait()
}
