package indexentities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rowLists reads the lists in rows of a table.
type rowLists struct{ table *tables.Table }

// read reads a list with all its rows. Requests: 1 if the service returns the rows in one page.
func (r rowLists) read(ctx context.Context, place string) (*list, error) {
	first, err := driver.SplitKey(place)
	if err != nil {
		return nil, err
	}
	l := &list{first: first}
	for row, err := range r.table.Entities().Query().Partition(first.Partition).Rows(rows.AllNumbered(first.Row)).All(ctx) {
		if err != nil {
			return nil, err
		}
		ids, err := r.decode(row)
		if err != nil {
			return nil, err
		}
		_, number := rows.ParseNumbered(row.Key.Row)
		l.rows = append(l.rows, listRow{number: number, ids: ids, etag: row.ETag})
	}
	slices.SortFunc(l.rows, func(a, b listRow) int { return cmp.Compare(a.number, b.number) }) // Cosmos DB returns rows in no order
	return l, nil
}

func (r rowLists) decode(row *tables.Entity) ([]string, error) {
	ids, err := decodeIDs(row.Properties)
	if err != nil {
		return nil, &tables.Error{Op: "Read", Table: r.table.Name(), Key: row.Key, Kind: tables.ErrGarbled, Err: err}
	}
	return ids, nil
}

// readAtOnce limits how many lists are read concurrently if one query cannot read them together.
const readAtOnce = 8

// readTogether is the minimum number of lists for which readAll tries one query instead of one request for each list.
const readTogether = 3

// readAll reads lists of one partition. Requests: 1 for each list if there are less than readTogether or the table is
// on Cosmos DB; otherwise 1, and 1 for each list that this request has not found completely.
func (r rowLists) readAll(ctx context.Context, places []string) ([]*list, error) {
	lists, failures := make([]*list, len(places)), make([]error, len(places))
	if err := r.readRange(ctx, places, lists); err != nil {
		return nil, err
	}
	var running errgroup.Group
	running.SetLimit(readAtOnce)
	for i, place := range places {
		if lists[i] != nil {
			continue
		}
		running.Go(func() error {
			lists[i], failures[i] = r.read(ctx, place)
			return nil
		})
	}
	_ = running.Wait() // always nil; failures has the errors
	return lists, cmp.Or(failures...)
}

// readRange reads several lists by one query over the range of their keys. It reads only one page, of twice as many
// rows as there are lists. For a list that may continue after the page, it sets that list's element of lists to nil.
func (r rowLists) readRange(ctx context.Context, places []string, lists []*list) error {
	if len(places) < readTogether || r.table.Account().IsCosmos() { // Cosmos DB returns rows in no order
		return nil
	}
	at := make(map[string]int, len(places)) // indexes of places by the row key of the list
	var from, to, partition string
	for i, place := range places {
		first, err := driver.SplitKey(place)
		if err != nil {
			return err
		}
		lists[i] = &list{first: first}
		at[first.Row], partition = i, first.Partition
		all := rows.AllNumbered(first.Row)
		if i == 0 || compoundkey.Compare(all.From(), from) < 0 {
			from = all.From()
		}
		if i == 0 || compoundkey.Compare(all.To(), to) > 0 {
			to = all.To()
		}
	}
	page, err := r.table.Entities().Query().Partition(partition).Rows(compoundkey.Range(from, to)).PageSize(min(1000, 2*len(places))).Page(ctx, "")
	if err != nil {
		return err
	}
	if len(page.Problems) > 0 {
		return page.Problems[0]
	}
	last := ""
	for _, row := range page.Items {
		first, number := rows.ParseNumbered(row.Key.Row)
		last = row.Key.Row
		i, asked := at[first]
		if !asked {
			continue
		}
		ids, err := r.decode(row)
		if err != nil {
			return err
		}
		lists[i].rows = append(lists[i].rows, listRow{number: number, ids: ids, etag: row.ETag})
	}
	for first, i := range at {
		if page.Next != "" && compoundkey.Compare(rows.AllNumbered(first).To(), last) > 0 {
			lists[i] = nil
		}
	}
	return nil
}

// counts yields a Value for each list of a query, in the order of their keys. The value's key is the list's row key without
// prefix.
func (r rowLists) counts(ctx context.Context, q tables.Query[tables.Entity], prefix string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		var current Value
		begun := false
		for row, err := range r.table.InOrder(q.All(ctx)) {
			if err != nil {
				yield(Value{}, err)
				return
			}
			count, ok := row.Get(countProperty).Int()
			if !ok {
				yield(Value{}, &tables.Error{Op: "Read", Table: r.table.Name(), Key: row.Key, Kind: tables.ErrGarbled,
					Err: errors.New("a row of the list has no property " + countProperty + "; delete the rows of the list and run Repository.Rebuild")})
				return
			}
			first, _ := rows.ParseNumbered(row.Key.Row)
			key := strings.TrimPrefix(first, prefix)
			if begun && current.Key != key {
				if !yield(current, nil) {
					return
				}
				current.Count = 0
			}
			begun, current.Key, current.Count = true, key, current.Count+int(count)
		}
		if begun {
			yield(current, nil)
		}
	}
}

// rowIndex is the part that the indexes with lists in rows share.
type rowIndex[T any] struct {
	index[T]
	table *tables.Table // nil for the entities' own table
}

func (x *rowIndex[T]) rows() (rowLists, error) {
	host, err := x.definition.Host("Rows")
	if err != nil {
		return rowLists{}, err
	}
	if x.table != nil {
		return rowLists{x.table}, nil
	}
	return rowLists{host.Table()}, nil
}

func (x *rowIndex[T]) load(ctx context.Context, place string) ([]string, error) {
	lists, err := x.rows()
	if err != nil {
		return nil, err
	}
	l, err := lists.read(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.ids(), nil
}

// valuesIn yields a Value for each list whose first row is in a span of a partition; prefix begins these rows' keys.
func (x *rowIndex[T]) valuesIn(ctx context.Context, partition string, span compoundkey.Span, prefix string) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		lists, err := x.rows()
		if err != nil {
			yield(Value{}, err)
			return
		}
		q := lists.table.Entities().Query().Partition(partition).Rows(span).Select(countProperty)
		lists.counts(ctx, q, prefix)(yield)
	}
}

// heldIn yields a fact for each key in the lists that the queries find, row by row, in no order.
func (x *rowIndex[T]) heldIn(ctx context.Context, queries func(*tables.Table, driver.Scope) []tables.Query[tables.Entity], scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		lists, err := x.rows()
		if err != nil {
			yield(driver.Fact{}, err)
			return
		}
		for _, q := range queries(lists.table, scope) {
			for row, err := range q.AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
				if err != nil {
					yield(driver.Fact{}, x.failed("List", err))
					return
				}
				first, _ := rows.ParseNumbered(row.Key.Row)
				place := driver.JoinKey(tables.Key{Partition: row.Key.Partition, Row: first})
				ids, err := lists.decode(row)
				if err != nil && !yield(x.unreadable(place, err), nil) {
					return
				}
				for fact := range x.facts(place, ids, scope) {
					if !yield(fact, nil) {
						return
					}
				}
			}
		}
	}
}

// rowPlace checks the key of a list's first row, and returns the list's place.
func rowPlace(partition, row string) (string, error) {
	for _, key := range []string{partition, row} {
		if err := compoundkey.Err(key); err != nil {
			return "", err
		}
	}
	if n := edm.Units(row); n > rows.MaxFirst {
		return "", errs.Invalid("", &edm.SizeError{What: "the row key of a list", Size: n, Limit: rows.MaxFirst, Unit: "UTF-16 units"})
	}
	return driver.JoinKey(tables.Key{Partition: partition, Row: row}), nil
}
