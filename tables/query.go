package tables

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Query describes a query. Its methods return changed copies, so a Query can be kept and varied. Plan, and every method that would send
// the query, returns an error before any request if the query is wrong.
//
// Guide: "How your choice of PartitionKey and RowKey impacts query performance", "Server-side projection",
// "Retrieving large numbers of entities from a query".
type Query[T any] struct{ q query }

// query is a Query whose T is not known at compile time; its values are pointers to T. The methods of Query only call
// those of query, since the compiler compiles a method of Query again for each type of entity.
type query struct {
	src        *RawSource
	partition  *string
	row        *string
	span       *compoundkey.Span
	conditions []Condition
	filters    []string
	selected   []string
	top        int
	pageSize   int
	allowScan  bool
}

// Partition limits the query to one partition.
func (q Query[T]) Partition(key string) Query[T] { q.q.partition = &key; return q }

// Row limits the query to one row key; with Partition it is a point query, the cheapest class.
func (q Query[T]) Row(key string) Query[T] { q.q.row = &key; return q }

// Rows limits the query to a span of row keys; with Partition it is a range query. On an index it can only narrow the index's own
// range.
func (q Query[T]) Rows(span compoundkey.Span) Query[T] { q.q.span = &span; return q }

// Where adds conditions. Entities must match all conditions of the query.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	q.q.conditions = slices.Concat(q.q.conditions, conditions)
	return q
}

// Filter adds a filter in the service's own language. It is parsed and classified like the conditions of Where.
func (q Query[T]) Filter(expression string) Query[T] {
	q.q.filters = append(slices.Clip(q.q.filters), expression)
	return q
}

// Select makes the query read only these properties; other fields keep their zero value. Replace refuses an entity that
// was read in this way, and Merge refuses it if it is a struct; Delete accepts it.
func (q Query[T]) Select(properties ...string) Query[T] {
	q.q.selected = slices.Concat(q.q.selected, properties)
	return q
}

// Top ends the query after n entities (default 0: no limit).
func (q Query[T]) Top(n int) Query[T] { q.q.top = n; return q }

// PageSize asks for at most n entities a page, 1 to 1,000 (default 1,000); the service may send fewer.
func (q Query[T]) PageSize(n int) Query[T] { q.q.pageSize = n; return q }

// AllowTableScan allows the query to read several partitions or the whole table. Without it, such a query returns
// ErrTableScan.
func (q Query[T]) AllowTableScan() Query[T] { q.q.allowScan = true; return q }

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

	point *Key     // a point read answers the query
	empty bool     // nothing can match
	asked []string // Select without RawSource.Guards
}

// ClassifyFilter returns the class of a filter in the service's own language; "" means no filter.
func ClassifyFilter(expression string) (Plan, error) {
	var expr odata.Expr
	if strings.TrimSpace(expression) != "" {
		var err error
		if expr, err = odata.Parse(expression); err != nil {
			return Plan{}, errs.Invalid("ClassifyFilter", err)
		}
	}
	return planOf(expr)
}

// Plan returns the class, filter and projection of the query without sending it. Requests: 0.
func (q Query[T]) Plan() (Plan, error) { return q.q.plan() }

func (q *query) plan() (_ Plan, err error) {
	if q.src != nil && q.src.Err != nil {
		return Plan{}, q.src.Err
	}
	defer func() {
		if err != nil && q.src != nil {
			err = relabel("Query", q.src.Table, err)
		}
	}()
	if q.src == nil {
		return Plan{}, errs.Wiringf("Query", "", "the query has no table; make it with Query of Rows or a repository")
	}
	if err := q.src.Table.usable(); err != nil {
		return Plan{}, errs.Wiringf("Query", "", "%w", err)
	}
	if q.pageSize < 0 || q.pageSize > MaxPageSize {
		return Plan{}, errs.Invalidf("Query", "PageSize is %d; it must be 1 to %d, or 0 for %[2]d", q.pageSize, MaxPageSize)
	}
	if q.top < 0 {
		return Plan{}, errs.Invalidf("Query", "Top is %d; it must be 0 (meaning no limit) or more", q.top)
	}
	expr, err := q.expr()
	if err != nil {
		return Plan{}, errs.Invalid("Query", err)
	}
	p, err := planOf(expr)
	if err != nil {
		return Plan{}, err
	}
	if p.asked, err = filter.Selection(q.src.System, q.selected); err != nil {
		return Plan{}, errs.Invalid("Query", err)
	}
	p.Select = p.asked
	for _, name := range q.src.Guards {
		if len(p.asked) > 0 && !slices.Contains(p.asked, name) {
			p.Select = append(slices.Clip(p.Select), name)
		}
	}
	return p, nil
}

func planOf(expr odata.Expr) (Plan, error) {
	if n := odata.Comparisons(expr); n > MaxFilterComparisons {
		return Plan{}, errs.Invalid("Query", &edm.SizeError{What: "a filter", Size: n, Limit: MaxFilterComparisons, Unit: "comparisons"})
	}
	text, err := odata.Append(nil, expr)
	if err != nil {
		return Plan{}, errs.Invalid("Query", err)
	}
	classed := odata.Classify(expr)
	p := Plan{Class: QueryClass(classed.Class), Filter: string(text), Reason: classed.Reason, empty: classed.Empty}
	for _, row := range classed.Keys {
		p.Keys = append(p.Keys, Key{classed.PartitionKey, row})
	}
	if p.Class == PointQuery && classed.Exact {
		p.point = &Key{classed.PartitionKey, classed.RowKey}
	}
	return p, nil
}

// expr joins everything that limits the query.
func (q *query) expr() (odata.Expr, error) {
	limits := filter.Query{
		Partition: q.partition, Row: q.row, Spans: []compoundkey.Span{q.src.Span}, Terms: terms(q.src.Where, q.conditions), Filters: q.filters,
		Kept: q.src.Kept, Filterable: q.src.Filterable,
	}
	if q.span != nil {
		limits.Spans = append(limits.Spans, *q.span)
	}
	return limits.Expr(q.src.Codec.types())
}

// refuseScan returns ErrTableScan for a table scan that the query does not allow. Every method that sends the query
// calls it.
func (q *query) refuseScan(p Plan) error {
	if p.Class == TableScan && !q.allowScan {
		return &Error{Op: "Query", Table: q.src.Table.name, Kind: ErrTableScan, Err: fmt.Errorf("%s; name the partition, or call AllowTableScan", p.Reason)}
	}
	return nil
}

// All yields the entities in the order of partition key and row key (on Cosmos DB: in no order). In place of a row that does not fit T
// it yields ErrGarbled with Error.OfRow and the row's key, and the loop may continue. It yields any other error once, as the last
// element. A response that was cut off is such an error: ErrGarbled without OfRow, or ErrUnavailable if HTTP shows the cut.
//
// Requests: 1 for a point query, otherwise 1 for each page of at most 1,000.
func (q Query[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return streams.Typed[T](q.q.all(ctx))
}

// all is not inlined: its loop would be compiled for each type again.
//
//go:noinline
func (q query) all(ctx context.Context) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ctx, span := q.src.begin(ctx, "All")
		page, next, err := streams.Mixed[any]{}, "", error(nil)
		defer func() { span.End(err) }()
		for {
			err = telemetry.ErrPanicked // the outcome if a callback or the loop's body panics
			var failed error
			if page, next, failed = q.page(ctx, next); failed != nil {
				err = failed
				yield(nil, err)
				return
			}
			span.Pause()
			if !page.Each(yield) {
				err = nil
				return
			}
			err = nil
			span.Resume()
			if next == "" {
				return
			}
		}
	}
}

// First returns the first entity of the query, or ErrNotFound if there is none. Requests: 1, more if the service returns
// empty pages.
func (q Query[T]) First(ctx context.Context) (*T, error) { return as[T](q.q.first(ctx)) }

func (q query) first(ctx context.Context) (any, error) {
	ctx, span := q.src.begin(ctx, "First")
	ended := telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(ended) }()
	q.top = 1
	for v, err := range q.all(ctx) {
		ended = err
		return v, err
	}
	ended = &Error{Op: "First", Table: q.src.Table.name, Kind: ErrNotFound}
	return nil, ended
}

// types returns how values of the codec's T are stored.
func (c *RawCodec) types() filter.Types {
	return filter.Types{
		Declared: func(property string) edm.Type {
			if c.plan == nil {
				return edm.TypeNull
			}
			return c.plan.EDMType(property)
		},
		ValueOf: func(value any) (edm.Value, error) {
			v, err := ValueOf(value)
			return edm.Value(v), err
		},
	}
}

func terms(lists ...[]Condition) (all []filter.Term) {
	for _, list := range lists {
		for _, c := range list {
			all = append(all, filter.Term(c))
		}
	}
	return all
}
