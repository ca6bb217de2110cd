package core

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Query is a query of a source; its values are pointers to the type of the source's codec. Its methods return changed copies. It is one
// word, since the compiler compiles the methods of tables.Query again for each type of entity.
type Query struct{ of *query }

func (q Query) query() query {
	if q.of == nil {
		return query{}
	}
	return *q.of
}

type query struct {
	src        *Source
	partition  *string
	row        *string
	span       *compoundkey.Span
	conditions []entity.Condition
	filters    []string
	selected   []string
	top        int
	pageSize   int
	allowScan  bool
}

// FailedQuery returns a query of which Plan, and every method that would send it, returns err.
func FailedQuery(err error) Query { return NewQuery(&Source{Err: err}) }

// NewQuery returns a query of all values of a source.
func NewQuery(source *Source) Query { return Query{&query{src: source}} }

// All yields the values of a query whose values are pointers to T.
func All[T any](ctx context.Context, q Query) iter.Seq2[*T, error] {
	return streams.Typed[T](q.All(ctx))
}

// The methods of Query are not inlined: the compiler would compile their code again for each type of entity. Package tables describes
// those that limit a query.

// Partition is tables.Query.Partition.
//
//go:noinline
func (q Query) Partition(key string) Query {
	n := q.query()
	n.partition = &key
	return Query{&n}
}

// Row is tables.Query.Row.
//
//go:noinline
func (q Query) Row(key string) Query {
	n := q.query()
	n.row = &key
	return Query{&n}
}

// Rows is tables.Query.Rows.
//
//go:noinline
func (q Query) Rows(span compoundkey.Span) Query {
	n := q.query()
	n.span = &span
	return Query{&n}
}

// Where is tables.Query.Where.
//
//go:noinline
func (q Query) Where(conditions ...entity.Condition) Query {
	n := q.query()
	n.conditions = slices.Concat(n.conditions, conditions)
	return Query{&n}
}

// Filter is tables.Query.Filter.
//
//go:noinline
func (q Query) Filter(expression string) Query {
	n := q.query()
	n.filters = append(slices.Clip(n.filters), expression)
	return Query{&n}
}

// Select is tables.Query.Select.
//
//go:noinline
func (q Query) Select(properties ...string) Query {
	n := q.query()
	n.selected = slices.Concat(n.selected, properties)
	return Query{&n}
}

// Top is tables.Query.Top.
//
//go:noinline
func (q Query) Top(top int) Query {
	n := q.query()
	n.top = top
	return Query{&n}
}

// PageSize is tables.Query.PageSize.
//
//go:noinline
func (q Query) PageSize(size int) Query {
	n := q.query()
	n.pageSize = size
	return Query{&n}
}

// AllowTableScan is tables.Query.AllowTableScan.
//
//go:noinline
func (q Query) AllowTableScan() Query {
	n := q.query()
	n.allowScan = true
	return Query{&n}
}

// Plan returns the class, filter and projection of the query without sending it.
//
//go:noinline
func (q Query) Plan() (Plan, error) {
	n := q.query()
	return n.plan()
}

// All yields the values of the query.
//
//go:noinline
func (q Query) All(ctx context.Context) iter.Seq2[any, error] { return q.query().all(ctx) }

// First returns the first value of the query, or ErrNotFound if there is none.
//
//go:noinline
func (q Query) First(ctx context.Context) (any, error) { return q.query().first(ctx) }

// Page reads one page, with the problems of rows between its values, and returns the token of the next one.
//
//go:noinline
func (q Query) Page(ctx context.Context, token string) (page streams.Mixed[any], next string, err error) {
	n := q.query()
	ctx, span := n.src.begin(ctx, "Page")
	ended := telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(ended) }()
	page, next, ended = n.page(ctx, token)
	return page, next, ended
}

// AllParallel yields the values that All yields, read by several readers.
//
//go:noinline
func (q Query) AllParallel(ctx context.Context, o Parallel) iter.Seq2[any, error] {
	return q.query().allParallel(ctx, o)
}

// AllPartitions runs the query in each of the partitions, several at once, and yields their values in order.
//
//go:noinline
func (q Query) AllPartitions(ctx context.Context, partitions []string, o Parallel) iter.Seq2[any, error] {
	return q.query().allPartitions(ctx, partitions, o)
}

// Plan says how the service will search for a query's values.
type Plan struct {
	Class  odata.Class
	Filter string       // as sent, "" for none; a point read sends its keys in the address
	Select []string     // as sent; nil for all
	Reason string       // the reason for the class
	Keys   []entity.Key // set if the filter only lists row keys of one partition, joined by "or"

	point *entity.Key // a point read answers the query
	empty bool        // nothing can match
	asked []string    // Select without Source.Guards
}

// PlanFilter returns the plan of a filter in the service's own language; "" means no filter.
func PlanFilter(expression string) (Plan, error) {
	var expr odata.Expr
	if strings.TrimSpace(expression) != "" {
		var err error
		if expr, err = odata.Parse(expression); err != nil {
			return Plan{}, errs.Invalid("ClassifyFilter", err)
		}
	}
	return planOf(expr, "")
}

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
	if err := q.src.Table.Usable(); err != nil {
		return Plan{}, errs.Wiringf("Query", "", "%w", err)
	}
	if q.pageSize < 0 || q.pageSize > entity.MaxPageSize {
		return Plan{}, errs.Invalidf("Query", "PageSize is %d; it must be 1 to %d, or 0 for %[2]d", q.pageSize, entity.MaxPageSize)
	}
	if q.top < 0 {
		return Plan{}, errs.Invalidf("Query", "Top is %d; it must be 0 (meaning no limit) or more", q.top)
	}
	expr, err := q.expr()
	if err != nil {
		return Plan{}, errs.Invalid("Query", err)
	}
	p, err := planOf(expr, q.src.Marked)
	if err != nil {
		return Plan{}, err
	}
	if p.asked, err = filter.Selection(q.src.System, q.selected, q.src.stores); err != nil {
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

// planOf returns the plan of a filter, to which the library has added the comparison with the property marked, unless that is "".
func planOf(expr odata.Expr, marked string) (Plan, error) {
	if n := odata.Comparisons(expr); n > entity.MaxFilterComparisons {
		added := 0
		if slices.Contains(odata.Properties(expr), marked) {
			added = 1
		}
		return Plan{}, errs.Invalid("Query", &edm.SizeError{What: "a filter", Size: n, Limit: entity.MaxFilterComparisons, Unit: "comparisons", Library: added})
	}
	text, err := odata.Append(nil, expr)
	if err != nil {
		return Plan{}, errs.Invalid("Query", err)
	}
	classed := odata.Classify(expr)
	p := Plan{Class: classed.Class, Filter: string(text), Reason: classed.Reason, empty: classed.Empty}
	for _, row := range classed.Keys {
		p.Keys = append(p.Keys, entity.Key{Partition: classed.PartitionKey, Row: row})
	}
	if p.Class == odata.PointQuery && classed.Exact {
		p.point = &entity.Key{Partition: classed.PartitionKey, Row: classed.RowKey}
	}
	return p, nil
}

// expr joins everything that limits the query.
func (q *query) expr() (odata.Expr, error) { return q.limits().Expr(q.src.Codec.types()) }

func (q *query) limits() filter.Query {
	limits := filter.Query{
		Partition: q.partition, Row: q.row, Spans: []compoundkey.Span{q.src.Span}, Terms: terms(q.src.Where, q.conditions), Filters: q.filters,
		Filterable: q.src.filterable, Marked: q.src.Marked,
	}
	if q.span != nil {
		limits.Spans = append(limits.Spans, *q.span)
	}
	return limits
}

// refuseScan returns ErrTableScan for a table scan that the query does not allow. Every method that sends the query
// calls it.
func (q *query) refuseScan(p Plan) error {
	if p.Class == odata.TableScan && !q.allowScan {
		return &entity.Error{Op: "Query", Table: q.src.Table.name, Kind: entity.ErrTableScan, Err: fmt.Errorf("%s; name the partition, or call AllowTableScan", p.Reason)}
	}
	return nil
}

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

func (q query) first(ctx context.Context) (any, error) {
	ctx, span := q.src.begin(ctx, "First")
	ended := telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(ended) }()
	q.top = 1
	for v, err := range q.all(ctx) {
		ended = err
		return v, err
	}
	ended = &entity.Error{Op: "First", Table: q.src.Table.name, Kind: entity.ErrNotFound}
	return nil, ended
}

// types returns how values of the codec's T are stored.
func (c *Codec) types() filter.Types {
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

func terms(lists ...[]entity.Condition) (all []filter.Term) {
	for _, list := range lists {
		for _, c := range list {
			all = append(all, filter.Term(c))
		}
	}
	return all
}
