package core

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/continuation"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Parallel are the options of parallel reads.
type Parallel struct {
	Concurrency int                // 0 or less means 8
	Order       func(a, b any) int // merges the partitions of AllPartitions; nil for the order of keys
	Unordered   bool
	Progress    func(entity.Progress)
	Resume      string
}

// readers returns the number of requests in flight.
func (o Parallel) readers() int { return streams.Concurrency(o.Concurrency, defaultConcurrency) }

func (q query) allParallel(ctx context.Context, o Parallel) iter.Seq2[any, error] {
	const op = "AllParallel"
	p, err := q.plan()
	if err == nil {
		err = q.refuseScan(p)
	}
	cosmos := err == nil && q.src.Table.account.cosmos
	switch {
	case err != nil:
	case o.Order != nil:
		err = errs.Wiringf(op, "", "ParallelOptions.Order is set; it merges the partitions of AllPartitions, so leave it nil here")
	case cosmos && o.Resume != "":
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

func (q query) allPartitions(ctx context.Context, partitions []string, o Parallel) iter.Seq2[any, error] {
	const op = "AllPartitions"
	if q.src != nil && q.src.Err != nil {
		return streams.Failed[any](q.src.Err)
	}
	if q.partition != nil {
		return streams.Failed[any](errs.Wiringf(op, "", "the query limits the partition with Partition; remove that call, since AllPartitions sets it"))
	}
	keys := slices.Compact(slices.SortedFunc(slices.Values(partitions), compoundkey.Compare))
	ordered := q.src != nil && (q.src.Table.account.IsCosmos() || o.Order != nil)
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
	if ordered && o.Resume != "" {
		return streams.Failed[any](errs.Wiringf(op, "", "ParallelOptions.Resume is set, and a read with Order or on Azure Cosmos DB cannot be resumed; leave it out"))
	}
	if ordered || len(keys) == 0 {
		return func(yield func(any, error) bool) {
			ctx, span := q.src.begin(ctx, op)
			telemetry.Loop(span, streams.Unwrapped(streams.All(ctx, fetches, o.readers(), streams.ByValue(o.Order), 0), q.top), yield)
		}
	}
	return q.scan(ctx, op, ranges, 2*o.readers(), o)
}

// scan yields what q.read yields, and reports it to telemetry as one operation.
func (q query) scan(ctx context.Context, op string, initial []rangescan.Range, buffer int, o Parallel) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ctx, span := q.src.begin(ctx, op)
		telemetry.Loop(span, q.read(ctx, op, initial, buffer, o), yield)
	}
}

// read reads ranges of keys with several readers, and holds at most buffer pages; 0 means the default of package
// rangescan.
func (q query) read(ctx context.Context, op string, initial []rangescan.Range, buffer int, o Parallel) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		planned, _ := q.plan() // the caller has checked that plan returns no error
		expr, _ := q.expr()
		began, report := time.Now(), entity.Progress{Run: entity.Run{Resume: o.Resume}}
		run := continuation.Hash("%s %s %q", continuation.Fingerprint(q.src.Table.account.endpoints.Table, q.src.Table.name, planned.Filter, planned.asked, q.top), op, continuation.Encode(initial))
		state, left, err := rangescan.ParseState(o.Resume, run, initial, q.top)
		if err != nil {
			yield(nil, relabel(op, q.src.Table, errs.Invalid(op, err)))
			return
		}
		part := q
		part.partition, part.top, part.allowScan, part.pageSize = nil, 0, true, q.size(q.top, true)
		scan := rangescan.New(initial, state, rangescan.Options{
			Readers: o.readers(), Ordered: !o.Unordered, Buffer: buffer,
			Together: odata.Comparisons(expr)+rangescan.MaxComparisons > entity.MaxFilterComparisons,
		}, func(ctx context.Context, leg rangescan.Leg, token string, accept func(rangescan.Key) bool) (streams.Mixed[any], string, error) {
			part, src := part, *q.src
			src.Accept, part.src = func(k entity.Key) bool { return accept(rangescan.Key(k)) }, &src
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
			if o.Progress == nil {
				continue
			}
			if report.Resume, report.Elapsed = "", time.Since(began); scan.More() {
				report.Resume = scan.Rest().Token(run, max(left, 0))
			}
			o.Progress(report)
		}
	}
}
