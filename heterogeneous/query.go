package heterogeneous

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Query describes a query of entities of all types. Its methods return changed copies, as the methods of
// tables.Query do. It has no Select, because values of a type would then be incomplete.
type Query struct {
	registry *Registry
	inner    tables.Query[row]
}

// Query returns a query. Index copies and further rows are not part of the result. Requests: 0 until it is read.
func (r *Registry) Query() Query { return Query{r, r.rows.Query()} }

// Partition limits the query to one partition.
func (q Query) Partition(key string) Query { q.inner = q.inner.Partition(key); return q }

// Rows limits the query to a span of row keys; with Partition it is a range query.
func (q Query) Rows(span compoundkey.Span) Query { q.inner = q.inner.Rows(span); return q }

// Where adds conditions; entities must match all of them. A value has the type under which its Go type is stored:
// tables.Eq("Age", 40) finds an Int64, and int32(40) an Int32. Type.Is is the condition for one type.
func (q Query) Where(conditions ...tables.Condition) Query {
	q.inner = q.inner.Where(conditions...)
	return q
}

// Top ends the query after n rows (default 0: no limit).
func (q Query) Top(n int) Query { q.inner = q.inner.Top(n); return q }

// PageSize asks for at most n entities a page, 1 to 1,000 (default 1,000).
func (q Query) PageSize(n int) Query { q.inner = q.inner.PageSize(n); return q }

// AllowTableScan allows the query to read the whole table. Without it, such a query returns
// tables.ErrTableScan.
func (q Query) AllowTableScan() Query { q.inner = q.inner.AllowTableScan(); return q }

// Plan returns the class, filter and projection of the query without sending it. Requests: 0.
func (q Query) Plan() (tables.Plan, error) { return q.inner.Plan() }

// Page is one page of a query. A page without Items can have a Next.
type Page struct {
	Items    []any   // as Query.All yields them
	Problems []error // the rows that do not fit, as in tables.Page
	Next     string  // continuation token for the next page, "" at the end
}

// Page reads one page: the first if token is "", otherwise the one after the page whose Next is token. Requests: 1, and 1 for
// each entity that its repository must read, 2 if it is stored in several rows.
func (q Query) Page(ctx context.Context, token string) (Page, error) {
	if q.registry == nil {
		return Page{}, errs.Wiringf("Query", "", "the query is the zero value; make it with Registry.Query")
	}
	page, err := q.inner.Page(ctx, token)
	if err != nil {
		return Page{}, err
	}
	items, problems, err := q.registry.values(ctx, "Query", page.Items)
	return Page{items, append(page.Problems, problems...), page.Next}, err
}

// All yields the entities in the order of their keys: each is a *T of one of the registry's types, for a type switch, or a
// *tables.Entity if its type or version is unknown. For a row that does not fit its type it yields tables.ErrGarbled, after the
// entities of the row's page, and the loop can continue; any other error is yielded once, as the last element. Write a value
// through the repository of its type. That repository reads an entity that is stored in several rows, or whose properties a
// pattern rewrites. Requests: 1 for each page of at most 1,000 rows, and 1 for each entity that its repository must read, 2 if
// it is stored in several rows.
func (q Query) All(ctx context.Context) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for page := (Page{}); ; {
			var err error
			if page, err = q.Page(ctx, page.Next); err != nil {
				yield(nil, err)
				return
			}
			for _, v := range page.Items {
				if !yield(v, nil) {
					return
				}
			}
			for _, problem := range page.Problems {
				if !yield(nil, problem) {
					return
				}
			}
			if page.Next == "" {
				return
			}
		}
	}
}

// Get reads one entity of any type, as Query.All yields it. It returns tables.ErrNotFound if there is none. Requests: 1; 2 if
// its repository must read it, 3 if it is stored in several rows.
func (r *Registry) Get(ctx context.Context, key tables.Key) (any, error) {
	v, err := r.rows.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	values, problems, err := r.values(ctx, "Get", []*row{v})
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, &tables.Error{Op: "Get", Table: r.table.Name(), Key: key, Kind: tables.ErrNotFound}
	}
	return values[0], nil
}

// values returns the entities of rows, and a problem for each row that does not fit its type. It leaves out an entity that no
// longer exists when its repository reads it.
func (r *Registry) values(ctx context.Context, op string, rows []*row) (values []any, problems []error, err error) {
	values = make([]any, len(rows))
	later := map[AnyType][]int{} // by type: the indexes of the rows whose entities the type's repository must read
	for i, v := range rows {
		p, spread := v.take()
		t := r.resolve(v.key(), p)
		switch {
		case t == nil:
			if values[i], err = r.unknown(v); err != nil {
				return nil, nil, err
			}
		case spread || !t.whole():
			later[t] = append(later[t], i)
		default:
			var garbled error
			if values[i], garbled = t.decode(v, p); garbled != nil {
				values[i], problems = nil, append(problems, r.garbled(op, v.key(), garbled))
			}
		}
	}
	for t, indexes := range later {
		garbled, err := r.readLater(ctx, t, rows, values, indexes)
		if problems = append(problems, garbled...); err != nil {
			return nil, nil, err
		}
	}
	return slices.DeleteFunc(values, func(v any) bool { return v == nil }), problems, nil
}

// readLater reads the entities of the rows with these indexes through their repository, into values.
func (r *Registry) readLater(ctx context.Context, t AnyType, rows []*row, values []any, indexes []int) (problems []error, err error) {
	keys := make([]tables.Key, len(indexes))
	for i, at := range indexes {
		keys[i] = rows[at].key()
	}
	found, problems, err := t.readMany(ctx, keys)
	if err != nil {
		return problems, err
	}
	for _, at := range indexes {
		if v, ok := found[rows[at].key()]; ok {
			values[at] = v
		}
	}
	return problems, nil
}
