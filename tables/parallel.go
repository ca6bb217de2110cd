package tables

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// ParallelOptions are the options of parallel reads; nil is the same as the zero value.
type ParallelOptions[T any] struct {
	// Concurrency is the maximum number of requests in flight; 0 or less means 8.
	Concurrency int
	// Order compares two entities, and merges the partitions of AllPartitions: the least entity comes first. Each
	// partition's entities must already be in this order, and up to 3 pages of every partition are held in memory. With
	// a nil Order, entities are in the order of partition key and row key.
	Order func(a, b *T) int
	// Unordered yields entities as they arrive, which is the fastest way to read a large table or partition: readers
	// then share the whole table or partition, and not only the pages that are next in order. GetMany does not use it.
	Unordered bool
	// Progress is called after the caller has taken the last entity of a page, with Read, Failed, Elapsed and Resume.
	// It is not called with Order, by GetMany, or on Azure Cosmos DB.
	Progress func(Report)
	// Resume continues an earlier read with the same query and partitions: give Report.Resume of its last Progress.
	// Entities that were yielded after that Progress are yielded again. The token has at most three keys for each page
	// in memory, whatever the size of the table.
	Resume string
}

// parallel are ParallelOptions whose T is not known at compile time.
type parallel struct {
	concurrency int // at least 1
	order       func(a, b any) int
	unordered   bool
	progress    func(Report)
	resume      string
}

// untyped returns the options with their defaults.
func (o *ParallelOptions[T]) untyped() parallel {
	if o == nil {
		return parallel{concurrency: defaultConcurrency}
	}
	p := parallel{streams.Concurrency(o.Concurrency, defaultConcurrency), nil, o.Unordered, o.Progress, o.Resume}
	if o.Order != nil {
		p.order = func(a, b any) int { return o.Order(a.(*T), b.(*T)) }
	}
	return p
}

// AllParallel yields the entities that All yields, read by several readers: they share the table, or the one partition that the
// query names, by ranges of keys. A reader that has nothing to do takes over a part of another one's range, so it does not matter
// how rows are spread over partitions. Entities come in the order of All, or with Unordered as they arrive; Top counts all. For a
// row that does not fit T it yields ErrGarbled, as All does. It yields any other error once, as the last element.
//
// Unordered is the mode for large tables. In order, readers can share only the pages that are due next.
// Compared with a single reader, 8 readers shortened the longest chain of dependent requests to between 1/2.5 and 1/4, depending
// on how the rows were spread over partitions. Unordered shortened it to less than 1/6. Use the order only if the caller needs it, as for a merge or an export in the
// order of keys.
//
// On Azure Cosmos DB, which returns rows in no order of keys, there is one reader.
//
// Requests: 1 for each page; 1 for each bad guess of where rows are; and up to 2 for each part that a reader has taken
// over. AllParallel stops guessing after more than 8 bad guesses for each reader plus a quarter of the pages. It holds
// about 8 pages in memory for each reader, 2 with Unordered.
func (q Query[T]) AllParallel(ctx context.Context, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return streams.Typed[T](q.q.allParallel(ctx, options.untyped()))
}

func (q query) allParallel(ctx context.Context, o parallel) iter.Seq2[any, error] {
	const op = "AllParallel"
	p, err := q.plan()
	if err == nil {
		err = q.refuseScan(p)
	}
	cosmos := err == nil && q.src.Table.account.cosmos
	switch {
	case err != nil:
	case o.order != nil:
		err = errs.Wiringf(op, "", "ParallelOptions.Order is set; it merges the partitions of AllPartitions, so leave it nil here")
	case cosmos && o.resume != "":
		err = errs.Wiringf(op, "", "ParallelOptions.Resume is set, and on Azure Cosmos DB a parallel read cannot be resumed; use Page")
	}
	whole := rangescan.Range{}
	switch {
	case err != nil:
		return streams.Failed[any](err)
	case cosmos:
		return q.all(ctx)
	case q.partition != nil:
		whole = rangescan.Partition(*q.partition)
	}
	return q.scan(ctx, op, []rangescan.Range{whole}, 0, o)
}

// AllPartitions runs the query in each of the partitions, several at once, and yields their entities in order. Several readers
// share a partition that has many more pages than the others. The query must not name a partition itself; its Top counts over all
// partitions. For a row that does not fit T it yields ErrGarbled, as All does. It yields any other error once, as the last
// element.
//
// Requests: those of one query for each partition, and those of AllParallel for the parts of a large one. At most 2 pages for each request
// in flight are read ahead of the caller; with Order, 2 pages of each partition.
func (q Query[T]) AllPartitions(ctx context.Context, partitions []string, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return streams.Typed[T](q.q.allPartitions(ctx, partitions, options.untyped()))
}

func (q query) allPartitions(ctx context.Context, partitions []string, o parallel) iter.Seq2[any, error] {
	const op = "AllPartitions"
	if q.src != nil && q.src.Err != nil {
		return streams.Failed[any](q.src.Err)
	}
	if q.partition != nil {
		return streams.Failed[any](errs.Wiringf(op, "", "the query limits the partition with Partition; remove that call, since AllPartitions sets it"))
	}
	keys := slices.Compact(slices.SortedFunc(slices.Values(partitions), compoundkey.Compare))
	ordered := q.src != nil && (q.src.Table.account.IsCosmos() || o.order != nil)
	fetches := make([]streams.Fetch[streams.Result[any]], len(keys))
	ranges := make([]rangescan.Range, len(keys))
	for i, key := range keys {
		inPartition := q
		inPartition.partition = &key
		if _, err := inPartition.plan(); err != nil && !ordered {
			return streams.Failed[any](err)
		}
		ranges[i] = rangescan.Partition(key)
		fetches[i] = func(ctx context.Context, token string) ([]streams.Result[any], string, error) {
			page, next, err := inPartition.page(ctx, token)
			return page.Results(), next, err
		}
	}
	if ordered && o.resume != "" {
		return streams.Failed[any](errs.Wiringf(op, "", "ParallelOptions.Resume is set, and a read with Order or on Azure Cosmos DB cannot be resumed; leave it out"))
	}
	if ordered || len(keys) == 0 {
		return func(yield func(any, error) bool) {
			ctx, span := q.src.begin(ctx, op)
			telemetry.Loop(span, streams.Unwrapped(streams.All(ctx, fetches, o.concurrency, streams.ByValue(o.order), 0), q.top), yield)
		}
	}
	return q.scan(ctx, op, ranges, 2*o.concurrency, o)
}

// scan yields what q.read yields, and reports it to telemetry as one operation.
func (q query) scan(ctx context.Context, op string, initial []rangescan.Range, buffer int, o parallel) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ctx, span := q.src.begin(ctx, op)
		telemetry.Loop(span, q.read(ctx, op, initial, buffer, o), yield)
	}
}

// read reads ranges of keys with several readers, and holds at most buffer pages; 0 means the default of package
// rangescan.
func (q query) read(ctx context.Context, op string, initial []rangescan.Range, buffer int, o parallel) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		planned, _ := q.plan() // the caller has checked that plan returns no error
		expr, _ := q.expr()
		began, report := time.Now(), Report{Resume: o.resume}
		run := continuation.Hash("%s %s %q", continuation.Fingerprint(q.src.Table.account.endpoints.Table, q.src.Table.name, planned.Filter, planned.asked, q.top), op, continuation.Encode(initial))
		state, left, err := rangescan.ParseState(o.resume, run, len(initial), q.top)
		if err != nil {
			yield(nil, relabel(op, q.src.Table, errs.Invalid(op, err)))
			return
		}
		part := q
		part.partition, part.top, part.allowScan = nil, 0, true
		if q.top > 0 && !q.src.Skips {
			part.pageSize = min(cmp.Or(q.pageSize, MaxPageSize), q.top)
		}
		scan := rangescan.New(initial, state, rangescan.Options{
			Readers: o.concurrency, Ordered: !o.unordered, Buffer: buffer,
			Together: odata.Comparisons(expr)+rangescan.MaxComparisons > MaxFilterComparisons,
		}, func(ctx context.Context, leg rangescan.Leg, token string, accept func(rangescan.Key) bool) (streams.Mixed[any], string, error) {
			part, src := part, *q.src
			src.Accept, part.src = func(k Key) bool { return accept(rangescan.Key(k)) }, &src
			filter, err := leg.Filter()
			if err != nil {
				return streams.Mixed[any]{}, "", errs.Invalid(op, err)
			}
			if filter != "" {
				part.filters = append(slices.Clip(part.filters), filter)
			}
			return part.page(ctx, token)
		})
		for page, err := range scan.Pages(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !page.Each(func(v any, problem error) bool {
				if !yield(v, problem) {
					return false
				}
				if problem != nil {
					report.Failed++
					return true
				}
				report.Read, left = report.Read+1, left-1
				return left != 0
			}) {
				return
			}
			if o.progress == nil {
				continue
			}
			if report.Resume, report.Elapsed = "", time.Since(began); scan.More() {
				report.Resume = scan.Rest().Token(run, max(left, 0))
			}
			o.progress(report)
		}
	}
}

// GetMany reads rows by their keys, several at once, and yields those that exist, in the order in which keys lists
// them. Use it in place of the filter "RowKey eq a or RowKey eq b", which the service runs as a partition scan. For a
// row that does not fit T it yields ErrGarbled, as All does. It yields any other error once, as the last element.
//
// Requests: 1 for each key, at most Concurrency of them ahead of the caller.
func (r *Rows[T]) GetMany(ctx context.Context, keys []Key, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return GetManyOf(ctx, rows.Open, r.src, keys, options)
}
