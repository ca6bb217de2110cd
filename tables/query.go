package tables

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/streams"
)

// Query describes a query. Its methods return changed copies, so a Query can be kept and varied. Plan, and every method that would send
// the query, returns an error before any request if the query is wrong.
//
// Guide: "How your choice of PartitionKey and RowKey impacts query performance", "Server-side projection",
// "Retrieving large numbers of entities from a query".
type Query[T any] core.Query

// Partition limits the query to one partition.
func (q Query[T]) Partition(key string) Query[T] { return Query[T](core.Query(q).Partition(key)) }

// Row limits the query to one row key; with Partition it is a point query, the cheapest class.
func (q Query[T]) Row(key string) Query[T] { return Query[T](core.Query(q).Row(key)) }

// Rows limits the query to a span of row keys; with Partition it is a range query. On an index it can only narrow the index's own
// range.
func (q Query[T]) Rows(span compoundkey.Span) Query[T] { return Query[T](core.Query(q).Rows(span)) }

// Where adds conditions. Entities must match all conditions of the query. A condition on a property for which T has no field makes the
// query return ErrInvalid, unless T is Entity or has a field tagged rest.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	return Query[T](core.Query(q).Where(conditions...))
}

// Filter adds a filter in the service's own language. It is parsed and classified like the conditions of Where.
func (q Query[T]) Filter(expression string) Query[T] {
	return Query[T](core.Query(q).Filter(expression))
}

// Select makes the query read only these properties, which T must have as in Where; other fields keep their zero value. Replace refuses an entity that
// was read in this way, and Merge refuses it if it is a struct; Delete accepts it.
func (q Query[T]) Select(properties ...string) Query[T] {
	return Query[T](core.Query(q).Select(properties...))
}

// Top ends the query after n entities (default 0: no limit).
func (q Query[T]) Top(n int) Query[T] { return Query[T](core.Query(q).Top(n)) }

// PageSize asks for at most n entities a page, 1 to 1,000 (default 1,000); the service may send fewer.
func (q Query[T]) PageSize(n int) Query[T] { return Query[T](core.Query(q).PageSize(n)) }

// AllowTableScan allows the query to read several partitions or the whole table. Without it, such a query returns
// ErrTableScan.
func (q Query[T]) AllowTableScan() Query[T] { return Query[T](core.Query(q).AllowTableScan()) }

// QueryClass says how many rows the service reads for a query: see the constants.
type QueryClass odata.Class

// Query classes, most expensive first.
const (
	TableScan     = QueryClass(odata.TableScan)     // every row of the table, or of the partitions between two bounds
	PartitionScan = QueryClass(odata.PartitionScan) // every row of a partition
	RangeQuery    = QueryClass(odata.RangeQuery)    // a range of row keys of a partition
	PointQuery    = QueryClass(odata.PointQuery)    // one row
)

// String returns the class as the guide writes it, such as "partition scan".
func (c QueryClass) String() string { return odata.Class(c).String() }

// Plan says how the service will search for a query's entities.
type Plan struct {
	Class  QueryClass
	Filter string   // as sent, "" for none; a point read sends its keys in the address
	Select []string // as sent; nil for all
	Reason string   // the reason for the class
	// Keys are set if the filter only lists row keys of one partition, joined by "or": GetMany answers it with parallel
	// point reads instead of a partition scan.
	Keys []Key
}

func planOf(p core.Plan, err error) (Plan, error) {
	return Plan{Class: QueryClass(p.Class), Filter: p.Filter, Select: p.Select, Reason: p.Reason, Keys: p.Keys}, err
}

// ClassifyFilter returns the class of a filter in the service's own language; "" means no filter.
func ClassifyFilter(expression string) (Plan, error) { return planOf(core.PlanFilter(expression)) }

// Plan returns the class, filter and projection of the query without sending it. Requests: 0.
func (q Query[T]) Plan() (Plan, error) { return planOf(core.Query(q).Plan()) }

// All yields the entities in the order of partition key and row key (on Cosmos DB: in no order). In place of a row that does not fit T
// it yields ErrGarbled with Error.OfRow and the row's key, and the loop may continue. It yields any other error once, as the last
// element. A response that was cut off is such an error: ErrGarbled without OfRow, or ErrUnavailable if HTTP shows the cut.
//
// Requests: 1 for a point query, otherwise 1 for each page of at most 1,000.
func (q Query[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return core.All[T](ctx, core.Query(q))
}

// First returns the first entity of the query, or ErrNotFound if there is none. Requests: 1, more if the service returns
// empty pages.
func (q Query[T]) First(ctx context.Context) (*T, error) { return as[T](core.Query(q).First(ctx)) }

// Page is one page of a query. A page without Items can have a Next: read on until Next is "".
type Page[T any] struct {
	Items []*T
	// Problems has an ErrGarbled, with the key, for each row that does not fit T. Items does not contain these rows.
	Problems []error
	Next     string // continuation token for the next page, "" at the end
}

// Page reads one page: the first if token is "", otherwise the one after the page whose Next is token. Another process can use the token,
// too, with an equal query of the same table; Page returns ErrInvalid for the token of another query.
//
// Requests: 1; 0 if the conditions contradict each other, so that no row can match.
func (q Query[T]) Page(ctx context.Context, token string) (Page[T], error) {
	page, next, err := core.Query(q).Page(ctx, token)
	if err != nil {
		return Page[T]{}, err
	}
	p := Page[T]{Problems: page.Problems, Next: next}
	if len(page.Values) > 0 {
		p.Items = make([]*T, len(page.Values))
	}
	for i, v := range page.Values {
		p.Items[i] = v.(*T)
	}
	return p, nil
}

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
	Progress func(Progress)
	// Resume continues an earlier read with the same query and partitions: give Report.Resume of its last Progress.
	// Entities that were yielded after that Progress are yielded again. The token has at most three keys for each page
	// in memory, whatever the size of the table.
	Resume string
}

func (o *ParallelOptions[T]) core() core.Parallel {
	if o == nil {
		return core.Parallel{}
	}
	p := core.Parallel{Concurrency: o.Concurrency, Unordered: o.Unordered, Progress: o.Progress, Resume: o.Resume}
	if o.Order != nil {
		p.Order = func(a, b any) int { return o.Order(a.(*T), b.(*T)) }
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
	return streams.Typed[T](core.Query(q).AllParallel(ctx, options.core()))
}

// AllPartitions runs the query in each of the partitions, several at once, and yields their entities in order. Several readers
// share a partition that has many more pages than the others. The query must not name a partition itself; its Top counts over all
// partitions. For a row that does not fit T it yields ErrGarbled, as All does. It yields any other error once, as the last
// element.
//
// Requests: those of one query for each partition, and those of AllParallel for the parts of a large one. At most 2 pages for each request
// in flight are read ahead of the caller; with Order, 2 pages of each partition.
func (q Query[T]) AllPartitions(ctx context.Context, partitions []string, options *ParallelOptions[T]) iter.Seq2[*T, error] {
	return streams.Typed[T](core.Query(q).AllPartitions(ctx, partitions, options.core()))
}
